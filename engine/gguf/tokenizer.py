"""The tokenizer, chat template and special tokens that a GGUF file carries."""

from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers
from tokenizers.models import BPE
from tokenizers.processors import TemplateProcessing
from transformers.integrations.gguf.gguf_tokenizer_mapping import GGUF_PRE_TOKENIZER_SPLITS
from transformers.tokenization_utils_base import generate_merges

from engine import vocabulary
from engine.errors import EngineError, Incomplete, LoadError, Unsupported
from engine.library.gguf import Header, read_header


def template_of(header: Header) -> str | None:
    """The chat template the file carries."""
    template = header.metadata.get("tokenizer.chat_template")
    return template if isinstance(template, str) else None


def special_tokens_of(header: Header) -> dict[str, str]:
    """Texts of `bos_token`, `eos_token`, `unk_token`, `pad_token`, as far as the file has them."""
    texts = _list(header, "tokens")
    ids = {name: token_id(header, key) for name, key in _SPECIAL.items()}
    return {name: str(texts[index]) for name, index in ids.items() if index is not None}


def eos_ids_of(header: Header) -> tuple[int, ...]:
    """The ids that end an answer, ascending.

    As in llama.cpp: those the file names as end of sequence, of turn or of message, and the
    tokens that are known to end a turn. Files often name `<|endoftext|>` alone, though the model
    was taught to stop with `<|im_end|>`. A known text counts only as a control or user-defined
    token: else it is an ordinary word of this vocabulary.
    """
    named = {token_id(header, key) for key in ("eos_token_id", "eot_token_id", "eom_token_id")}
    marked = (vocabulary.CONTROL, vocabulary.USER_DEFINED)
    pairs = zip(_list(header, "tokens"), _list(header, "token_type"), strict=False)
    known = {
        index for index, (text, type_) in enumerate(pairs) if type_ in marked and text in _ENDS
    }
    return tuple(sorted(known | {index for index in named if index is not None}))


def build_tokenizer(header: Header) -> Tokenizer:
    """The file's tokenizer; takes seconds, so keep what `to_str` gives.

    Control tokens are special, user-defined ones added. Begin-of-text is added by `encode` when
    the file asks for it, and not with `add_special_tokens=False`. Raises Unsupported when the way
    the vocabulary cuts text is not known, Incomplete when it is damaged.
    """
    metadata = header.metadata
    count = len(vocabulary.from_gguf(metadata).tokens)
    texts = metadata["tokenizer.ggml.tokens"][:count]
    types = metadata.get("tokenizer.ggml.token_type", [vocabulary.NORMAL] * count)[:count]
    kind = metadata["tokenizer.ggml.model"]
    if kind not in _BUILDERS:
        raise Unsupported(
            "tokenizer_kind", "Tokenizers of the kind {kind} are not supported.", kind=str(kind)
        )
    try:
        tokenizer = _BUILDERS[kind](header, texts, types)
        _add_tokens(tokenizer, header, texts, types)
        _add_bos(tokenizer, header)
    except LoadError:
        raise
    except Exception as error:  # tokenizers raises nothing narrower
        raise Incomplete(
            "gguf_tokenizer_damaged", "The tokenizer in {file} is damaged.", file=header.path.name
        ) from error
    return tokenizer


def build_into(connection: Connection, gguf_file: Path, to: Path) -> None:
    """Build the tokenizer of a GGUF file and write it to `to`; meant for a child process.

    Sends None when done, or the class and reason of the EngineError that `build_tokenizer` raised.
    """
    try:
        built = build_tokenizer(read_header(gguf_file))
        to.write_text(built.to_str(), encoding="utf-8")
    except EngineError as error:
        connection.send((type(error), error.reason))
    else:
        connection.send(None)


_SPECIAL = {
    "bos_token": "bos_token_id",
    "eos_token": "eos_token_id",
    "unk_token": "unknown_token_id",
    "pad_token": "padding_token_id",
}
# Tokens that end a turn, or all text, in the models of the supported architectures.
_ENDS = {
    "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<end_of_turn>", "<|endoftext|>",
    "<|end_of_text|>", "<|EOT|>",
}  # fmt: skip


def token_id(header: Header, key: str) -> int | None:
    """An id the metadata names, None where it names none or one beyond the vocabulary."""
    index = header.metadata.get(f"tokenizer.ggml.{key}")
    count = len(_list(header, "tokens"))
    return index if isinstance(index, int) and 0 <= index < count else None


def _list(header: Header, key: str) -> list[Any]:
    values = header.metadata.get(f"tokenizer.ggml.{key}")
    return values if isinstance(values, list) else []


