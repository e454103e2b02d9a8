"""The terminal commands: chat, bench, get, doctor. Knows no Qt; torch loads only to compute."""

import argparse
import contextlib
import io
import json
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from engine.api import Chunk, Drafting, Message, Progress, Sampling
    from engine.errors import Reason
    from engine.session import Session

PRECISIONS = ("fp32", "bf16")
LONGEST_DRAFT = 16


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
        description="Chat with a local language model, made fast by speculative decoding. "
        "Without a command the window opens.",
    )
    top.add_argument("--version", action=_Version, nargs=0, help="print the version")
    top.add_argument("--smoke", action="store_true", help=argparse.SUPPRESS)
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    _add_chat(commands.add_parser("chat", help="chat in the terminal"))
    _add_bench(commands.add_parser("bench", help="compare drafts on your prompts"))
    get = commands.add_parser("get", help="fetch a model")
    get.add_argument("name", choices=["starter"], help="starter: SmolLM2 135M Instruct, 98 MB")
    doctor = commands.add_parser("doctor", help="what this machine and this program can do")
    doctor.add_argument("--json", action="store_true", help="print one JSON object")
    return top


def _add_chat(chat: argparse.ArgumentParser) -> None:
    _add_model(chat)
    chat.add_argument("--draft", default="none", metavar="NAME", help="none, ngram or a model")
    chat.add_argument("--precision", choices=PRECISIONS, help="of the weights")
    chat.add_argument("--prompt", help="answer this and end; without it, read from the terminal")
    chat.add_argument("--system", help="a system text")
    chat.add_argument("--max-tokens", type=_at_least_1, metavar="N")
    chat.add_argument("--stop", action="append", default=[], metavar="TEXT", help="end before TEXT")
    chat.add_argument("--json", action="store_true", help="print one JSON object")


def _add_bench(bench: argparse.ArgumentParser) -> None:
    _add_model(bench)
    bench.add_argument(
        "--draft",
        action="append",
        metavar="NAME",
        help="none, ngram or a model; may be repeated (default: none and ngram)",
    )
    bench.add_argument(
        "--precision",
        type=_precisions,
        action="extend",
        metavar="P[,P]",
        help="fp32, bf16 or both, by comma",
    )
    bench.add_argument("--prompts", type=Path, required=True, metavar="FILE.jsonl")
    bench.add_argument("--limit", type=_at_least_1, metavar="N", help="use N prompts")
    bench.add_argument("--max-tokens", type=_at_least_1, default=96, metavar="N")
    bench.add_argument("--repeat", type=_at_least_1, default=1, metavar="R")
    bench.add_argument("--against", choices=["transformers"], help="measure that too")
    bench.add_argument("--json", type=Path, metavar="OUT", help="write the result to OUT")


def _add_model(command: argparse.ArgumentParser) -> None:
    command.add_argument("--model", required=True, metavar="NAME", help="a library name or a path")
    command.add_argument("--device", default="auto", help="auto, cuda, mps, xpu or cpu")
    command.add_argument(
        "--draft-length",
        type=_draft_length,
        default=None,
        metavar="N",
        help=f"auto, or 0 to {LONGEST_DRAFT} tokens",
    )
    command.add_argument("--temperature", type=_temperature, help="0 takes the likeliest token")
    command.add_argument("--seed", type=int)
    command.add_argument(
        "--verification",
        choices=["coupled", "rejection"],
        default="coupled",
        help="coupled: the same text with any draft; rejection: the same odds",
    )


def _at_least_1(text: str) -> int:
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise argparse.ArgumentTypeError("must be a whole number, at least 1")


