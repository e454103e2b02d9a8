"""The terminal commands: chat, get, export, doctor; bench and the listings have rooms of their own.

Knows no Qt; torch loads only to compute.
"""

import argparse
import io
import json
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app import bench, forget_command, gpu_command, listing, settings_command
from app.judging import automatic_draft
from app.terminal import (
    DRAFTS,
    LONGEST_DRAFT,
    PRECISIONS,
    ProgressLine,
    add_model,
    at_least_1,
    draft_choice,
    draft_length,
    find_model,
    stop_flag,
    visible,
)

if TYPE_CHECKING:
    from app.chats.exchange import Form
    from engine.api import Chunk, Drafting, Loaded, Message, Sampling, Verification
    from engine.errors import Reason
    from engine.session import Session

ROUNDED = "same up to rounding"
CHECKED = (
    "bit-exact with any draft where the self-check of model and precision has passed, which chat "
    f"tells after loading; otherwise {ROUNDED}"
)


def version() -> str:
    """The installed version."""
    try:
        return metadata.version("slipstream")
    except metadata.PackageNotFoundError:
        return "not installed"


class _Version(argparse.Action):
    """Looks the version up only when asked."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        print(f"slipstream {version()}")
        parser.exit()


def parser() -> argparse.ArgumentParser:
    """All commands and options; without a command the window opens."""
    top = argparse.ArgumentParser(
        prog="slipstream",
        usage="slipstream [-h] [--version] [--self-test] [MODEL | CHAT | COMMAND ...]",
        description="Chat with a local language model, made fast by speculative decoding. "
        "Without a command the window opens, or comes forward; with MODEL, the path of a model's "
        "file or folder, it loads that; with CHAT, the id of a chat, it shows that.",
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    top.add_argument(
        "--self-test", action="store_true", help="check this installation, a line for each check"
    )
    commands = top.add_subparsers(dest="command", metavar="COMMAND", prog="slipstream")
    _add_chat(commands.add_parser("chat", help="chat in the terminal"))
    bench.add_arguments(commands.add_parser("bench", help="compare drafts on your prompts"))
    listing.add_commands(commands)
    get = commands.add_parser("get", help="fetch a model")
    get.add_argument(
        "name",
        metavar="starter|REPO[@REVISION]",
        help="SmolLM2 135M Instruct, 98 MB; or a repository of the Hugging Face Hub",
    )
    get.add_argument(
        "--file", metavar="NAME", help="of a repository of several GGUF files, this one"
    )
    _add_export(commands.add_parser("export", help="write all chats into a file"))
    settings_command.add_arguments(
        commands.add_parser("settings", help="what is set, or another value")
    )
    forget_command.add_arguments(
        commands.add_parser("forget", help="what drafts learned from chats, or of drafting")
    )
    gpu_command.add_arguments(commands.add_parser("gpu", help="use the graphics card, or not"))
    doctor = commands.add_parser("doctor", help="what this machine and this program can do")
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    top.set_defaults(open="", commands=frozenset(commands.choices))
    return top


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What these arguments (default: the process's) ask for. A single word that is no command
    stands in `open`."""
    words, top = list(sys.argv[1:] if arguments is None else arguments), parser()
    known: frozenset[str] = top.get_default("commands")
    if len(words) == 1 and not words[0].startswith("-") and words[0] not in known:
        return argparse.Namespace(command=None, self_test=False, open=words[0])
    return top.parse_args(words)


def _add_chat(chat: argparse.ArgumentParser) -> None:
    add_model(chat)
    chat.add_argument("--draft", default="none", metavar="NAME", help=DRAFTS)
    chat.add_argument(
        "--draft-length",
        type=draft_length,
        metavar="N",
        help=f"auto, or 0 to {LONGEST_DRAFT} tokens",
    )
    chat.add_argument(
        "--precision",
        choices=PRECISIONS,
        default="auto",
        help="of the weights; auto: the fastest exact one on this device",
    )
    chat.add_argument(
        "--draft-precision", choices=PRECISIONS[1:], help="of the draft (default: the target's)"
    )
    chat.add_argument("--prompt", help="answer this and end; without it, read from the terminal")
    chat.add_argument("--system", help="a system text")
    chat.add_argument("--max-tokens", type=at_least_1, metavar="N")
    chat.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end before TEXT")
    chat.add_argument("--json", action="store_true", help="print one JSON object")


