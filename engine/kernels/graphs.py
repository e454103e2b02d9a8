"""A computation of one shape, captured as CUDA graphs, and the attention that fits into one.

A block is always BLOCK rows, the last ones padding. Its inputs lie in tensors that stay where
they are; its mask follows from its position, read on the device; its keys are read up to a bucket's
end. So nothing in it depends on a number of Python's but the bucket, and one graph per bucket
does. Graphs are captured by hand: there is no compiler in the bundle. Knows no model and no cache.
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from engine.errors import Reason, first_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel

NAME = "slipstream-block"
# Rows of a block: as many as a round of drafts needs as a rule, and half of what a tensor core's
# tile has, so that 1 and 8 cost the same.
BLOCK = 8
# The shortest bucket, in tokens; below, the weights outweigh the keys by far.
SHORTEST = 512
# Passes before a capture, in which libraries allot what they need.
WARM_UP = 2


def bucket_of(position: int, context: int) -> int:
    """How many keys the row at `position` reads: a power of two or three quarters of one.

    Never much more than the model's `context`.
    """
    size = max(SHORTEST, 1 << position.bit_length())
    if size > SHORTEST and position < size // 4 * 3:
        size = size // 4 * 3
    return min(size, -(-context // 256) * 256)


APART = Reason(
    "layers_apart",
    "The layers of this model do not all lie on one device, so its steps run one by one, which is "
    "slower.",
)


class Graphs:
    """`compute(bucket)` on `device`, captured once for each bucket and then played.

    Elsewhere than on CUDA, where it goes over several devices, and where a capture fails, it is
    simply called; `notes` say of the last two. What it returns is overwritten by the next run.
    """

    def __init__(
        self, compute: Callable[[int], torch.Tensor], device: torch.device, apart: bool = False
    ) -> None:
        self._compute = compute
        self.captures = device.type == "cuda" and not apart
        self.notes: list[Reason] = [APART] if apart else []
        self._graphs: dict[int, tuple[torch.cuda.CUDAGraph, torch.Tensor]] = {}
        self._made_for: Hashable = 0

    def run(self, bucket: int, allotment: Hashable) -> torch.Tensor:
        """The result for `bucket`. `allotment` names the memory that the computation works on, and
        what else it was captured for."""
        if allotment != self._made_for:
            self._graphs.clear()
            self._made_for = allotment
        if self.captures and bucket not in self._graphs:
            self._capture(bucket)
        if not self.captures:
            return self._compute(bucket)
        graph, result = self._graphs[bucket]
        graph.replay()
        return result

    def drop(self) -> None:
        """Forget all graphs and give their memory back."""
        self._graphs.clear()

    def _capture(self, bucket: int) -> None:
        try:
            self._warm_up(bucket)
            graph = torch.cuda.CUDAGraph()
            # other threads may use CUDA meanwhile
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                result = self._compute(bucket)
            self._graphs[bucket] = graph, result
        except RuntimeError as error:
            self.captures = False
            self._graphs.clear()
            self.notes.append(
                Reason(
                    "no_graphs",
                    "This model's steps cannot be recorded for the graphics card, so they run one "
                    "by one, which is slower: {error}",
                    {"error": first_line(error)},
                )
            )

    def _warm_up(self, bucket: int) -> None:
        stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(WARM_UP):
                self._compute(bucket)
        torch.cuda.current_stream().wait_stream(stream)


def seen(
    *,
    q_length: int,
    kv_length: int,
    q_offset: int | torch.Tensor,
    mask_function: Callable[..., torch.Tensor],
    device: torch.device | str = "cpu",
    **_more: Any,
) -> torch.Tensor:
    """Which keys each row of a block may look at, [rows, keys]: what transformers calls the mask.

    `q_offset` is the position of the first row, on the device.
    """
    zero = torch.zeros((), dtype=torch.long, device=device)
    rows = q_offset + torch.arange(q_length, device=device)[:, None]
    keys = torch.arange(kv_length, device=device)[None, :]
    found: torch.Tensor = mask_function(zero, zero, rows, keys)
    return found.expand(q_length, kv_length)


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor,
    *,
    scaling: float,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **_more: Any,
) -> tuple[torch.Tensor, None]:
    """transformers' attention call: query [1, heads, rows, size] to [1, rows, heads, size].

    Two products, grouped by key head, so that keys are read once and never repeated. What may not
    be looked at gets the least score and not minus infinity: a row of padding may see nothing at
    all, and must not write keys that are no numbers.
    """
    _, heads, rows, size = query.shape
    key_heads, keys = key.shape[1], key.shape[2]
    grouped = query[0].reshape(key_heads, heads // key_heads * rows, size)
    scores = torch.bmm(grouped, key[0].transpose(1, 2)).float() * scaling
    scores = scores.view(key_heads, -1, rows, keys)
    if softcap is not None:
        scores = torch.tanh(scores / softcap) * softcap
    scores = scores.masked_fill(~attention_mask, torch.finfo(scores.dtype).min)
    if s_aux is not None:
        # a score per head that takes weight and gives nothing (gpt-oss)
        sinks = s_aux.float().view(key_heads, -1, 1, 1).expand(*scores.shape[:3], 1)
        scores = torch.cat([scores, sinks], -1)
    weights = scores.softmax(-1)[..., :keys].to(value.dtype)
    out = torch.bmm(weights.reshape(key_heads, -1, keys), value[0])
    return out.view(1, heads, rows, -1).transpose(1, 2), None


@contextmanager
def fixed_shapes(network: "PreTrainedModel") -> Iterator[None]:
    """Within it, no shape in `network` depends on what it computes.

    It attends as a block does; and each row multiplies its own experts, gathered for it, where
    otherwise as many rows as chose an expert would be multiplied together.
    """
    config: Any = network.config.get_text_config(decoder=True)
    before = config._attn_implementation, config._experts_implementation
    config._attn_implementation, config._experts_implementation = NAME, "batched_mm"
    try:
        yield
    finally:
        config._attn_implementation, config._experts_implementation = before


def register() -> None:
    """Make `attend` known to transformers under NAME. May be repeated."""
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(NAME, attend)
    AttentionMaskInterface.register(NAME, seen)
