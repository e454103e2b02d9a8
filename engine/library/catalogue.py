"""Public drafts for targets that people run at home: what could be fetched for a model.

Knows the table that it is given, with a source for every row, and how names are spelled. Fetches
nothing. A row is a hint: whether two vocabularies agree is found from their files.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from engine import guidance
from engine.api import Kind, ModelInfo
from engine.errors import Reason
from engine.guidance import Level, Verdict
from engine.library import heads
from engine.library.scan import Entry
from engine.library.stores import BETWEEN

# What a name carries that says nothing of the model, "_" being written as "-".
PACKAGING = re.compile(
    r"\b(gguf|awq|gptq|autoround|mlx|exl[23]|bnb|ud|unsloth|imat|i1|qat|mxfp4|nvfp4|quantized|dynamic"
    r"|w[48]a(8|16)|int[48]|b?fp?(8|16|32)|[0-9]-?bit|[0-9]{5}-of-[0-9]{5}"
    r"|[it]?q[0-9](-([0-9]|k|nl|x{0,2}s|m|x?l))*)\b",
    re.IGNORECASE,
)
# Who puts a name before a model's own, as bartowski's files and Meta's own repositories do.
PUBLISHER = re.compile(
    r"^((unsloth|bartowski|thebloke|mradermacher|lmstudio-community|mlx-community|ggml-org|redhatai"
    r"|qwen|google|meta-llama|mistralai|microsoft|openai|deepseek-ai|huggingfacetb|ibm-granite"
    r"|allenai|zai-org|thudm|xiaomimimo|liquidai)_|meta[-_ ](?=llama))",
    re.IGNORECASE,
)
# What a tag of Ollama's may be, such as “30b-a3b”: then it is the model that answers.
SIZE = re.compile(r"e?[0-9.]+[bm](-a[0-9.]+b)?")
ANSWERS = ("", "-instruct", "-it")
WHOLE = ("model", "pard")
BUILT_IN = "mtp"  # the target's own; its row has the target's repository
BYTES = 2  # of a parameter in a repository


@dataclass(frozen=True)
class Offer:
    """A draft that is not on this computer. `targets` of a head: the models it was made for."""

    repository: str
    name: str
    kind: str
    parameters: int | None
    licence: str | None
    source: str
    targets: tuple[str, ...] = ()

    @property
    def size(self) -> int | None:
        """Bytes of the download, about: 16 bits for each parameter, as nearly all are kept."""
        return None if self.parameters is None else BYTES * self.parameters


class Catalogue:
    """The table, as resources/catalogue.json has it."""

    def __init__(self, table: Mapping[str, Any]) -> None:
        self._targets = {key: row for row in table["targets"] for key in _keys(row)}
        self._drafts: list[Mapping[str, Any]] = table["drafts"]

    def offers(
        self, target: ModelInfo, entries: Iterable[Entry], *, own_head: bool = False
    ) -> list[Offer]:
        """What the table has for `target` that is not among `entries`; none for one unknown.
        `own_head`: what it brings itself is listed already."""
        known = self._known(target)
        if known is None:
            return []
        here = {name for entry in entries for name in _names(entry)}
        fitting = (
            row
            for row in self._drafts
            if row["vocabulary"] == known["vocabulary"]
            and (row["kind"] in WHOLE or known["repository"] in row["for"])
        )
        return [
            _offer(row)
            for row in fitting
            if (row["kind"] == BUILT_IN and not own_head)
            or (row["repository"] != known["repository"] and not here.intersection(_keys(row)))
        ]

    def made_for(self, head: ModelInfo) -> str | None:
        """The name of the model that a head on disk was made for, by the head's own names."""
        names = _names(Entry(head.name, head.path, head, None))
        rows = (row for row in self._drafts if row["for"] and names.intersection(_keys(row)))
        return next((self._name(row["for"][0]) for row in rows), None)

    def _name(self, repository: str) -> str:
        row = self._targets.get(_plain(repository.rpartition("/")[2]))
        return repository if row is None else row["name"]

    def _known(self, target: ModelInfo) -> Mapping[str, Any] | None:
        names = _names(Entry(target.name, target.path, target, None))
        found = (self._targets.get(name) for name in sorted(names))
        return next((row for row in found if row is not None), None)