def _add_export(export: argparse.ArgumentParser) -> None:
    export.add_argument("--all", action="store_true", required=True, help="every chat")
    export.add_argument(
        "--format",
        choices=("markdown", "json"),
        help="markdown to read, json with everything in it (default: as PATH ends, else markdown)",
    )
    export.add_argument(
        "-o", "--output", metavar="PATH", help="a file or folder (default: this folder)"
    )
    export.add_argument("--force", action="store_true", help="replace a file that is there")


def run(arguments: argparse.Namespace) -> int:
    """Carry out the command; the exit code."""
    from engine.errors import Cancelled, EngineError

    commands: dict[str, Callable[[argparse.Namespace], int]] = {
        "chat": _chat,
        "bench": bench.carry_out,
        "models": listing.models,
        "drafts": listing.drafts,
        "fit": listing.fit,
        "get": _get,
        "export": _export,
        "settings": settings_command.carry_out,
        "forget": forget_command.carry_out,
        "gpu": gpu_command.carry_out,
        "doctor": _doctor,
    }
    _mend_streams()
    try:
        return commands[arguments.command](arguments)
    except Cancelled as cancelled:
        _note(cancelled.reason)
        return 130
    except EngineError as error:
        _note(error.reason)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # who reads has gone; nothing is left to say, and nobody to say it to
        sys.stderr.close()
        return 1
    except OSError as error:
        said = f"{error.filename} cannot be used: {error.strerror}." if error.filename else error
        print(visible(str(said)), file=sys.stderr)
        return 1


def _mend_streams() -> None:
    """Never fail on a character: pipes of other systems are not always UTF-8."""
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def _note(reason: "Reason") -> None:
    print(visible(reason.text), file=sys.stderr)


def _sampling(arguments: argparse.Namespace) -> "Sampling":
    from engine.api import Sampling

    return Sampling(
        temperature=arguments.temperature,
        seed=arguments.seed,
        max_tokens=arguments.max_tokens,
        stop=tuple(getattr(arguments, "stop", ())),
    )


def _drafting(arguments: argparse.Namespace) -> "Drafting":
    from engine.api import Drafting

    return Drafting(arguments.draft_length, arguments.verification)


def _chat(arguments: argparse.Namespace) -> int:
    import resources
    from app import paths
    from engine.api import Message
    from engine.past import Past
    from engine.session import Session

    path = find_model(arguments.model)
    draft, model = draft_choice(arguments.draft), None
    if draft == "auto":
        model = automatic_draft(path, arguments.device, arguments.precision)
    system = [Message("system", arguments.system)] if arguments.system else []
    line = ProgressLine()
    with stop_flag() as stopped:
        session = Session(
            paths.cache_folder(),
            sample=resources.read_text("sample.txt"),
            past=Past(paths.past_folder()),
            learned=paths.learned_file(),
        )
        try:
            session.load_target(
                path,
                device=arguments.device,
                precision=None if arguments.precision == "auto" else arguments.precision,
                progress=line,
                stopped=stopped,
            )
            session.choose_draft(
                draft,
                model=model,
                precision=arguments.draft_precision,
                progress=line,
                stopped=stopped,
            )
            line.clear()
            _tell_loaded(session, arguments.verification)
            if arguments.prompt is not None:
                chat = [*system, Message("user", arguments.prompt)]
                _answer(session, chat, arguments, stopped)
                return 0
        finally:
            line.clear()
            if arguments.prompt is not None:
                session.close()
    return _talk(session, system, arguments)