# What transformers' table lacks: how the text is cut before byte pairs are joined.
_DIGITS = ("smollm", "starcoder", "refact", "command-r", "codeshell")
_GPT2 = ("gpt-2", "phi-2", "olmo", "mpt")
# Words found whole in the vocabulary are not put together from pairs; and text begins with BOS.
_LLAMA3 = ("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "lfm2")
_WHOLE_WORDS = (*_LLAMA3, "tekken")


def _byte_level(header: Header, texts: list[str], types: list[int]) -> Tokenizer:
    pre = header.metadata.get("tokenizer.ggml.pre")
    steps: list[pre_tokenizers.PreTokenizer] = []
    if pre in GGUF_PRE_TOKENIZER_SPLITS:
        steps.append(pre_tokenizers.Split(Regex(GGUF_PRE_TOKENIZER_SPLITS[pre]), "isolated"))
    elif pre in _DIGITS:
        steps.append(pre_tokenizers.Digits(individual_digits=True))
    elif pre not in _GPT2:
        raise Unsupported(
            "gguf_pre_tokenizer",
            "{file} cuts text into words as {pre}, which is not supported.",
            file=header.path.name,
            pre=str(pre),
        )
    by_regex = pre not in GGUF_PRE_TOKENIZER_SPLITS
    steps.append(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=by_regex))
    tokenizer = Tokenizer(BPE(_ids(texts), _merges(header), ignore_merges=pre in _WHOLE_WORDS))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _sentencepiece(header: Header, texts: list[str], types: list[int]) -> Tokenizer:
    texts = [_spelled(text) for text in texts]
    ids = _ids(texts)
    # No text is put together to what is not text: "<", "s>" must not become the token <s>.
    words = (vocabulary.NORMAL, vocabulary.USER_DEFINED)
    marks = {text for text, type_ in zip(texts, types, strict=True) if type_ not in words}
    merges = _merges(header) or generate_merges(ids, _ranks(header, texts), skip_tokens=marks)
    unknown = token_id(header, "unknown_token_id")
    unk_token = None if unknown is None else texts[unknown]
    mark = vocabulary.SPACE_MARK
    steps: list[normalizers.Normalizer] = [normalizers.Replace(" ", mark)]
    back: list[decoders.Decoder] = [decoders.Replace(mark, " "), decoders.ByteFallback()]
    back.append(decoders.Fuse())
    if header.metadata.get("tokenizer.ggml.add_space_prefix", True):
        steps.insert(0, normalizers.Prepend(mark))
        back.append(decoders.Strip(" ", 1, 0))
    tokenizer = Tokenizer(BPE(ids, merges, byte_fallback=True, fuse_unk=True, unk_token=unk_token))
    tokenizer.normalizer = normalizers.Sequence(steps)
    tokenizer.decoder = decoders.Sequence(back)
    return tokenizer


_BUILDERS = {"gpt2": _byte_level, "llama": _sentencepiece}


def _spelled(text: str) -> str:
    """Runs of spaces are stored as they read, and meant as a token like any other."""
    return vocabulary.SPACE_MARK * len(text) if text and not text.strip(" ") else text


def _ranks(header: Header, texts: list[str]) -> dict[str, float]:
    """How early a token is put together. Gemma's scores leave out runs of spaces, its order not."""
    scores = header.metadata["tokenizer.ggml.scores"]
    if str(header.metadata["general.architecture"]).startswith("gemma"):
        scores = range(0, -len(texts), -1)
    return dict(zip(texts, scores, strict=False))


def _ids(texts: list[str]) -> dict[str, int]:
    ids = {text: index for index, text in enumerate(texts)}
    if len(ids) < len(texts):
        raise ValueError("a token occurs twice")
    return ids


def _merges(header: Header) -> list[tuple[str, str]]:
    pairs = (merge.split(" ") for merge in header.metadata.get("tokenizer.ggml.merges", ()))
    return [(left, right) for left, right in pairs]


def _add_tokens(tokenizer: Tokenizer, header: Header, texts: list[str], types: list[int]) -> None:
    """Tokens that are found in the text before anything else, whole."""
    # Phi-3's template puts a line break behind each of them, which the model never saw.
    strips = header.metadata["general.architecture"] == "phi3"
    for kind, special in ((vocabulary.CONTROL, True), (vocabulary.USER_DEFINED, False)):
        tokenizer.add_tokens(
            [
                AddedToken(text, special=special, normalized=False, rstrip=strips and special)
                for text, type_ in zip(texts, types, strict=True)
                if type_ == kind and tokenizer.token_to_id(text) is not None
            ]
        )


def _add_bos(tokenizer: Tokenizer, header: Header) -> None:
    """Files that do not say: sentencepiece and Llama 3 begin a text with BOS."""
    metadata = header.metadata
    sentencepiece = metadata["tokenizer.ggml.model"] == "llama"
    usual = sentencepiece or metadata.get("tokenizer.ggml.pre") in _LLAMA3
    bos = token_id(header, "bos_token_id")
    if bos is not None and metadata.get("tokenizer.ggml.add_bos_token", usual):
        text = tokenizer.id_to_token(bos)
        tokenizer.post_processor = TemplateProcessing(
            single=[text, "$A"], special_tokens=[(text, bos)]
        )
