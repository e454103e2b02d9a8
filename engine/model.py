"""A language model with its cache: token ids in, logits out. The only place that runs one."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from engine.cache import Cache
from engine.errors import Cancelled

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Prompt positions are computed in chunks that end at multiples of this, so that how a prompt is
# split does not depend on what was cached. At 128 a layer of a 1.5B model takes 0.2 s on two slow
# CPU cores: a stop, asked for between layers, is heard in time.
PREFILL_CHUNK = 128


def next_border(position: int) -> int:
    """The end of the prompt chunk that `position` lies in."""
    return (position // PREFILL_CHUNK + 1) * PREFILL_CHUNK


class LanguageModel:
    """A causal language model and what it has been fed so far.

    `vocab_size` counts the rows of its output matrix, `context` its positions, in tokens. While
    it computes it asks `stopped` before every layer, so a long pass can be broken off.
    """

    def __init__(self, network: "PreTrainedModel", context: int) -> None:
        self.network = network
        self.context = context
        self.device = network.device
        self.cache = Cache(network.config)
        self.stopped: Callable[[], bool] = lambda: False
        self.vocab_size = int(network.get_output_embeddings().weight.shape[0])
        for layer in _layers(network):
            layer.register_forward_pre_hook(self._check_stop)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the weights; a matrix that serves twice counts once."""
        tensors = {p.data_ptr(): p for p in self.network.parameters()}.values()
        return sum(p.numel() * p.element_size() for p in tensors)

    def feed(self, tokens: Sequence[int]) -> None:
        """Take `tokens` into the cache, chunk by chunk.

        Raises Cancelled when `stopped` says so; the cache then holds the chunks done.
        """
        start = 0
        while start < len(tokens):
            chunk = tokens[start : start + next_border(self.cache.length) - self.cache.length]
            self._pass(chunk, rows=1)
            start += len(chunk)

    def forward(self, tokens: Sequence[int], rows: int = 1) -> torch.Tensor:
        """Feed `tokens`; the logits that follow each of the last `rows` of them, [rows, vocab].

        Raises Cancelled as `feed` does.
        """
        last = max(rows, 1)
        if len(tokens) > max(PREFILL_CHUNK, last):
            self.feed(tokens[: len(tokens) - last])
            tokens = tokens[len(tokens) - last :]
        return self._pass(tokens, last)

    @torch.inference_mode()
    def _pass(self, tokens: Sequence[int], rows: int) -> torch.Tensor:
        ids = torch.tensor([tokens], dtype=torch.long, device=self.device)
        try:
            out = self.network(
                input_ids=ids, cache=self.cache.opened(), use_cache=True, logits_to_keep=rows
            )
        except BaseException:
            self.cache.broke(len(tokens))
            raise
        self.cache.grew(len(tokens))
        logits: torch.Tensor = out.logits[0]
        return logits

    def _check_stop(self, *_: Any) -> None:
        if self.stopped():
            raise Cancelled()


def _layers(network: torch.nn.Module) -> list[torch.nn.Module]:
    """The decoder's layers: the longest list of modules; models name it differently."""
    lists = [m for m in network.modules() if isinstance(m, torch.nn.ModuleList)]
    return list(max(lists, key=len, default=[]))
