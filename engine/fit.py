"""Does a target fit into memory beside its draft.

Arithmetic over `memory`'s bytes and the free memory that it is told. Asks no device.
"""

from dataclasses import dataclass
from typing import Literal

from engine import families
from engine.api import ModelInfo, Precision
from engine.errors import Reason
from engine.memory import FLOAT_BYTES, Estimate, cache_precision, estimate

Word = Literal["fits", "tight", "no", "unknown"]

MIB, GIB = 2**20, 2**30
# Free memory that should stay: programs come and go (desktop.md 7).
MARGIN_SHARE, LEAST_MARGIN = 0.05, 512 * MIB
# What CUDA and cuBLAS take in a process, whatever it computes; not measured here yet.
CUDA_CONTEXT = 550 * MIB
# The context that a chat needs; models that can do more are judged by it too.
USUAL_CONTEXT = 8192
# Positions of a prompt computed at once.
CHUNK = 128


@dataclass(frozen=True)
class Room:
    """Memory of one device now, in bytes; None: not known.

    `link`: bytes a second that can be copied there from main memory, at best.
    """

    device: str
    name: str
    total: int | None
    free: int | None
    link: float | None = None


@dataclass(frozen=True)
class Pair:
    """What shall be in memory together: `context` in tokens, `draft` None without a model. Of a
    longer context than its own, a model holds no more than that.

    `layers_in_ram` of the target lie in main memory and are copied to the device in every pass;
    their keys and values are not. `on_cards`: how many of the others lie on each card; empty: not
    settled yet (`placement`).
    """

    target: ModelInfo
    precision: Precision
    context: int
    draft: ModelInfo | None = None
    draft_precision: Precision = "int8"
    draft_length: int = 8
    layers_in_ram: int = 0
    on_cards: tuple[int, ...] = ()


@dataclass(frozen=True)
class Parts:
    """Bytes by purpose; None: the files do not say enough."""

    target_weights: int | None
    target_kv: int | None
    draft_weights: int | None
    draft_kv: int | None
    work: int | None
    overhead: int

    @property
    def need(self) -> int | None:
        """All of them."""
        known = [p for p in vars(self).values() if p is not None]
        return sum(known) if len(known) == len(vars(self)) else None


@dataclass(frozen=True)
class Fit:
    """A verdict with what it follows from. `others`: what is in use already, of `room`."""

    parts: Parts
    room: Room
    word: Word
    reason: Reason
    kv_type: Precision

    @property
    def need(self) -> int | None:
        return self.parts.need

    @property
    def others(self) -> int | None:
        if self.room.total is None or self.room.free is None:
            return None
        return self.room.total - self.room.free


def judge(pair: Pair, room: Room) -> Fit:
    """Whether `pair` fits into `room`: with a margin, without one, or not at all."""
    parts = parts_of(pair, room.device)
    word, reason = word_of(parts, room)
    if reason is UNKNOWN_MODEL:
        reason = _unknown(pair, room.device)
    return Fit(parts, room, word, reason, cache_precision(pair.target, pair.precision, room.device))


def parts_of(pair: Pair, device: str) -> Parts:
    """What `pair` takes on `device`, in bytes.

    Work space is that of the larger of the two, for they take turns: a chunk of a prompt through
    one layer, and the logits of a round, in the type that is computed in (desktop.md 7).
    """
    target = _estimate(pair.target, pair.precision, device, pair.context)
    weights, work = target.weights, _work(pair.target, pair, device)
    outside = layer_weights(pair) if pair.layers_in_ram else None
    if outside is not None and weights is not None and work is not None:
        weights -= outside * pair.layers_in_ram
        work += outside  # the copy that is computed with
    draft_weights: int | None = 0
    draft_kv: int | None = 0
    if pair.draft is not None:
        draft = _estimate(pair.draft, pair.draft_precision, device, pair.context)
        draft_weights, draft_kv = draft.weights, draft.cache
        other = _work(pair.draft, pair, device)
        work = None if work is None or other is None else max(work, other)
    overhead = CUDA_CONTEXT if device == "cuda" else 0
    return Parts(weights, target.cache, draft_weights, draft_kv, work, overhead)


def _estimate(info: ModelInfo, precision: Precision, device: str, context: int) -> Estimate:
    return estimate(info, precision, device, min(context, info.context or context))


def layer_weights(pair: Pair) -> int | None:
    """Bytes of one of the target's layers; None where layers may not lie apart from each other:
    what is quantised keeps to one device."""
    info = pair.target
    if pair.precision not in FLOAT_BYTES or info.linear is None or not info.layers:
        return None
    stored = info.format == "safetensors" and info.quantisation is not None
    return None if stored else FLOAT_BYTES[pair.precision] * info.linear // info.layers


def _work(info: ModelInfo, pair: Pair, device: str) -> int | None:
    if info.hidden_size is None or info.vocab_size is None:
        return None
    element = 4 if device == "cpu" else 2
    middle = info.intermediate_size or 4 * info.hidden_size
    layer = CHUNK * (8 * info.hidden_size + 2 * middle) * element
    return layer + (pair.draft_length + 1) * info.vocab_size * 4


def margin(total: int) -> int:
    """What should stay free of `total` bytes."""
    return max(int(MARGIN_SHARE * total), LEAST_MARGIN)


def word_of(parts: Parts, room: Room) -> tuple[Word, Reason]:
    """Verdict and reason for what takes `parts` in `room`."""
    need = parts.need
    if need is None:
        return "unknown", UNKNOWN_MODEL
    if room.free is None:
        return "unknown", UNKNOWN_ROOM
    spare = room.free - need
    if spare < 0:
        return "no", Reason("no_fit", "Does not fit, {gib} GiB short", {"gib": gib(-spare)})
    if need and spare < margin(room.total or room.free):
        return "tight", Reason("tight_fit", "Tight, {gib} GiB to spare", {"gib": gib(spare)})
    return "fits", Reason("fits", "Fits, {gib} GiB to spare", {"gib": gib(spare)})


def _unknown(pair: Pair, device: str) -> Reason:
    """Why nothing can be said of a pair on a device that tells its memory."""
    models = [info for info in (pair.target, pair.draft) if info is not None]
    untried = [i.architecture for i in models if device == "cpu" and families.held(i) is None]
    if not untried:
        return UNKNOWN_MODEL
    text = "Unknown: what {architecture} models take on a processor was never tried"
    return Reason("fit_untried", text, {"architecture": untried[0]})


UNKNOWN_MODEL = Reason("fit_unknown", "Unknown: its layers are not known")
UNKNOWN_ROOM = Reason("room_unknown", "Unknown: this device does not tell its free memory")


def gib(number: int) -> float:
    """Bytes in GiB, with one digit behind the point; never 0 for what is something."""
    return max(round(number / GIB, 1), 0.1) if number else 0.0