def _tell_loaded(session: "Session", verification: "Verification") -> None:
    """How target and draft run, one line each, and below each why."""
    exact = "bit-exact" if session.target.loaded.bit_exact else ROUNDED
    _tell(session.target.loaded, exact if verification == "coupled" else "same odds")
    if session.draft is not None:
        _tell(session.draft.loaded, "draft")


def _tell(loaded: "Loaded", word: str) -> None:
    name = visible(loaded.info.name)
    print(f"{name}: {loaded.precision} on {loaded.device}, {word}", file=sys.stderr)
    for note in loaded.notes:
        _note(note)


def _talk(session: "Session", chat: list["Message"], arguments: argparse.Namespace) -> int:
    """Questions from standard input until it ends."""
    from engine.api import Message
    from engine.errors import EngineError

    interactive = sys.stdin.isatty()
    try:
        while True:
            if interactive:
                print("> ", end="", file=sys.stderr, flush=True)
            asked = sys.stdin.readline()
            if not asked:
                return 0
            if not asked.strip():
                continue
            chat.append(Message("user", asked.rstrip("\n")))
            with stop_flag() as stopped:
                try:
                    chat.append(_answer(session, chat, arguments, stopped))
                except EngineError as error:
                    chat.pop()
                    _note(error.reason)
    finally:
        session.close()


def _answer(
    session: "Session",
    chat: Sequence["Message"],
    arguments: argparse.Namespace,
    stopped: Callable[[], bool],
) -> "Message":
    """Print the answer as it comes, or all of it as JSON; the message to keep."""
    from engine.answer import summary
    from engine.api import Message

    text = reasoning = ""
    ids: list[int] = []
    last: Chunk | None = None
    for last in session.reply(chat, _sampling(arguments), _drafting(arguments), stopped=stopped):
        text += last.text
        reasoning += last.reasoning
        ids += last.token_ids
        for notice in last.notices:
            _note(notice)
        if not arguments.json:
            print(visible(last.text), end="", flush=True)
    assert last is not None
    if arguments.json:
        print(json.dumps(_as_json(text, ids, last)))
    else:
        print()
        print(summary(last.usage), file=sys.stderr)
    return Message(
        "assistant",
        text,
        tuple(ids) if last.token_ids_exact else None,
        session.target.loaded.vocabulary,
        reasoning,
    )


def _as_json(text: str, ids: Sequence[int], last: "Chunk") -> dict[str, Any]:
    usage = last.usage
    return {
        "text": text,
        "token_ids": list(ids),
        "finish_reason": last.finish,
        "seed": usage.seed,
        "stats": {
            "drafted": usage.drafted,
            "accepted": usage.accepted,
            "rejected": usage.rejected,
            "ignored": usage.ignored,
            "acceptance_rate": usage.acceptance_rate,
            "tokens_per_round": usage.tokens_per_round,
            "accepted_by_position": list(usage.accepted_by_position),
            "by_drafter": {
                name: {"rounds": rounds, "drafted": drafted, "accepted": accepted}
                for name, rounds, drafted, accepted in usage.by_drafter
            },
            "tokens": usage.tokens,
            "prompt_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "tokens_per_second": usage.tokens_per_second,
            "time_to_first_token": usage.time_to_first_token,
        },
    }