def verdict(
    offer: Offer, target: ModelInfo, table: Mapping[str, Any]
) -> tuple[Verdict, ModelInfo | None]:
    """What can be said of an offer before it is fetched: by size, or why it could not be used;
    and the model that it likely is, None of a head. `table` is that of `guidance.judge_pair`."""
    if offer.kind == BUILT_IN:
        return Verdict(Level.REFUSED, OWN_HEAD), None
    if offer.kind not in WHOLE:
        return _of_head(offer, target), None
    info = _guessed(offer, target)
    found = guidance.judge_pair(target, info, None, table)
    if offer.parameters is None and found.reason == guidance.UNKNOWN_SIZE:
        # There are no files yet that could state it.
        return replace(found, reason=UNKNOWN_SIZE), info
    return found, info


def _of_head(offer: Offer, target: ModelInfo) -> Verdict:
    """Whether its sizes are the target's is found from its files."""
    refusal = guidance.drafting_refusal(target)
    if refusal is None and offer.kind not in heads.READERS:
        refusal = guidance.head_refusal(target.name, heads.FORMS.get(offer.kind))
    if refusal is not None:
        return Verdict(Level.REFUSED, refusal)
    return Verdict(Level.GOOD, guidance.HEAD_FOR_THIS)


OWN_HEAD = Reason("not_built_in", "Built in: but not in these files")
UNKNOWN_SIZE = Reason("offer_size", "Unknown: its size is not known")


def _guessed(offer: Offer, target: ModelInfo) -> ModelInfo:
    """A model of that many parameters, whose headers nobody has read.

    Keys and values grow with depth and width, so about with the root of the parameters.
    """
    count, widths = offer.parameters, None
    if count and target.parameters and target.cache_widths is not None:
        share = math.sqrt(count / target.parameters)
        widths = (int(share * sum(target.cache_widths)),)
    return ModelInfo(
        offer.name,
        Path(offer.repository),
        "safetensors",
        "",
        Kind.MODEL,
        parameters=count,
        hidden_size=target.hidden_size,
        vocab_size=target.vocab_size,
        linear=count,
        linear_rows=0,
        embedding=0 if count else None,
        head=0 if count else None,
        other=0,
        cache_widths=widths,
        cache_windows=None if widths is None else (0,),
    )


def _offer(row: Mapping[str, Any]) -> Offer:
    return Offer(
        row["repository"],
        row["name"],
        row["kind"],
        row["parameters"],
        row["licence"],
        row["source"],
        tuple(row["for"]),
    )


def _keys(row: Mapping[str, Any]) -> set[str]:
    return {_plain(row["repository"].rpartition("/")[2]), _plain(row["name"])}


def _names(entry: Entry) -> set[str]:
    """What a model may be called, without packaging: by itself, by its file, by its repository."""
    path = entry.path
    found = {path.stem if path.suffix.lower() == ".gguf" else path.name, *entry.name.split(BETWEEN)}
    if entry.info is not None:
        found.add(entry.info.name)
    for part in path.parents:
        if part.name.startswith("models--"):
            found.add(part.name.split("--")[-1])
    return {_plain(name) for spelled in found for name in _spellings(spelled)}


def _spellings(name: str) -> Iterator[str]:
    """A name with and without its publisher's; one with a tag, as Ollama's, as it would be."""
    name, _, tag = name.rpartition("/")[2].partition(":")
    tag = PACKAGING.sub("", tag.replace("_", "-").lower()).strip("-")
    for suffix in ANSWERS if SIZE.fullmatch(tag) else ("",):
        yield f"{name}-{tag}{suffix}"
        yield f"{PUBLISHER.sub('', name, count=1)}-{tag}{suffix}"


def _plain(name: str) -> str:
    """A name without what differs between spellings and packagings of one model; numbers stay
    apart, so that 3.1 is not 31."""
    spelled = PACKAGING.sub("", name.replace("_", "-").lower())
    return "-".join(re.findall(r"[^\W\d_]+|\d+", spelled))
