"""Tokenizers that cut the same text in other ways, as files and with what their ids decode to; and
a tiny model behind another of them."""

import random
from collections.abc import Sequence
from pathlib import Path

from engine.drafters.translated import TranslatedDrafter
from engine.model import LanguageModel
from engine.tokenizer import Tokenizer
from engine.translation import Words
from engine.vocabulary import from_tokenizer_json
from tests.folders import SPECIAL, byte_alphabet, byte_tokenizer_json, write_json, write_model
from tests.tiny import language_model

WORDS = (" the", " cat", "ab", "abc", "\n\n", " 1", ", ")


def byte_level_json(words: Sequence[str] = WORDS, *, special: Sequence[str] = SPECIAL) -> str:
    """Byte-level BPE in another order of ids, with `words` joined from pairs."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers

    spelled = ["".join(byte_alphabet()[byte] for byte in word.encode()) for word in words]
    texts, merges = byte_alphabet(), []
    random.Random(1).shuffle(texts)
    for word in spelled:
        for end in range(2, len(word) + 1):
            if word[:end] not in texts:
                texts.append(word[:end])
                merges.append((word[: end - 1], word[end - 1]))
    vocab = {text: i for i, text in enumerate(texts)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=merges))
    cut = pre_tokenizers.Split(Regex(r" ?[^\s\d]+|\s+(?!\S)|\s+| ?\d"), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([cut, level])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(t, special=True, normalized=False) for t in special])
    return tokenizer.to_str()


def sentencepiece_json(words: Sequence[str] = WORDS) -> str:
    """As Llama 2's: blanks are marks, one before every text, and bytes stand in for characters
    that have no token."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers

    texts = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581"]
    texts += [chr(c) for c in range(0x21, 0x7F)]
    merges = []
    for word in (word.replace(" ", "\u2581") for word in words if "\n" not in word):
        for end in range(2, len(word) + 1):
            if word[:end] not in texts:
                texts.append(word[:end])
                merges.append((word[: end - 1], word[end - 1]))
    vocab = {text: i for i, text in enumerate(texts)}
    tokenizer = Tokenizer(
        models.BPE(vocab=vocab, merges=merges, byte_fallback=True, unk_token="<unk>")
    )
    marks = [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    tokenizer.normalizer = normalizers.Sequence(marks)
    back = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence([*back, decoders.Strip(" ", 1, 0)])
    tokenizer.add_special_tokens(
        [AddedToken(text, special=True, normalized=False) for text in texts[:3]]
    )
    return tokenizer.to_str()


OTHERS = {"byte level": byte_level_json, "sentencepiece": sentencepiece_json}


def words(json: str, *, bos: bool = False, end: str = "</s>") -> Words:
    """A tokenizer.json as tokenizer and bytes."""
    import tokenizers

    backend = tokenizers.Tokenizer.from_str(json)
    ends = frozenset({backend.token_to_id(end)})
    tokenizer = Tokenizer(backend, ends, special_tokens={"bos_token": "<s>"}, add_bos=bos)
    return Words(tokenizer, from_tokenizer_json(json.encode()))


def target_words() -> Words:
    """F-BYTE."""
    return words(byte_tokenizer_json())


def behind(json: str, target: LanguageModel, *, bos: bool = False) -> TranslatedDrafter:
    """A tiny model of F-BYTE, a copy of `target`, as a draft behind the tokenizer `json`."""
    import torch

    ours, theirs = target_words(), words(json, bos=bos)
    rows = torch.tensor(like(ours, theirs))
    copy = language_model(vocab_size=len(rows))
    weights = dict(target.network.state_dict())
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        weights[name] = weights[name][rows]
    copy.network.load_state_dict(weights)
    return TranslatedDrafter(copy, ours, theirs)


def write_other(folder: Path, json: str, target: Path) -> Path:
    """The network in `target` behind the tokenizer `json`: each of its ids is fed and judged as
    the first byte or the special token that it stands for."""
    import torch
    from safetensors.torch import load_file, save_file

    from tests.folders import tiny_config

    state = load_file(target / "model.safetensors")
    ours, theirs = target_words(), words(json)
    rows = torch.tensor(like(ours, theirs))
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        state[name] = state[name][rows].contiguous()
    config = tiny_config(
        vocab_size=len(rows), eos_token_id=theirs.tokenizer.backend.token_to_id("</s>")
    )
    write_model(folder, config=config, tokenizer=False)
    save_file(state, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "tokenizer.json").write_text(json, encoding="utf-8")
    write_json(folder / "tokenizer_config.json", {"eos_token": "</s>", "bos_token": "<s>"})
    return folder


def like(ours: Words, theirs: Words) -> list[int]:
    """The id of `ours` that stands for each of `theirs`: of the same bytes, else of the first."""
    same = {token: i for i, token in enumerate(ours.vocabulary.tokens) if token}
    tokens = theirs.vocabulary.tokens
    return [same.get(token or b"\0", (token or b"\0")[0]) for token in tokens]
