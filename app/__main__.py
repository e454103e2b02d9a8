"""Which front end starts: a terminal command, or the window."""

import contextlib
import multiprocessing
import sys
import time
from collections.abc import Sequence

from app import bundle, cli, request, streams, torch_build

NOT_KNOWN = (
    "“{word}” is no command, no model's file or folder and no chat's id. "
    "slipstream --help lists the commands."
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `slipstream` with these arguments (default: the process's); the exit code."""
    streams.settle()
    multiprocessing.freeze_support()
    bundle.settle()
    torch_build.choose()
    asked = cli.parse(arguments)
    if asked.command:
        return cli.run(asked)
    wanted = request.whole(asked.open)
    if wanted and request.read(wanted) is None:
        return _end(NOT_KNOWN.format(word=asked.open), 2)
    if asked.self_test:
        from app import self_test

        return self_test.run()
    return _open_window(wanted)


def _open_window(wanted: str) -> int:
    from app import crashes, libraries

    trouble = libraries.trouble()
    if trouble is not None:
        return _end(*trouble)
    try:
        from app import start

        return start.open_window([], wanted)
    except Exception as error:
        return crashes.leave_early(error)


def _end(said: str, code: int) -> int:
    """Say why no window opens, in the log too: who starts it from a menu sees no terminal."""
    from app import paths, report

    print(said, file=sys.stderr)
    with contextlib.suppress(OSError):
        log = paths.ensure(paths.log_folder()) / report.LOG
        with log.open("a", encoding="utf-8", errors="replace") as file:
            file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S,000')} ERROR app {said}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
