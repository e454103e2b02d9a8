"""Which build of torch the packaged program uses. Chosen before anything imports it."""

import sys

from app import bundle


def choose() -> None:
    """Have torch imported from the build in use. Does nothing where torch is installed."""
    packaged = bundle.torch()
    if packaged is not None:
        sys.path.insert(0, str(packaged))
