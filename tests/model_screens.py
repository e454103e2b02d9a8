"""Pictures of what is told of models: which there are, which drafts fit, the way to the hub.

Models are made up, verdicts and memory are computed as for real ones; the hub is one of our own.
"""

import itertools
import json
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from huggingface_hub import constants
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

import resources
from app.viewmodels.downloads import Phase
from app.viewmodels.shelf import Gettable, Judgement
from engine import devices, guidance
from engine.api import Kind, Loaded, ModelInfo
from engine.guidance import Level, Verdict
from engine.library import catalogue, formats, own_head
from engine.library.catalogue import Catalogue
from engine.library.files import missing
from engine.library.folder import unfinished
from engine.library.scan import Entry
from engine.measured import Measurement
from engine.vocabulary import Difference
from tests.fakes import FakeShelf, ScriptedSession, entries, info, shaped
from tests.hub import Hub, serving
from tests.nvml import GIB, Card, Nvml
from tests.stage import Stage

SAMPLED = 2.2  # seconds after which another reading of memory is shown
TARGET = "Qwen2.5-Coder 7B Instruct"
SMALL = "Qwen2.5-Coder 0.5B Instruct"
LONG = "Qwen2.5-Coder-0.5B-Instruct-abliterated-distilled-long-context-v2.1-IQ4_XS"
SAME = {
    TARGET: 7.62,
    SMALL: 0.494,
    LONG: 0.494,
    "Qwen2.5 0.5B Instruct": 0.494,
    "Qwen2.5-Coder 0.5B": 0.494,
    "Qwen2.5-Coder 1.5B Instruct": 1.54,
    "Qwen2.5-Coder 1.5B": 1.54,
    "Qwen2.5-Math 1.5B Instruct": 1.54,
    "Qwen2.5-Coder 3B Instruct": 3.09,
    "Qwen2.5 3B Instruct": 3.09,
    "Qwen2.5 7B Instruct": 7.62,
    "Qwen2.5 14B Instruct": 14.8,
}
OTHERS = {
    "SmolLM2 135M Instruct": (0.135, 0),
    "SmolLM2 360M Instruct": (0.36, 0),
    "DeepSeek-R1-Distill-Qwen 1.5B": (1.54, 151_643),
    "Qwen3 0.6B": (0.6, 151_665),
    "Llama 3.1 8B Instruct": (8.03, 0),
    "Llama 3.2 1B Instruct": (1.24, 0),
    "Llama 3.2 3B Instruct": (3.21, 0),
    "Gemma 3 270M": (0.268, 0),
    "Gemma 3 1B": (1.0, 0),
    "Phi-4 mini instruct": (3.84, 0),
    "gpt-oss 20B": (20.9, 0),
}


def model(name: str, billions: float, **changes: Any) -> Entry:
    """A model of that many parameters."""
    path = Path("/models") / name.replace(" ", "-")
    told = shaped(info(path, round(billions * 1e9), name=name))
    return Entry(name, path, replace(told, **changes), None)


def usual() -> FakeShelf:
    """The models that tests pretend, with enough known of them to say whether they fit."""
    found = (replace(entry, info=entry.info and shaped(entry.info)) for entry in entries())
    return FakeShelf(list(found))


def thirty() -> list[Entry]:
    """Models of every kind of verdict."""
    halves = {
        "Qwen2.5-Coder 32B Instruct": unfinished(
            "model-00007-of-00014.safetensors.incomplete"
        ).reason,
        "Half a model": missing("model-2.safetensors").reason,
    }
    return [
        *(model(name, billions) for name, billions in SAME.items()),
        *(model(name, billions) for name, (billions, _) in OTHERS.items()),
        replace(model("Qwen2.5-Coder 0.5B Instruct AWQ", 0.494), problem=formats.refusal("awq")),
        model("EAGLE-3 head for Qwen3 8B", 0.4, kind=Kind.HEAD),
        model("Qwen2.5-Coder 7B SQL adapter", 0.04, kind=Kind.ADAPTER),
        model("Mamba 130M", 0.13, recurrent=True),
        model("A model of unknown kind", 0.5, kind=Kind.UNKNOWN),
        *(Entry(name, Path("/models") / name, None, why) for name, why in halves.items()),
    ]


