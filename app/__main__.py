"""Which front end starts: a terminal command, or the window."""

import multiprocessing
import sys
import time
from collections.abc import Sequence

from app import cli


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `slipstream` with these arguments (default: the process's); the exit code."""
    began = time.monotonic()
    multiprocessing.freeze_support()
    asked = cli.parser().parse_args(arguments)
    if asked.command:
        return cli.run(asked)
    from app import smoke, start

    try:
        return smoke.run(began) if asked.smoke else start.open_window([])
    except OSError as error:  # a folder that cannot be made
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
