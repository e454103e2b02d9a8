"""Whether a loaded model gives each row the same bits, however its rows are fed.

Decides by trying, on the model itself: nothing about processors or libraries is assumed.
"""

import os
import random
from typing import Any

import torch
import transformers

from engine.cache import BlockCache
from engine.kernels import decoder
from engine.kernels.attention import is_asked
from engine.kernels.network import finely, take_attention
from engine.model import LanguageModel

# Rows computed one by one and in blocks: more than a round drafts, over a bucket's border.
ROWS = 20
BLOCKS = (2, 3, 5, 8, 17)
# Raise it when kernels change: what was found of the old ones says nothing about the new.
CHECK = 3
# How far our attention may be from the library's, of the logits' own size.
NEAR = 0.01
# The same for blocks, that are computed in 16 bits by other kernels; a wrong mask is off by 1.
NEAR_IN_16_BITS = 0.1


def attend(model: LanguageModel) -> bool:
    """Let `model` attend by our function if it then says the same; whether it does."""
    tokens = _tokens(model, 12)
    network: Any = model.network
    before = network.config._attn_implementation
    expected = _forward(model, tokens)
    take_attention(network)
    if network.config._attn_implementation == before:
        return False
    try:
        found = _forward(model, tokens)
    except (TypeError, ValueError, RuntimeError, AttributeError, IndexError):
        found = torch.full_like(expected, float("nan"))
    if _near(found, expected):
        _shorten(model, tokens, expected)
        return True
    network.set_attn_implementation(before)
    model.cache.empty()
    return False


def _shorten(model: LanguageModel, tokens: list[int], expected: torch.Tensor) -> None:
    """Compute the layers in fewer operations, if the result is then still the same."""
    if not decoder.shorten(model.network):
        return
    try:
        found = _forward(model, tokens)
    except (TypeError, ValueError, RuntimeError, AttributeError, IndexError):
        found = torch.full_like(expected, float("nan"))
    if not _near(found, expected):
        decoder.restore(model.network)
        model.cache.empty()


def _near(found: torch.Tensor, expected: torch.Tensor) -> bool:
    return float((found - expected).norm()) <= NEAR * float(expected.norm())


def take_blocks(model: LanguageModel) -> bool:
    """Let `model` compute answers in blocks if it then says the same; whether it does."""
    network: Any = model.network
    if not (is_asked(network) and BlockCache.suits(network.config)):
        return False
    tokens = _tokens(model, 12)
    expected = _forward(model, tokens)
    model.compute_in_blocks()
    try:
        found = _forward(model, tokens)
    except (TypeError, ValueError, AttributeError, IndexError):
        found = torch.full_like(expected, float("nan"))
    if float((found - expected).norm()) <= NEAR_IN_16_BITS * float(expected.norm()):
        return True
    model.compute_in_blocks(False)
    return False


def check(model: LanguageModel) -> bool:
    """Whether rows fed one by one, in blocks, and with the prompt have the same bits.

    Runs the model over a few hundred tokens and leaves its cache empty. Raises Cancelled when
    `model.stopped` says so.
    """
    start = min(model.runner.border, model.context // 2) - ROWS // 2
    # a running state is another sum when it was fed in other chunks, whether it shows or not
    if start < 1 or (model.cache.has_running_state and not model.runner.by_role):
        return False
    tokens = _tokens(model, start + ROWS)
    try:
        model.cache.empty()
        model.feed(tokens[:start])
        alone = torch.cat([model.forward([token]) for token in tokens[start:]])
        return all(torch.equal(alone, _blocks(model, tokens, start, b)) for b in BLOCKS) and (
            torch.equal(alone, _refed(model, tokens, start))
        )
    finally:
        model.cache.empty()


def stamp(model: LanguageModel) -> str:
    """What a check's result holds for, besides the model: libraries, processor, threads."""
    if model.device.type == "cuda":
        card = torch.cuda.get_device_name(model.device)
        libraries = f"{torch.__version__} {torch.version.cuda} {transformers.__version__}"
        return f"{CHECK} {libraries} {card} {type(model.runner).__name__}"
    capability = torch.backends.cpu.get_cpu_capability()
    libraries = f"{torch.__version__} {transformers.__version__}"
    return f"{CHECK} {libraries} {capability} {torch.get_num_threads()} {os.cpu_count()}"


def _blocks(model: LanguageModel, tokens: list[int], start: int, size: int) -> torch.Tensor:
    model.cache.crop_to(start)
    # a model whose state cannot be taken back begins anew
    model.feed(tokens[model.cache.length : start])
    places = range(start, len(tokens), size)
    return torch.cat(
        [model.forward(tokens[at : at + size], rows=len(tokens[at : at + size])) for at in places]
    )


def _refed(model: LanguageModel, tokens: list[int], start: int) -> torch.Tensor:
    """All anew, in other chunks: as after an edit or a restart."""
    model.cache.empty()
    model.feed(tokens[: ROWS + 3])
    if model.runner.by_role:
        model.rewind(ROWS + 3, start)
        model.feed(tokens[model.cache.length : start])
    return model.forward(tokens[model.cache.length :], rows=ROWS)


def _forward(model: LanguageModel, tokens: list[int]) -> torch.Tensor:
    model.cache.empty()
    with finely(model.network):
        found = model.forward(tokens, rows=len(tokens)).float()
    model.cache.empty()
    return found


def _tokens(model: LanguageModel, count: int) -> list[int]:
    choose = random.Random(0)
    return [choose.randrange(model.vocab_size) for _ in range(count)]