class Library(FakeShelf):
    """Judges as the real one does, from what is stated in place of files; `gate` holds it up."""

    def __init__(self, found: list[Entry]) -> None:
        super().__init__(found)
        self.table = json.loads(resources.read_text("guidance.json"))
        self.catalogue = Catalogue(json.loads(resources.read_text("catalogue.json")))
        self.gate = threading.Event()
        self.gate.set()

    def judge(self, target: Entry, draft: Entry, stopped: Callable[[], bool]) -> Judgement:
        self.gate.wait()
        assert target.info is not None
        assert draft.info is not None
        return Judgement(target.path, draft.path, self._verdict(target.info, draft.info))

    def offers(self, target: ModelInfo, entries: Iterable[Entry]) -> list[Gettable]:
        made = []
        for offer in self.catalogue.offers(target, entries):
            verdict, likely = catalogue.verdict(offer, target, self.table)
            made.append(Gettable(offer, verdict, likely))
        return sorted(made, key=lambda g: (g.offer.size is None, g.offer.size, g.offer.name))

    def _verdict(self, target: ModelInfo, draft: ModelInfo) -> Verdict:
        if draft.kind is Kind.HEAD:
            return Verdict(Level.REFUSED, guidance.head_refusal("Qwen3 8B"))
        token = OTHERS.get(draft.name, (0, None))[1]
        found = None if token is None else Difference(token, "!", "<|endoftext|>")
        return guidance.judge_pair(target, draft, found, self.table)


class Machine(ScriptedSession):
    """Loads what the library holds, on `device`."""

    def __init__(self, entries: Iterable[Entry], device: str = "cpu") -> None:
        super().__init__()
        self.device, self.bit_exact = device, True
        self.auto = "int8" if device == "cpu" else "bf16"
        self.known = {entry.path: entry.info for entry in entries if entry.info is not None}

    def load_target(self, path: Path, **how: object) -> Loaded:
        loaded = super().load_target(path, **how)  # type: ignore[arg-type]
        held = self.known[path]
        return replace(
            loaded,
            info=held,
            device=self.device,
            context=held.context or 8192,
            layers_in_ram=self.layers_in_ram,
        )


@dataclass
class Memory:
    """Main memory, in GiB."""

    total: float = 16
    free: float = 13

    def read(self) -> tuple[int, int]:
        return round(self.total * GIB), round(self.free * GIB)


@contextmanager
def computer(*cards: Card) -> Iterator[Memory]:
    """A machine with these cards; what is in use is changed as it changes."""
    memory = Memory()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pynvml", Nvml(*cards))  # type: ignore[arg-type]
        patch.setattr(devices, "memory", memory.read)
        patch.setattr(devices, "likely", lambda: "cuda" if cards else "cpu")
        yield memory


def measured(rate: float, accepted: float | None) -> Measurement:
    """As an answer leaves it."""
    return Measurement(rate, accepted, 2345, "2026-12-01", "use")


def path_of(name: str) -> str:
    """The key of a made up model."""
    return str(Path("/models") / name.replace(" ", "-"))


def _staged(out: Path, shelf: Library, device: str = "cpu") -> Stage:
    """A program whose target runs, at 1440x900."""
    stage = Stage(out, Machine(shelf.found, device), shelf)
    stage.show("light", 1440, 900)
    if shelf.found:
        stage.until(lambda: stage.program.models.loaded is not None)
        stage.until(lambda: not stage.program.models.choosing)
        stage.until(lambda: stage.program.models.memory.view is not None)
    return stage


def _narrowed(stage: Stage, name: str) -> None:
    """The same at 900x600, with the sidebar open."""
    stage.program.window.resize(900, 600)
    stage.settle(0.1)
    stage.program.window.toggle_sidebar()
    stage.settle(0.1)
    stage.in_both(f"{name}-900")


def _scroll(stage: Stage, share: float) -> None:
    stage.settle(0.1)
    bar = stage.program.window.sidebar._scroll.verticalScrollBar()
    bar.setValue(round(share * bar.maximum()))


