"""Which files of a repository on the hub a model needs: what a download will fetch.

Knows names of files, and refuses what cannot or must not be run here before a weight is fetched:
pickles, code, formats without a way to run them. Fetches configurations and indices alone.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from engine import families
from engine.api import Kind
from engine.errors import DownloadError, EngineError, Incomplete
from engine.library import answers, files, folder, formats, hub
from engine.library.gguf import PART
from engine.library.hub import ANYONE, Access, Contents, RemoteFile
from engine.library.safetensors import HEADER_LIMIT

# What a model needs beside its weights; templates come as .jinja too.
NEEDED = re.compile(
    r"(config|generation_config|tokenizer|tokenizer_config|special_tokens_map|added_tokens|vocab"
    r"|chat_template|preprocessor_config|processor_config|adapter_config)\.json"
    r"|[\w.-]*\.jinja|merges\.txt|README\.md|LICENSE[\w.]*|tokenizer\.model"
)
ADAPTER = "adapter_model.safetensors"
TOKENIZER = "tokenizer.json"
BESIDE = ("mmproj", "imatrix")  # GGUF files that are no models
SMALL = 10 * 2**20  # bytes; what is read into memory before a plan is made


@dataclass(frozen=True)
class Plan:
    """What a download will fetch: these files of this `commit`."""

    repository: str
    commit: str
    files: tuple[RemoteFile, ...]

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)

    @property
    def key(self) -> str:
        """What tells it from other models, also of the same repository."""
        return f"{self.repository}/{self.files[0].name}" if self.files else self.repository


@dataclass(frozen=True)
class Choice:
    """One of several models in a repository, by the name of its first file; `size` in bytes."""

    file: str
    size: int


def amount(size: int) -> str:
    """Bytes of a download: "98 MB", "3.1 GB" (powers of ten)."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{max(size / 1e6, 1):.0f} MB"


def choices(held: Contents) -> tuple[Choice, ...]:
    """The GGUF files of which one has to be named; empty where there is but one model."""
    if _whole(held) is not None:
        return ()
    sets = _sets(held.files)
    if len(sets) < 2:
        return ()
    return tuple(Choice(name, sum(f.size for f in parts)) for name, parts in sets.items())


def plan(
    repository: str,
    revision: str | None = None,
    file: str | None = None,
    access: Access = ANYONE,
) -> Plan:
    """What has to be fetched of `repository`; of a collection of GGUF files the one named `file`.

    Raises DownloadError where it cannot be had or `file` has to be named, Unsafe where there are
    only pickles or it needs code of its own, Unsupported where it cannot be run here, Incomplete
    where a file is missing: before a weight is fetched.
    """
    return choose(hub.contents(repository, revision, access), file, access)


def choose(held: Contents, file: str | None = None, access: Access = ANYONE) -> Plan:
    """As `plan`, for a repository that was looked at before."""
    whole = _whole(held) if file is None else None
    if whole is None:
        chosen = _chosen(held, file)
    else:
        beside = [f for f in held.files if NEEDED.fullmatch(f.name)]
        _refuse_unfit(held, {f.name: f for f in beside}, access, adapter=whole.name == ADAPTER)
        chosen = [*_weights(held, whole, access), *beside]
    return Plan(held.repository, held.commit, tuple(chosen))


def _whole(held: Contents) -> RemoteFile | None:
    """The file by which weights are loaded that are no GGUF: the single one, the index of several,
    or an adapter's; the others would lie there unused."""
    named = {file.name: file for file in held.files}
    found = (named.get(name) for name in (folder.SINGLE, folder.INDEX, ADAPTER))
    return next((file for file in found if file is not None), None)


def _weights(held: Contents, whole: RemoteFile, access: Access) -> list[RemoteFile]:
    """All files that hold the weights. Raises Incomplete and Unsafe, as loading would."""
    if whole.name != folder.INDEX:
        return [whole]
    table = files.parse_object(_read(held, whole, access, HEADER_LIMIT), whole.name)
    promised = table.get("weight_map")
    if not isinstance(promised, dict) or not promised:
        raise files.damaged(whole.name)
    named = {file.name: file for file in held.files}
    found = []
    for shard in sorted(set(map(str, promised.values()))):
        if not shard.endswith(".safetensors"):
            raise folder.pickle(shard)
        if shard not in named:
            raise files.missing(shard)
        found.append(named[shard])
    return [*found, whole]


def _chosen(held: Contents, wanted: str | None) -> list[RemoteFile]:
    sets = _sets(held.files)
    if not sets:
        raise _no_weights(held)
    if wanted is None and len(sets) == 1:
        return next(iter(sets.values()))
    found = [s for name, s in sets.items() if wanted in (name, *(f.name for f in s))]
    if not found:
        raise DownloadError(
            "choose_file",
            "{repository} holds several models. Name one of its files: {files}.",
            repository=held.repository,
            files=", ".join(f"{c.file} ({amount(c.size)})" for c in choices(held)),
        )
    return found[0]


def _sets(every: Iterable[RemoteFile]) -> dict[str, list[RemoteFile]]:
    """GGUF files, split sets together, by the name of the first."""
    sets: dict[str, list[RemoteFile]] = {}
    for file in sorted(every, key=lambda f: f.name):
        name = file.name.lower()
        if not name.endswith(".gguf") or name.startswith(BESIDE):
            continue
        part = PART.fullmatch(file.name)
        key = f"{part['stem']}-00001-of-{part['count']}{part['suffix']}" if part else file.name
        sets.setdefault(key, []).append(file)
    return sets


def _no_weights(held: Contents) -> EngineError:
    pickle = next((f.name for f in held.files if f.name.endswith(folder.PICKLES)), None)
    if pickle is not None:
        return folder.pickle(pickle)
    if any(f.name.endswith(".safetensors") for f in held.files):
        return files.missing(folder.SINGLE)
    return DownloadError(
        "no_weights",
        "{repository} holds no weights as safetensors or GGUF.",
        repository=held.repository,
    )


def _refuse_unfit(
    held: Contents, beside: Mapping[str, RemoteFile], access: Access, *, adapter: bool
) -> None:
    """Look at the configurations alone. Raises Unsafe, Unsupported and Incomplete, in the words
    that loading would use."""
    read = {}
    for name in ("config.json", "tokenizer_config.json"):
        if name in beside:
            read[name] = files.parse_object(_read(held, beside[name], access, SMALL), name)
            folder.refuse_config(name, read[name])
    if adapter:
        return
    if "config.json" not in read:
        raise files.missing("config.json")
    config = families.text_config(read["config.json"])
    _, kind = folder.family(config)
    formats.require(formats.method_of(config))
    # a head speaks with its target's
    if kind is Kind.MODEL and TOKENIZER not in beside:
        name = held.repository.rpartition("/")[2]
        raise Incomplete("no_tokenizer", "{name} has no tokenizer.json.", name=name)


def _read(held: Contents, file: RemoteFile, access: Access, limit: int) -> bytes:
    with answers.said(held.repository):
        pieces = hub.stream(held.repository, held.commit, file, 0, access, limit)
        return b"".join(piece for piece in pieces if piece)
