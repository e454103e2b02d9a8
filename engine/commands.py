"""A pair of models as the commands that run it in llama-server and in vLLM.

Knows their options as of autumn 2026, and how a shell reads words; runs nothing.
"""

import json
import shlex
from dataclasses import dataclass
from typing import Any, Literal

from engine.api import ModelInfo
from engine.errors import EngineError, Reason

Peer = Literal["llama-server", "vLLM"]
# What drafts: nothing, texts, an ordinary model, or a head of a published kind.
Method = Literal[
    "none", "ngram", "chain", "suffix", "auto", "model",
    "eagle3", "p-eagle", "dflash", "dspark", "mtp", "assistant", "pard",
]  # fmt: skip

# Tokens a round where none are asked for: theirs, for heads those of the trained block.
LENGTHS: dict[Method, int] = {
    "ngram": 8,
    "suffix": 24,
    "model": 4,
    "eagle3": 3,
    "p-eagle": 3,
    "dflash": 15,
    "dspark": 7,
    "mtp": 1,
    "assistant": 1,
    "pard": 12,
}
# llama-server's name of each method it has.
TYPES: dict[Method, str] = {
    "none": "none",
    "ngram": "ngram-simple",
    "chain": "ngram-mod",
    "model": "draft-simple",
    "eagle3": "draft-eagle3",
    "dflash": "draft-dflash",
    "dspark": "draft-dspark",
    "mtp": "draft-mtp",
    "assistant": "draft-mtp",
}
# vLLM's.
METHODS: dict[Method, str] = {
    "ngram": "ngram",
    "suffix": "suffix",
    "model": "draft_model",
    "eagle3": "eagle3",
    "p-eagle": "eagle3",
    "dflash": "dflash",
    "dspark": "dspark",
    "mtp": "mtp",
    "assistant": "mtp",
    "pard": "draft_model",
}
# What drafts without a file of its own.
WITHOUT_FILE: tuple[Method, ...] = ("ngram", "suffix", "chain", "mtp", "auto")
PARALLEL = ("p-eagle", "pard")


@dataclass(frozen=True)
class Setting:
    """What a command is made for. `draft` is None where no file drafts; `length` None: the peer's
    own. `translated`: the draft has another vocabulary. `repositories` of target and draft on the
    hub, where they are known."""

    target: ModelInfo
    context: int
    method: Method = "none"
    draft: ModelInfo | None = None
    length: int | None = None
    translated: bool = False
    repositories: tuple[str | None, str | None] = (None, None)


