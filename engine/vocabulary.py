"""Vocabularies as bytes: what each id of a tokenizer decodes to, and whether two agree.

Knows how tokenizer.json and GGUF metadata spell bytes. Does not know how text is cut into tokens,
nor what a model's embedding is padded to.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeGuard

from engine.errors import Incomplete, Unsupported

# Token types of GGUF: llama.cpp, enum llama_token_type.
NORMAL, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 3, 4, 5, 6

LONGEST_SHOWN = 40  # characters of a token
LARGEST = 2**22  # ids; the largest vocabularies have 2**18
SPACE_MARK = "\u2581"  # sentencepiece's "▁"
_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
_HOLE = re.compile(r"\[PAD\d+\]")


@dataclass(frozen=True)
class Vocabulary:
    """`tokens[id]` is what the id decodes to, None for an id without a token."""

    tokens: tuple[bytes | None, ...]
    special: frozenset[int]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over all tokens and which of them are special, as hex."""
        digest = hashlib.sha256()
        # A length before each token keeps "ab", "c" apart from "a", "bc"; a zero stands for None.
        for token in self.tokens:
            digest.update(b"\0" if token is None else b"%d:%b" % (len(token), token))
        digest.update(repr(sorted(self.special)).encode())
        return digest.hexdigest()


@dataclass(frozen=True)
class Difference:
    """The first id that means one text in the target and another in the draft; of a long text the
    beginning."""

    token_id: int
    target: str
    draft: str


def difference(target: Vocabulary, draft: Vocabulary) -> Difference | None:
    """The first id that decodes to other bytes, or None: the draft's ids are the target's.

    Ids that only one of them has, at its end, are no difference; nor is which tokens are marked
    special, begin or end a text.
    """
    pairs = zip(target.tokens, draft.tokens, strict=False)
    for token_id, (ours, theirs) in enumerate(pairs):
        if ours != theirs:
            return Difference(token_id, _shown(ours), _shown(theirs))
    return None


def from_tokenizer_json(data: bytes) -> Vocabulary:
    """The vocabulary of a `tokenizer.json`. Raises Incomplete when it is not one."""
    try:
        root = json.loads(data)
        spelling = _spelling(root)
        tokens = {index: spelling.normal(text) for text, index in _entries(root["model"]["vocab"])}
        special = set()
        for entry in root.get("added_tokens") or ():
            index, text = entry["id"], entry["content"]
            if entry["special"]:
                special.add(index)
            tokens[index] = text.encode() if entry["special"] else spelling.added(text)
        return Vocabulary(_dense(tokens), frozenset(special))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise Incomplete(
            "tokenizer_damaged", "The tokenizer file tokenizer.json is damaged."
        ) from error


GGUF_KEYS = ("tokenizer.ggml.tokens", "tokenizer.ggml.token_type")  # the long arrays it reads


def from_gguf(metadata: Mapping[str, Any]) -> Vocabulary:
    """The vocabulary in a GGUF's metadata (`Header.metadata`, read with its arrays).

    Placeholders that fill the embedding's rows are holes, and cut off at the end. Raises
    Incomplete without a vocabulary, Unsupported for a kind that is not known.
    """
    kind = metadata.get("tokenizer.ggml.model")
    spelling = _GGUF_SPELLINGS.get(str(kind))
    if spelling is None:
        raise Unsupported(
            "tokenizer_kind", "Tokenizers of the kind {kind} are not supported.", kind=str(kind)
        )
    tokens_key, types_key = GGUF_KEYS
    texts = metadata.get(tokens_key)
    if not _all(texts, str):
        raise Incomplete("tokenizer_missing", "The file holds no vocabulary.")
    types = metadata.get(types_key, [NORMAL] * len(texts))
    if not _all(types, int) or len(types) != len(texts):
        raise Incomplete("tokenizer_damaged_types", "The vocabulary's token types are damaged.")
    normal = spelling.normal
    tokens = [
        normal(text) if type_ == NORMAL else _token(spelling, text, type_)
        for text, type_ in zip(texts, types, strict=True)
    ]
    while tokens and (tokens[-1] is None or types[len(tokens) - 1] == UNUSED):
        tokens.pop()
    special = frozenset(i for i in range(len(tokens)) if types[i] == CONTROL)
    return Vocabulary(tuple(tokens), special)


