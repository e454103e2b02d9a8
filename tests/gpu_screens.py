"""Pictures of what is told of the graphics card, in each state; nothing is fetched."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app import gpu_addon, graphics
from app.graphics import Outlook, State
from app.viewmodels.gpu import View
from engine.api import Progress
from engine.errors import Reason
from tests.model_screens import usual
from tests.nvml import Card
from tests.stage import Stage, exact

SIZE, DISK = 2_730_285_200, 4_590_777_472
CARDS = [graphics.nvml.Gpu(Card.name, "", capability=(8, 9))]


def states() -> dict[str, Outlook]:
    """By the name of the picture."""
    offer = Outlook(
        State.OFFERED, Reason("gpu_offered", "", {"card": Card.name}), "", SIZE, 0, DISK
    )
    refused = Reason(
        "addon_failed",
        "The graphics card add-on cannot be loaded, so the processor is used. In the settings it "
        "can be tried again or removed. {error}",
        {"error": "libcudart.so.13: cannot open shared object file: No such file or directory"},
    )
    old = Reason(
        "gpu_old_driver",
        "The driver of the graphics card is version {have}; version {need} or newer is needed to "
        "compute on it. Update NVIDIA's driver, then look here again.",
        {"have": "550.54.14", "need": "580.65.06"},
    )
    return {
        "offered": replace(offer, said=_offered()),
        "begun": replace(offer, said=_offered(), come=SIZE // 3),
        "ready": Outlook(State.READY, graphics._ready(CARDS, False), unpacked=DISK),
        "used": Outlook(State.USED, graphics._ready(CARDS, True), unpacked=DISK),
        "refused": Outlook(State.REFUSED, refused, unpacked=DISK, fresh=True),
        "old-driver": Outlook(State.TOLD, old),
        "rocm": Outlook(
            State.TOLD,
            graphics._rocm(),
            graphics._anew(graphics.ROCM_INDEX),
        ),
    }


def _offered() -> Reason:
    return Reason(
        "gpu_offered",
        "Slipstream can compute on the graphics card, {card}, with an add-on that is downloaded "
        "once.",
        {"card": Card.name},
    )


def gpu(out: Path) -> None:
    """Each state in the settings, and the pointer in the sidebar."""
    for name, outlook in states().items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(graphics, "look", lambda o=outlook: o)
            for nothing in ("tidy", "note_told"):
                patch.setattr(gpu_addon, nothing, lambda: None)
            stage = Stage(out, exact(), usual())
            stage.show("light", 1440, 900)
            stage.settle(0.3)
            if name == "offered":
                stage.in_both("gpu-hint")
            if name == "refused":
                stage.shoot("gpu-refused-bar")
            stage.program.window.show_gpu()
            stage.settle(0.2)
            stage.in_both(f"gpu-{name}", stage.program.window.settings)
            if name == "offered":
                stage.program.gpu._run(View(_coming(), share=0.34))
                stage.in_both("gpu-coming", stage.program.window.settings)
            stage.end()


def _coming() -> str:
    from app.viewmodels import words

    return words.coming(Progress("download", SIZE // 3, SIZE), 11_300_000)


PICTURES: dict[str, Callable[[Path], None]] = {"gpu": gpu}
