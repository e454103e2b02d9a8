"""The packaged program's first lines; run by path, so that `app` is found as installed."""

import sys

from app.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