def _temperature(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 100:
        raise argparse.ArgumentTypeError("must lie between 0 and 100")
    return number


def _draft_length(text: str) -> int | None:
    if text == "auto":
        return None
    if text.isdecimal() and int(text) <= LONGEST_DRAFT:
        return int(text)
    raise argparse.ArgumentTypeError(f"must be auto, or 0 to {LONGEST_DRAFT}")


def _precisions(text: str) -> list[str]:
    names = text.split(",")
    if not set(names) <= set(PRECISIONS):
        raise argparse.ArgumentTypeError(f"must be of {', '.join(PRECISIONS)}")
    return names


def run(arguments: argparse.Namespace) -> int:
    """Carry out the command; the exit code."""
    from engine.errors import Cancelled, EngineError

    commands: dict[str, Callable[[argparse.Namespace], int]] = {
        "chat": _chat,
        "bench": _bench,
        "get": _get,
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
        print(error, file=sys.stderr)
        return 1


def _mend_streams() -> None:
    """Never fail on a character: pipes of other systems are not always UTF-8."""
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=errors)


def _note(reason: "Reason") -> None:
    print(visible(reason.text), file=sys.stderr)


def visible(text: str) -> str:
    """`text` with control characters shown as marks, so that none acts on the terminal."""
    return "".join(_MARKS.get(ord(c), c) for c in text)


# U+2400: pictures of control characters; C1 controls act like escapes in some terminals.
_MARKS = {
    **{c: chr(0x2400 + c) for c in range(32) if chr(c) not in "\n\t"},
    0x7F: "\u2421",
    **dict.fromkeys(range(128, 160), "�"),
}


@contextlib.contextmanager
def _stop_flag() -> Iterator[Callable[[], bool]]:
    """Ctrl+C sets a flag, so that an answer ends with its statistics; a second one ends it all."""
    asked = False

    def ask(*_: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield lambda: asked
    finally:
        signal.signal(signal.SIGINT, before)


def _find(name: str) -> Path:
    from app import paths
    from engine.library.scan import find

    return find(name, paths.library_folders())


def _draft_choice(name: str) -> str | Path:
    return name if name in ("none", "ngram") else _find(name)


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


class _ProgressLine:
    """Progress on one line of the terminal; nothing where there is none to see it."""

    def __init__(self) -> None:
        self._shown = ""

    def __call__(self, progress: "Progress") -> None:
        if not sys.stderr.isatty():
            return
        share = progress.done / progress.total if progress.total else 0
        text = f"{progress.stage} {share:.0%}"
        if text != self._shown:
            print(f"\r{text:30}", end="", file=sys.stderr, flush=True)
            self._shown = text

    def clear(self) -> None:
        if self._shown:
            print(f"\r{'':30}\r", end="", file=sys.stderr, flush=True)
            self._shown = ""


def _chat(arguments: argparse.Namespace) -> int:
    from app import paths
    from engine.api import Message
    from engine.session import Session

    path = _find(arguments.model)
    draft = _draft_choice(arguments.draft)
    system = [Message("system", arguments.system)] if arguments.system else []
    line = _ProgressLine()
    with _stop_flag() as stopped:
        session = Session(paths.cache_folder())
        try:
            session.load_target(
                path,
                device=arguments.device,
                precision=arguments.precision,
                progress=line,
                stopped=stopped,
            )
            session.choose_draft(draft, progress=line, stopped=stopped)
            line.clear()
            if arguments.prompt is not None:
                chat = [*system, Message("user", arguments.prompt)]
                _answer(session, chat, arguments, stopped)
                return 0
        finally:
            line.clear()
            if arguments.prompt is not None:
                session.close()
    return _talk(session, system, arguments)


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
            with _stop_flag() as stopped:
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
    from engine.api import Message
    from engine.session import summary

    text = ""
    ids: list[int] = []
    last: Chunk | None = None
    for last in session.reply(chat, _sampling(arguments), _drafting(arguments), stopped=stopped):
        text += last.text
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
            "tokens": usage.tokens,
            "prompt_tokens": usage.prompt_tokens,
            "cached_tokens": usage.cached_tokens,
            "tokens_per_second": usage.tokens_per_second,
            "time_to_first_token": usage.time_to_first_token,
        },
    }