@dataclass(frozen=True)
class Command:
    """Words of a command line, in groups that stand on a line each, and what must be known."""

    groups: tuple[tuple[str, ...], ...]
    notes: tuple[Reason, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """What the program would be given."""
        return tuple(word for group in self.groups for word in group)

    @property
    def text(self) -> str:
        """The command, quoted for a POSIX shell, a group a line."""
        return " \\\n  ".join(map(shlex.join, self.groups))


def method_of(choice: str) -> Method:
    """How it is drafted where that is chosen by a word: "none" for any other."""
    return next((method for method in WITHOUT_FILE if method == choice), "none")


def command(peer: Peer, setting: Setting) -> Command:
    """The command with which `peer` runs what is set. Raises EngineError where it has no such way
    to draft, and where a name cannot be written into a command."""
    made = _llama_server(setting) if peer == "llama-server" else _vllm(setting)
    if any(not _is_text(word) for word in made.words):
        raise EngineError(
            "name_no_text", "The name of a file is no text, so that no command can hold it."
        )
    return made


def _llama_server(setting: Setting) -> Command:
    kind = TYPES.get(setting.method)
    if setting.translated:
        raise EngineError(
            "peer_translates_not", "{peer} has no drafts of another vocabulary.", peer="llama.cpp"
        )
    if kind is None:
        raise _lacking("llama.cpp", setting.method)
    length = setting.length or LENGTHS.get(setting.method, 0)
    models, drafting = ["llama-server", "-m", _gguf(setting.target)], ["--spec-type", kind]
    room = ["-ngl", "auto", "-c", str(setting.context), "-np", "1", "--metrics"]
    if setting.draft is not None:
        models += ["-md", _gguf(setting.draft)]
        room += ["-ngld", "auto"]
    if setting.method == "ngram":
        drafting += ["--spec-ngram-simple-size-m", str(length)]
    elif length:
        drafting += ["--spec-draft-n-max", str(length)]
    if setting.method == "model":
        drafting += ["--spec-draft-p-min", "0.75"]
    if setting.method in ("dflash", "dspark"):
        room += ["-fa", "on"]
    groups = tuple(models), tuple(drafting), tuple(room)
    return Command(groups, _notes_of_llama(setting))


def _notes_of_llama(setting: Setting) -> tuple[Reason, ...]:
    files = [info for info in (setting.target, setting.draft) if info is not None]
    notes = []
    if any(info.format != "gguf" for info in files):
        notes.append(
            Reason(
                "needs_gguf",
                "It reads GGUF files only: convert_hf_to_gguf.py of llama.cpp makes them, of a "
                "head with --target-model-dir.",
            )
        )
    if setting.method != "none":
        notes.append(Reason("needs_llama_2026", "These options need a llama-server from 2026 on."))
    return tuple(notes)


def _vllm(setting: Setting) -> Command:
    groups: list[tuple[str, ...]] = [
        ("vllm", "serve", _served(setting.target, setting.repositories[0])),
        ("--max-model-len", str(setting.context)),
    ]
    notes = []
    if setting.method != "none":
        config = _config(setting)
        groups.append(("--speculative-config", json.dumps(config, separators=(",", ":"))))
        groups.append(("--per-request-spec-decode-metrics", "summary"))
        notes.append(
            Reason(
                "vllm_refuses",
                "It needs vLLM 0.33 or newer, which then refuses requests with min_p or "
                "logit_bias.",
            )
        )
        if setting.method == "suffix":
            notes.append(Reason("needs_arctic", "It needs the package arctic-inference."))
        if "use_heterogeneous_vocab" in config:
            notes.append(
                Reason("vllm_greedy", "With vocabularies of two sizes its drafts are greedy.")
            )
    if "gguf" in (setting.target.format, setting.draft.format if setting.draft else ""):
        notes.append(
            Reason(
                "vllm_gguf",
                "vLLM is at its best with the folder of the original model, and reads GGUF files "
                "as an experiment.",
            )
        )
    return Command(tuple(groups), tuple(notes))


def _config(setting: Setting) -> dict[str, Any]:
    """What vLLM is told of the draft."""
    method = METHODS.get(setting.method)
    if method is None:
        raise _lacking("vLLM", setting.method)
    config: dict[str, Any] = {"method": method}
    if setting.draft is not None:
        config["model"] = _served(setting.draft, setting.repositories[1])
    config["num_speculative_tokens"] = setting.length or LENGTHS[setting.method]
    if setting.method == "ngram":
        config |= {"prompt_lookup_min": 2, "prompt_lookup_max": 5}
    if setting.method in PARALLEL:
        config["parallel_drafting"] = True
    sizes = {info.vocab_size for info in (setting.target, setting.draft) if info is not None}
    if setting.method == "model" and (setting.translated or len(sizes) > 1):
        config["use_heterogeneous_vocab"] = True
    return config


def _lacking(peer: str, method: Method) -> EngineError:
    if method == "auto":
        return EngineError(
            "auto_is_ours", "{peer} has no Auto. Choose one draft to have its command.", peer=peer
        )
    return EngineError(
        "peer_lacks_method", "{peer} has no {method} drafts.", peer=peer, method=method
    )


def _gguf(info: ModelInfo) -> str:
    """The file that llama-server reads, or the one that would have to be made."""
    return _unlike_an_option(str(info.path) if info.format == "gguf" else f"{info.name}.gguf")


def _served(info: ModelInfo, repository: str | None) -> str:
    """What vLLM is to load: the hub's name of it, else where it lies."""
    return repository or _unlike_an_option(str(info.path))


def _unlike_an_option(path: str) -> str:
    return f"./{path}" if path.startswith("-") else path


def _is_text(word: str) -> bool:
    """Whether it is UTF-8, as a clipboard's text is: a file's name may be any bytes."""
    return not any(c == "\0" or "\ud800" <= c <= "\udfff" for c in word)
