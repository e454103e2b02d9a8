"""The graphics card add-on as the torch that is imported, and watched while it is.

It is used where it is whole and made for this program. While it is imported a mark stands: where
that still stands at the next start, or where the import fails, the program uses its own build and
says why. Imports no torch.
"""

import contextlib
import faulthandler
import functools
import importlib
import os
import signal
import sys
from collections.abc import Callable, Iterator
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from app import paths
from app.mark import Mark
from engine.errors import Reason, first_line
from engine.library import addon

# What a build of torch brings beside it, imported under these names.
ROOTS = ("torch", "torchgen", "functorch", "triton", "nvidia", "cuda")
CLOCK = 2.0  # seconds that a process's start may seem to move when the clock is set


def home() -> Path:
    """The add-on's folder."""
    return paths.data_folder() / "gpu"


def choose(packaged: Path) -> None:
    """Put the add-on before the `packaged` torch on the search path, where it may be used."""
    site = _sound(packaged)
    if site is not None:
        sys.path.insert(0, str(site))
        sys.meta_path.insert(0, _Watch(site))


def in_use() -> Path | None:
    """The folder of the add-on that this process uses, None where it uses none."""
    return next((f.site for f in sys.meta_path if isinstance(f, _Watch)), None)


def leave() -> None:
    """Use the program's own torch where none was imported yet."""
    for watch in [found for found in sys.meta_path if isinstance(found, _Watch)]:
        if "torch" not in sys.modules:
            sys.meta_path.remove(watch)
            sys.path.remove(str(watch.site))
            watch.let_go()


def version(packaged: Path) -> str:
    """The packaged torch's, without what stands behind a "+"; empty where it cannot be told."""
    note = next(packaged.glob("torch-*.dist-info"), None)
    return note.name.split("-")[1].partition("+")[0].removesuffix(".dist") if note else ""


def unmark() -> None:
    """The program ends now: if torch was being imported, that is not what ended it."""
    if in_use() is not None:
        _mark().clear()


def _sound(packaged: Path) -> Path | None:
    """Where the add-on is imported from, where it may be."""
    found = addon.read(home())
    if found is None or not found.suits(version(packaged)) or addon.refusal(home()):
        return None
    reason = _ended() or addon.trouble(home(), found)
    if reason is not None:
        addon.refuse(home(), reason)
        return None
    return home() / found.site


def _ended() -> Reason | None:
    """That the add-on ended the program while it was imported, where it did."""
    left = _mark().left
    if not left or _runs(*left.split()[:2]):
        return None
    _mark().clear()
    if len(left.split()) > 2:  # it was told to end
        return None
    return Reason(
        "addon_ended_program",
        "The graphics card add-on crashed the program when it was last loaded, so the processor is "
        "used. In the settings it can be tried again or removed.",
    )


def _this() -> str:
    """This process, told from one that has its number after a restart of the computer."""
    import psutil  # a start that imports no torch needs it not

    return f"{os.getpid()} {psutil.Process().create_time()}"


def _runs(process: str, start: str = "nan") -> bool:
    import psutil  # only where a mark stands

    with contextlib.suppress(psutil.Error, ValueError):
        return abs(psutil.Process(int(process)).create_time() - float(start)) < CLOCK
    return False


@contextlib.contextmanager
def _marked() -> Iterator[None]:
    """The mark stands. Where the system tells the program to end, that is written below it: at
    once and from any thread, which no handler of Python's can while libraries are loaded."""
    _mark().put(f"{_this()}\n")
    with contextlib.ExitStack() as until:
        until.callback(_mark().clear)
        if sys.platform != "win32":
            with contextlib.suppress(OSError):
                below = until.enter_context(_mark_path().open("ab"))
                for number in (signal.SIGTERM, signal.SIGHUP):
                    faulthandler.register(number, below, all_threads=False, chain=True)
                    until.callback(faulthandler.unregister, number)
        yield


def _mark() -> Mark:
    return Mark(_mark_path())


def _mark_path() -> Path:
    return home() / "loading"


class _Watch(MetaPathFinder):
    """Finds the add-on's torch as Python would, and watches its import."""

    def __init__(self, site: Path) -> None:
        self.site, self.let_go = site, addon.hold(site)

    def find_spec(
        self, name: str, path: Any = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "torch":
            return None
        spec = PathFinder.find_spec(name)
        if spec is not None and spec.loader is not None:
            watched = functools.partial(self._execute, spec.loader.exec_module)
            setattr(spec.loader, "exec_module", watched)  # noqa: B010  this loader alone
        return spec

    def _execute(self, execute: Callable[[ModuleType], None], module: ModuleType) -> None:
        try:
            with _marked():
                execute(module)
        except Exception as error:
            reason = Reason(
                "addon_failed",
                "The graphics card add-on cannot be loaded, so the processor is used. In the "
                "settings it can be tried again or removed. {error}",
                {"error": first_line(error)},
            )
            addon.refuse(home(), reason)
            sys.meta_path.remove(self)
            if "torch._C" in sys.modules:
                raise  # a second one beside its libraries would be no whole one
            self._fall_back(module)

    def _fall_back(self, module: ModuleType) -> None:
        """Import the program's own torch into `module`."""
        sys.path.remove(str(self.site))
        for name in [n for n in sys.modules if n.partition(".")[0] in ROOTS and n != "torch"]:
            del sys.modules[name]
        importlib.invalidate_caches()
        spec = PathFinder.find_spec("torch")
        assert spec is not None
        assert spec.loader is not None
        vars(module).clear()
        module.__name__, module.__spec__, module.__loader__ = "torch", spec, spec.loader
        module.__file__, module.__package__ = spec.origin, "torch"
        module.__path__ = spec.submodule_search_locations or []
        spec.loader.exec_module(module)