def _bench(arguments: argparse.Namespace) -> int:
    from app import paths
    from engine.bench import Plan, compare, read_prompts

    plan = Plan(
        model=_find(arguments.model),
        cache_folder=paths.cache_folder(),
        drafts=[_draft_choice(name) for name in arguments.draft or ("none", "ngram")],
        prompts=read_prompts(arguments.prompts, arguments.limit),
        precisions=arguments.precision or [None],
        max_tokens=arguments.max_tokens,
        repeat=arguments.repeat,
        device=arguments.device,
        sampling=_bench_sampling(arguments),
        drafting=_drafting(arguments),
        against_transformers=arguments.against == "transformers",
    )
    if arguments.json:
        _write(arguments.json, "")  # now rather than after minutes of measuring
    with _stop_flag() as stopped:
        report = compare(plan, lambda line: print(line, file=sys.stderr, flush=True), stopped)
    print(_table(report.as_json()))
    if arguments.json:
        _write(arguments.json, json.dumps(report.as_json(), indent=2) + "\n")
    return 0


def _write(path: Path, text: str) -> None:
    from engine.errors import EngineError

    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise EngineError(
            "cannot_write", "{path} cannot be written: {error}", path=str(path), error=str(error)
        ) from error


def _bench_sampling(arguments: argparse.Namespace) -> "Sampling":
    """Greedy and seed 0 unless asked otherwise: runs must be comparable."""
    from engine.api import Sampling

    return Sampling(temperature=arguments.temperature or 0.0, seed=arguments.seed or 0)


def _table(report: dict[str, Any]) -> str:
    heads: tuple[str, ...] = ("engine", "drafter", "precision", "tok/s", "middle half")
    heads += ("times plain", "accepted", "a round", "first token", "memory")
    lines: list[tuple[str, ...]] = [heads]
    for row in report["rows"]:
        rate, low_high = row["acceptance_rate"], row["spread"]
        length = f" {row['draft_length']}" if row["draft_length"] else ""
        lines.append(
            (
                row["engine"],
                (row["draft"] or row["drafter"]) + length,
                row["precision"],
                f"{row['tokens_per_second']:.2f}",
                f"{low_high[0]:.2f} to {low_high[1]:.2f}",
                "-" if row["speedup"] is None else f"{row['speedup']:.2f}",
                "-" if rate is None else f"{100 * rate:.0f} %",
                "-" if row["tokens_per_round"] is None else f"{row['tokens_per_round']:.2f}",
                f"{row['time_to_first_token']:.2f} s",
                f"{row['memory_bytes'] / 2**30:.2f} GiB",
            )
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(heads))]
    table = "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
    return f"{table}\ndiffering ids: {report['differing_ids']}"


def _get(arguments: argparse.Namespace) -> int:
    from app import paths
    from engine.library import starter

    line = _ProgressLine()
    with _stop_flag() as stopped:
        try:
            path = starter.fetch(paths.ensure(paths.model_folder()), line, stopped)
        finally:
            line.clear()
    print(path)
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

    from app import paths
    from engine import devices

    gpus, problem = devices.gpus()
    total, free = devices.memory()
    packages = ("torch", "transformers", "tokenizers", "gguf", "PySide6-Essentials")
    return {
        "versions": {"slipstream": version(), "python": platform.python_version()}
        | {name: metadata.version(name) for name in packages},
        "torch": {
            "build": _torch_build(torch),
            "devices": devices.available(),
            "threads": torch.get_num_threads(),
            "cpu": torch.backends.cpu.get_cpu_capability(),
        },
        "nvml": {
            "state": problem.text if problem else "answers",
            "cards": [
                f"{g.name}, {g.free / 2**30:.1f} of {g.total / 2**30:.1f} GiB free" for g in gpus
            ],
        },
        "memory": {"total": f"{total / 2**30:.1f} GiB", "free": f"{free / 2**30:.1f} GiB"},
        "folders": {
            "models": str(paths.model_folder()),
            "cache": str(paths.cache_folder()),
            "config": str(paths.config_folder()),
            "logs": str(paths.log_folder()),
        },
        "exact": {
            "rule": "coupled verification emits the target's own token at every position",
            "fp32": "same text up to rounding of near-ties; bit-exact kernels are not built yet",
            "bf16": "same text up to rounding of near-ties; they are more frequent here",
        },
    }


def _torch_build(torch: Any) -> str:
    if torch.version.cuda:
        return f"CUDA {torch.version.cuda}"
    if torch.version.hip:
        return f"ROCm {torch.version.hip}"
    return "CPU"
