"""Which front end starts: a terminal command, or the window."""

import multiprocessing
import sys
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
        print(NOT_KNOWN.format(word=asked.open), file=sys.stderr)
        return 2
    if asked.self_test:
        from app import self_test

        return self_test.run()
    return _open_window(wanted)


def _open_window(wanted: str) -> int:
    from app import crashes, libraries

    trouble = libraries.trouble()
    if trouble is not None:
        said, code = trouble
        print(said, file=sys.stderr)
        return code
    try:
        from app import start

        return start.open_window([], wanted)
    except OSError as error:  # a folder that cannot be made
        print(error, file=sys.stderr)
        return 1
    except Exception as error:
        return crashes.leave_early(error)


if __name__ == "__main__":
    sys.exit(main())