@dataclass(frozen=True)
class _Spelling:
    """How a tokenizer writes bytes as text: in learned tokens, and in those added to them."""

    normal: Callable[[str], bytes]
    added: Callable[[str], bytes]


def _byte_level(text: str) -> bytes:
    if text.isascii():  # in the alphabet these stand for themselves, and so they do beside it
        return text.encode()
    try:
        return text.translate(_BYTE_LEVEL).encode("latin-1")
    except UnicodeEncodeError:  # not written in the alphabet: it stands for itself
        return text.encode()


def _spaced(text: str) -> bytes:
    return text.replace(SPACE_MARK, " ").encode()


def _byte_or_spaced(text: str) -> bytes:
    byte = _BYTE_TOKEN.fullmatch(text)
    return bytes([int(byte[1], 16)]) if byte else _spaced(text)


def _byte_level_alphabet() -> dict[int, int]:
    """GPT-2's table, as code point -> byte: the printable of Latin-1, the rest from 256 on.

    What it lacks below 256 maps to a character that no byte has.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    table = {byte: byte for byte in printable}
    table |= dict.fromkeys(others, 0xFFFF)
    return table | {256 + i: byte for i, byte in enumerate(others)}


_BYTE_LEVEL = _byte_level_alphabet()
_GGUF_SPELLINGS = {
    "gpt2": _Spelling(_byte_level, str.encode),
    "llama": _Spelling(_spaced, _spaced),
    "gemma4": _Spelling(_spaced, _spaced),
}


def _token(spelling: _Spelling, text: str, type_: int) -> bytes | None:
    """One that was not learned."""
    if type_ == BYTE:
        return _byte_or_spaced(text)
    if type_ == UNUSED and _HOLE.fullmatch(text):
        return None
    return spelling.added(text) if type_ == USER_DEFINED else text.encode()


def _spelling(root: Mapping[str, Any]) -> _Spelling:
    """What the decoder undoes; without a decoder, what the pre-tokenizer does."""
    steps = list(_steps(root.get("decoder") or root.get("pre_tokenizer")))
    kinds = {step["type"] for step in steps}
    if "ByteLevel" in kinds:
        return _Spelling(_byte_level, str.encode)
    if "ByteFallback" in kinds:
        return _Spelling(_byte_or_spaced, _spaced)
    if "Metaspace" in kinds or any(_replaces_mark(step) for step in steps):
        return _Spelling(_spaced, _spaced)
    if "WordPiece" in kinds:
        prefix = next(step["prefix"] for step in steps if step["type"] == "WordPiece")
        return _Spelling(partial(_word_piece, prefix), str.encode)
    return _Spelling(str.encode, str.encode)


def _word_piece(prefix: str, text: str) -> bytes:
    return (text[len(prefix) :] if text.startswith(prefix) else " " + text).encode()


def _replaces_mark(step: Mapping[str, Any]) -> bool:
    return bool(step["type"] == "Replace" and step["pattern"].get("String") == SPACE_MARK)


def _steps(section: Mapping[str, Any] | None) -> Iterator[Mapping[str, Any]]:
    if section is None:
        return
    yield section
    for step in section.get("decoders") or section.get("pretokenizers") or ():
        yield from _steps(step)


def _entries(vocab: Any) -> Iterable[tuple[str, int]]:
    """Text and id of each learned token; Unigram lists pairs of text and score in order of id."""
    if isinstance(vocab, dict):
        return vocab.items()
    return ((text, index) for index, (text, _) in enumerate(vocab))


def _dense(tokens: Mapping[int, bytes]) -> tuple[bytes | None, ...]:
    size = max(tokens, default=-1) + 1
    if size > LARGEST or min(tokens, default=0) < 0:
        raise ValueError("ids out of range")
    return tuple(tokens.get(index) for index in range(size))


def _all(values: Any, kind: type) -> TypeGuard[list[Any]]:
    return isinstance(values, list) and set(map(type, values)) <= {kind}


def _shown(token: bytes | None) -> str:
    if token is None:
        return ""
    # a character takes at most four bytes; a last one that is cut through is not shown
    text = token[: 4 * LONGEST_SHOWN + 4].decode("utf-8", "replace")
    return text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "…"