def drafts(out: Path) -> None:
    """Thirty models: the lists of drafts and of targets, the keyboard in them."""
    shelf = Library(thirty())
    shelf.own_head = Verdict(Level.GOOD, own_head.GOOD)
    shelf.measured = {
        "none": measured(48.2, None),
        "ngram": measured(60.1, 0.41),
        path_of(SMALL): measured(82.4, 0.74),
        path_of("Qwen2.5-Coder 1.5B Instruct"): measured(43.0, 0.81),
        path_of("Qwen2.5 0.5B Instruct"): measured(50.1, 0.52),
    }
    with computer() as memory:
        stage = _staged(out, shelf)
        stage.program.models.choose_draft(path_of(SMALL))
        stage.until(lambda: stage.program.models.draft == path_of(SMALL))
        memory.free = 4
        stage.settle(SAMPLED)
        for share, part in enumerate(("", "-middle", "-end")):
            _scroll(stage, share / 2)
            stage.in_both(f"drafts{part}")
        _scroll(stage, 0)
        choices = stage.program.window.sidebar.drafts.choices
        choices.setFocus(Qt.FocusReason.TabFocusReason)
        stage.in_both("drafts-keyboard")
        target = stage.program.window.sidebar.target
        target.head.click()
        stage.in_both("targets", target._popover)
        target._popover.hide()
        _narrowed(stage, "drafts")
        stage.end()


def nothing(out: Path) -> None:
    """No model at all, and only one that is not whole."""
    with computer():
        for name, found in (("no-models", []), ("no-whole-model", thirty()[-2:])):
            stage = _staged(out, Library([]))
            stage.program.models._shelf.found = found  # type: ignore[attr-defined]
            stage.program.models.start()
            stage.settle(0.2)
            stage.in_both(name)
            stage.end()


def checking(out: Path) -> None:
    """Vocabularies are not read yet."""
    shelf = Library(thirty()[:6] + thirty()[-2:])
    shelf.gate.clear()
    with computer():
        stage = _staged(out, shelf)
        stage.in_both("checking")
        shelf.gate.set()
        stage.end()


def no_fit(out: Path) -> None:
    """A running pair whose context became too long, and a target that is held back."""
    entries = [model(name, SAME[name]) for name in (TARGET, SMALL, "Qwen2.5 14B Instruct")]
    card = Card("NVIDIA GeForce RTX 4080 SUPER", total=20 * GIB, used=GIB, reserved=0)
    with computer(card):
        stage = _staged(out, Library(entries), "cuda")
        models = stage.program.models
        models.choose_draft(path_of(SMALL))
        stage.until(lambda: models.draft == path_of(SMALL))
        card.used = 19 * GIB
        stage.settle(SAMPLED)
        models.choose_context(24_576)
        _scroll(stage, 1)
        stage.in_both("no-fit")
        stage.program.window.sidebar._body.grab().save(str(out / "no-fit-whole.png"))
        _narrowed(stage, "no-fit")
        stage.program.window.resize(1440, 900)
        models.choose_target(path_of("Qwen2.5 14B Instruct"))
        stage.settle(0.1)
        _scroll(stage, 1)
        stage.in_both("held-back")
        stage.end()