def _get(arguments: argparse.Namespace) -> int:
    from app import paths, places, settings
    from app.hub_token import Tokens
    from engine.errors import EngineError
    from engine.library import download, hub, plan, starter
    from engine.library.patience import patiently

    packaged = places.packaged_starter() if arguments.name == "starter" else None
    if packaged is not None:
        print(visible(str(packaged)))
        return 0
    kept = settings.load(paths.config_folder())
    hub.require_online(hub.Access(offline=kept.offline))
    line = ProgressLine()
    with stop_flag() as stopped:
        try:
            if arguments.name == "starter" and arguments.file:
                raise EngineError("no_choice", "The starter is one file: --file has no meaning.")
            if arguments.name == "starter":
                path = starter.fetch(places.require(places.store(kept)), line, stopped)
            else:
                access = hub.Access(Tokens().find().value)
                repository, _, revision = arguments.name.partition("@")
                wanted = patiently(
                    lambda: plan.plan(repository, revision or None, arguments.file, access),
                    line,
                    stopped,
                )
                folder = places.choose(wanted, kept)[0].folder
                size = f"{plan.amount(wanted.size)} in {len(wanted.files)} files, into {folder}"
                print(visible(f"{repository} at {wanted.commit[:8]}: {size}"), file=sys.stderr)
                path = download.fetch(wanted, folder, line, stopped, access)
        finally:
            line.clear()
    print(path)
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from app import paths
    from app.chats.store import Reader
    from engine.errors import EngineError

    output = Path(arguments.output or ".")
    named: Form = "json" if output.suffix.lower() == ".json" else "markdown"
    form: Form = arguments.format or named
    if output.is_dir():
        ending = "json" if form == "json" else "md"
        output /= f"slipstream-chats-{time.strftime('%Y-%m-%d')}.{ending}"
    if output.exists() and not arguments.force:
        raise EngineError(
            "file_exists", "{path} is there already; --force replaces it.", path=str(output)
        )
    reader = Reader(paths.history_file())
    try:
        chats = [chat.id for chat in reader.chats()]
        if not chats:
            raise EngineError("no_chats", "There are no chats yet.")
        count = reader.export(chats, output, form)
    finally:
        for notice in reader.notices:
            _note(notice)
        reader.close()
    print(f"{count} {'chat' if count == 1 else 'chats'}", file=sys.stderr)
    print(visible(str(output)))
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    facts = _facts()
    if arguments.json:
        print(json.dumps(facts, indent=2))
        return 0
    for topic, values in facts.items():
        print(topic)
        for name, value in values.items():
            print(f"  {name}: {value}")
    return 0


def _facts() -> dict[str, dict[str, Any]]:
    import platform

    import torch

    from app import libraries, paths
    from engine import devices

    trouble = libraries.trouble()
    gpus, problem = devices.gpus()
    total, free = devices.memory()
    packages = ("torch", "transformers", "tokenizers", "gguf", "PySide6-Essentials")
    return {
        "versions": {"slipstream": version(), "python": platform.python_version()}
        | {name: metadata.version(name) for name in packages},
        "torch": {
            "build": torch_build(torch),
            "folder": str(Path(torch.__file__).parents[1]),
            "devices": devices.available(),
            "threads": torch.get_num_threads(),
            "cpu": torch.backends.cpu.get_cpu_capability(),
        },
        "nvml": {
            "state": problem.text if problem else "answers",
            "cards": [f"{g.name}, {_gib(g.free)} of {_gib(g.total)} GiB free" for g in gpus],
        },
        "window": {"libraries": trouble[0] if trouble else "can be loaded"},
        "memory": {"total": f"{total / 2**30:.1f} GiB", "free": f"{free / 2**30:.1f} GiB"},
        "folders": {
            "data": str(paths.data_folder()),
            "models": str(paths.model_folder()),
            "cache": str(paths.cache_folder()),
            "config": str(paths.config_folder()),
            "logs": str(paths.log_folder()),
        },
        "exact": {
            "rule": "coupled verification emits the target's own token at every position",
            **dict.fromkeys(devices.available(), CHECKED),
        },
    }


def _gib(count: int | None) -> str:
    return "?" if count is None else f"{count / 2**30:.1f}"


def torch_build(torch: Any) -> str:
    """What a build of torch computes on."""
    if torch.version.cuda:
        return f"CUDA {torch.version.cuda}"
    if torch.version.hip:
        return f"ROCm {torch.version.hip}"
    return "CPU"
