"""Which build of torch the packaged program uses. Chosen before anything imports it.

Its own is for the processor; the graphics card add-on in the data folder goes before it. Whatever
is wrong with that one, the program starts.
"""

import contextlib
import sys

from app import bundle


def choose() -> None:
    """Have torch imported from the build in use. Does nothing where torch is installed. Never
    raises."""
    packaged = bundle.torch()
    if packaged is None:
        return
    sys.path.insert(0, str(packaged))
    with contextlib.suppress(Exception):
        from app import torch_addon  # only the packaged program waits for what it imports

        torch_addon.choose(packaged)
