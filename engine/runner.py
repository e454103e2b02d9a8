"""How a model's rows are computed: in any number at once, or answers in blocks of one shape.

The first is for kernels whose rows do not depend on each other. The second is for the others:
which way a row is computed follows from its role alone. Knows no text and no conversation.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

import torch

from engine.cache import BlockCache, Cache
from engine.errors import Reason
from engine.kernels import graphs
from engine.kernels.graphs import BLOCK, Graphs, bucket_of
from engine.mixers import take_rows
from engine.roles import PREFILL_CHUNK, Role, next_border, roles, unchanged
from engine.states import Found, Tap

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Runner(Protocol):
    """Runs a network over token ids and keeps what it has seen in `cache`.

    `by_role`: prompt and answer rows may differ in their bits. The first place where how a row is
    computed changes is `border`. `notes` say what could not be done.
    """

    by_role: bool
    border: int

    @property
    def cache(self) -> Cache: ...

    @property
    def notes(self) -> list[Reason]: ...

    def feed(self, tokens: Sequence[int], answers: Sequence[range]) -> None:
        """Take `tokens` into the cache, those of `answers` as answer rows."""
        ...

    def forward(self, tokens: Sequence[int], rows: int) -> torch.Tensor:
        """Feed `tokens`, answer rows all; the logits of the last `rows`, [rows, vocab]."""
        ...

    def rewind(self, length: int, total: int, answers: Sequence[range]) -> None:
        """Hold at most `length` tokens of a text of `total`, computed as if all were fed anew."""
        ...

    def limit(self, context: int) -> None:
        """Never be fed more than `context` tokens from now on."""
        ...

    def free(self) -> None:
        """Hold nothing and give the memory back."""
        ...


class AnyRows:
    """Passes of any number of rows. Roles are of no account."""

    by_role = False
    border = PREFILL_CHUNK

    def __init__(self, network: "PreTrainedModel", context: int, tap: Tap) -> None:
        self._network, self._tap = network, tap
        self.cache = Cache(network.config, context)
        self.notes: list[Reason] = []

    def feed(self, tokens: Sequence[int], answers: Sequence[range] = ()) -> None:
        start = 0
        while start < len(tokens):
            chunk = tokens[start : start + next_border(self.cache.length) - self.cache.length]
            self._pass(chunk, rows=1)
            start += len(chunk)

    def forward(self, tokens: Sequence[int], rows: int) -> torch.Tensor:
        last = max(rows, 1)
        if len(tokens) > max(PREFILL_CHUNK, last):
            self.feed(tokens[: len(tokens) - last])
            tokens = tokens[len(tokens) - last :]
        return self._pass(tokens, last)

    def rewind(self, length: int, total: int, answers: Sequence[range]) -> None:
        self.cache.crop_to(length)

    def limit(self, context: int) -> None:
        self.cache.limit = context

    def free(self) -> None:
        self.cache.free()

    def _pass(self, tokens: Sequence[int], rows: int, notes: int | None = None) -> torch.Tensor:
        start = self.cache.length
        logits = run(self._network, self.cache, tokens, rows, notes)
        self._tap.tell(self._tap.take(), start, len(tokens))
        return logits


class Stateful(AnyRows):
    """Prompts in chunks; in answers a running state is computed row by row, all else at once.

    A state summed over a chunk is not, to the bit, the one summed row by row. And row by row it
    can be noted before each, so that what a round rejects is taken back without feeding again.
    """

    by_role = True

    def __init__(self, network: "PreTrainedModel", context: int, tap: Tap) -> None:
        super().__init__(network, context, tap)
        take_rows(network)
        self._held: list[Role] = []

    def feed(self, tokens: Sequence[int], answers: Sequence[range] = ()) -> None:
        start = self.cache.length
        done = 0
        for role, group in groupby(roles(start, start + len(tokens), answers)):
            part = tokens[done : done + len(list(group))]
            if role is None:
                self._answer(part)
            else:
                self._held[self.cache.length :] = [role] * len(part)
                self._pass(part, rows=1)
            done += len(part)

    def forward(self, tokens: Sequence[int], rows: int) -> torch.Tensor:
        last = max(rows, 1)
        if len(tokens) > max(PREFILL_CHUNK, last):
            self._answer(tokens[: len(tokens) - last])
            tokens = tokens[len(tokens) - last :]
        return self._rows(tokens, last, notes=last)

    def rewind(self, length: int, total: int, answers: Sequence[range]) -> None:
        held = self._held[: min(length, self.cache.length)]
        self.cache.crop_to(unchanged(held, roles(0, total, answers)))

    def _answer(self, tokens: Sequence[int]) -> None:
        for start in range(0, len(tokens), PREFILL_CHUNK):
            self._rows(tokens[start : start + PREFILL_CHUNK], 1, notes=0)

    def _rows(self, tokens: Sequence[int], rows: int, notes: int) -> torch.Tensor:
        self._held[self.cache.length :] = [None] * len(tokens)
        return self._pass(tokens, rows, notes)


class Blocks:
    """Prompts in chunks, answers in blocks of BLOCK rows that are played from a graph.

    A block never crosses a bucket's border: each row is computed in the bucket of its own
    position. `stopped` raises when the user asked for a stop; it is called before every block.
    """

    by_role = True
    border = graphs.SHORTEST

    def __init__(
        self, network: "PreTrainedModel", context: int, tap: Tap, stopped: Callable[[], None]
    ) -> None:
        graphs.register()
        self._tap = tap
        # where a captured block leaves its states
        self._states: dict[int, Found] = {}
        self._network, self._context, self._stopped = network, context, stopped
        self.cache = BlockCache(network.config)
        # the ids of a block's rows, and the position of the first
        self._fed = torch.zeros(BLOCK + 1, dtype=torch.long, device=network.device)
        self._places = torch.arange(BLOCK, device=network.device)
        places = getattr(network, "hf_device_map", {}).values()
        self._graphs = Graphs(self._compute, network.device, apart=len(set(places)) > 1)
        self._held: list[Role] = []

    @property
    def notes(self) -> list[Reason]:
        return self._graphs.notes

    def feed(self, tokens: Sequence[int], answers: Sequence[range] = ()) -> None:
        start = self.cache.length
        plan = roles(start, start + len(tokens), answers)
        done = 0
        for role, group in groupby(plan):
            part = tokens[done : done + len(list(group))]
            if role is None:
                for _ in self._blocks(part):
                    pass
            else:
                self._prompt(part, role)
            done += len(part)

    def forward(self, tokens: Sequence[int], rows: int) -> torch.Tensor:
        found = torch.cat(list(self._blocks(tokens)))
        return found[-max(rows, 1) :]

    def rewind(self, length: int, total: int, answers: Sequence[range]) -> None:
        held = self._held[: min(length, self.cache.length)]
        self.cache.crop_to(unchanged(held, roles(0, total, answers)))

    def limit(self, context: int) -> None:
        # buckets follow the model's own context: where a row is computed must not depend on this
        pass

    def free(self) -> None:
        self._graphs.drop()
        self.cache.free()

    def _prompt(self, tokens: Sequence[int], chunk: range) -> None:
        start = self.cache.length
        self._make_room(bucket_of(start + len(tokens) - 1, self._context))
        run(self._network, self.cache, tokens, rows=1)
        self._tap.tell(self._tap.take(), start, len(tokens))
        self._held[start:] = [chunk] * len(tokens)

    def _blocks(self, tokens: Sequence[int]) -> Iterator[torch.Tensor]:
        """Feed `tokens` as answer rows; their logits, block by block."""
        done = 0
        while done < len(tokens):
            start = self.cache.length
            bucket = bucket_of(start, self._context)
            part = tokens[done : done + min(BLOCK, bucket - start)]
            self._stopped()
            self._make_room(bucket)
            # padding writes behind the text, where the next pass writes before anyone looks
            padded = [*part, *[part[-1]] * (BLOCK - len(part)), start]
            self._fed.copy_(torch.tensor(padded))
            logits = self._run(bucket)
            self.cache.grew(len(part))
            self._held[start:] = [None] * len(part)
            self._states[bucket] = self._tap.take() or self._states.get(bucket, {})
            self._tap.tell(self._states[bucket], start, len(part))
            yield logits[: len(part)].clone()
            done += len(part)

    @torch.inference_mode()
    def _run(self, bucket: int) -> torch.Tensor:
        return self._graphs.run(bucket, (self.cache.allotment, self._tap.version))

    def _compute(self, bucket: int) -> torch.Tensor:
        """The block that lies in `_fed`, its keys read up to `bucket`; logits [BLOCK, vocab]."""
        rows = self._fed[BLOCK] + self._places
        with graphs.fixed_shapes(self._network):
            out = self._network(
                input_ids=self._fed[None, :BLOCK],
                # padding at positions that the model has not would be looked up in vain
                position_ids=rows.clamp(max=bucket - 1)[None],
                cache=self.cache.opened_for_block(rows, bucket),
                use_cache=True,
                logits_to_keep=BLOCK,
            )
        logits: torch.Tensor = out.logits[0]
        return logits

    def _make_room(self, bucket: int) -> None:
        if self.cache.room < bucket + BLOCK:
            self._graphs.drop()
            self.cache.grow(bucket + BLOCK)


@torch.inference_mode()
def run(
    network: "PreTrainedModel",
    cache: Cache,
    tokens: Sequence[int],
    rows: int,
    notes: int | None = None,
) -> torch.Tensor:
    """One pass of `network` over `tokens`; the logits of the last `rows`, [rows, vocab].

    `notes`: as `Cache.opened` has it.
    """
    ids = torch.tensor([tokens], dtype=torch.long, device=network.device)
    more = {}
    if cache.has_running_state:  # Bamba counts every pass from 0 when it is not told
        more["position_ids"] = cache.length + torch.arange(len(tokens), device=network.device)[None]
    try:
        opened = cache.opened(notes)
        out = network(input_ids=ids, cache=opened, use_cache=True, logits_to_keep=rows, **more)
    except BaseException:
        cache.broke(len(tokens))
        raise
    cache.grew(len(tokens))
    logits: torch.Tensor = out.logits[0]
    return logits