def two_gpus(out: Path) -> None:
    """A target that needs two cards, and a context too long for both."""
    entries = [model(name, SAME[name]) for name in ("Qwen2.5 14B Instruct", SMALL)]
    cards = (
        Card("NVIDIA GeForce RTX 4090", "GPU-a", 24 * GIB, GIB, 0),
        Card("NVIDIA GeForce RTX 3060", "GPU-b", 12 * GIB, GIB // 4, 0),
    )
    with computer(*cards):
        stage = _staged(out, Library(entries), "cuda")
        models = stage.program.models
        models.choose_draft(path_of(SMALL))
        stage.until(lambda: models.draft == path_of(SMALL))
        _scroll(stage, 1)
        stage.in_both("two-gpus")
        models.choose_context(32_768)
        _scroll(stage, 1)
        stage.in_both("two-gpus-no-fit")
        stage.end()


SECRET = "hf_not_a_token"
CODER, GATED = "Qwen/Qwen2.5-Coder-1.5B-Instruct", "meta-llama/Llama-3.2-1B-Instruct"
QUANTISED = "bartowski/Qwen2.5-Coder-7B-Instruct-GGUF"
CONFIG = {"config.json": b'{"model_type": "llama"}', "tokenizer.json": b"{}"}


def _repositories() -> dict[str, dict[str, bytes]]:
    weights = os.urandom(6_000_000)
    whole = {**CONFIG, "model.safetensors": weights}
    names = ("IQ2_M", "Q2_K", "Q3_K_M", "Q4_K_M", "Q5_K_M", "Q6_K", "Q8_0", "f16")
    files = {
        f"Qwen2.5-Coder-7B-Instruct-{name}.gguf": weights[: (2 + place // 2) * 1_000_000]
        for place, name in enumerate(names)
    }
    more = {f"someone-{n}/Qwen2.5-Coder-7B-Instruct-tuned-{n}": whole for n in range(8)}
    return {CODER: whole, QUANTISED: files, GATED: whole, **more}


@contextmanager
def _hub() -> Iterator[Hub]:
    """A hub, and nothing of the user's asked: no token, no keyring."""
    with serving(_repositories()) as hub, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        patch.setenv("HF_ENDPOINT", hub.url)
        patch.delenv("HF_TOKEN", raising=False)
        patch.setattr(constants, "HF_HUB_OFFLINE", False)
        patch.setattr(constants, "HF_TOKEN_PATH", os.devnull)
        licence = itertools.cycle(["license:apache-2.0", "license:mit", "license:other"])
        for place, name in enumerate(hub.repositories):
            hub.facts[name] = {"tags": [next(licence)], "downloads": 2_345_678 // (place**3 + 1)}
        hub.facts[GATED] |= {"gated": "manual"}
        hub.secrets[GATED] = SECRET
        yield hub


def hub(out: Path) -> None:
    """The dialog that gets models, at its usual size and at its least in a small window."""
    for width, height, mark in ((1440, 900, ""), (900, 600, "-900")):
        with computer(), _hub() as served:
            stage = _staged(out, Library(thirty()))
            stage.program.window.resize(width, height)
            stage.settle(0.1)
            _visit(stage, served, mark)
            stage.end()


def _visit(stage: Stage, served: Hub, mark: str) -> None:
    """One after the other all that the dialog can say."""
    desk, dialog = stage.program.hub, stage.program.window.hub

    def take(name: str) -> None:
        stage.in_both(f"hub-{name}{mark}", dialog)

    def read() -> None:
        stage.until(lambda: desk.detail is not None and not desk.detail.reading)

    desk.open()
    if mark:
        dialog.resize(dialog.minimumSize())
        dialog.move(stage.program.window.rect().center() - dialog.rect().center())
    take("empty")
    served.busy = {"/api/models": [(429, {"Retry-After": "6"})]}
    dialog.field.setText("qwen coder")
    dialog.look.click()
    stage.until(lambda: "asks to wait" in desk.said)
    take("waiting")
    stage.until(lambda: not desk.searching)
    take("results")
    desk.choose(CODER)
    read()
    take("chosen")
    served.pause = 0.02
    dialog.detail.get.click()
    stage.until(lambda: " left" in dialog.downloads.lines[f"{CODER}/model.safetensors"].text.text())
    served.pause = 2.0  # so that what is said stays
    take("running")
    _get_others(stage, served, take, read)
    desk.choose(GATED)
    read()
    take("gated")
    desk.set_offline(True)
    desk.search("qwen")
    read()
    stage.settle(0.3)
    take("offline")
    QApplication.processEvents()


def _get_others(
    stage: Stage, served: Hub, take: Callable[[str], None], read: Callable[[], None]
) -> None:
    """Downloads that are paused, wait and have failed."""
    desk, dialog = stage.program.hub, stage.program.window.hub
    file = "Qwen2.5-Coder-7B-Instruct-Q4_K_M.gguf"
    first, second = f"{CODER}/model.safetensors", f"{QUANTISED}/{file}"

    def is_in(key: str, phase: Phase) -> bool:
        return any(item.key == key and item.phase is phase for item in desk.downloads.items)

    desk.choose(QUANTISED)
    read()
    take("collection")
    desk.choose_file(file)
    read()
    dialog.detail.get.click()
    stage.settle(0.2)
    take("two")
    desk.downloads.pause(first)
    stage.until(lambda: is_in(first, Phase.PAUSED))
    take("paused")
    desk.downloads.pause(second)
    stage.until(lambda: is_in(second, Phase.PAUSED))
    served.fail["resolve"] = (403, {})
    desk.downloads.resume(second)
    stage.until(lambda: is_in(second, Phase.FAILED))
    served.fail.clear()
    take("failed")


PICTURES: dict[str, Callable[[Path], None]] = {
    "drafts": drafts,
    "nothing": nothing,
    "checking": checking,
    "no-fit": no_fit,
    "two-gpus": two_gpus,
    "hub": hub,
}
