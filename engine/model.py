"""A language model with its cache: token ids in, logits out. The only place that runs one."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch

from engine import families
from engine.cache import Cache
from engine.errors import Cancelled, Reason
from engine.kernels.attention import NAME
from engine.kernels.network import kernels, release
from engine.runner import AnyRows, Blocks, Runner, Stateful
from engine.states import Listener, Tap, turned_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class LanguageModel:
    """A causal language model and what it has been fed so far.

    `vocab_size` counts the rows of its output matrix, `context` its positions, in tokens. While
    it computes it asks `stopped` before every layer, so a long pass can be broken off.
    """

    def __init__(self, network: "PreTrainedModel", context: int) -> None:
        self.network = network
        self.context = context
        self.device = network.device
        self._tap = Tap(network)
        self.runner = self._runner()
        self.stopped: Callable[[], bool] = lambda: False
        output: Any = network.get_output_embeddings()
        self.vocab_size = int(output.out_features)
        for layer in layers(network):
            layer.register_forward_pre_hook(self._check_stop)

    @property
    def cache(self) -> Cache:
        """What it has been fed."""
        return self.runner.cache

    @property
    def notes(self) -> list[Reason]:
        """What could not be done for this model, and why."""
        return self.runner.notes

    def limit(self, context: int) -> None:
        """Hold at most `context` tokens from now on."""
        self.context = context
        self.runner.limit(context)

    def compute_in_blocks(self, yes: bool = True) -> None:
        """Compute answers in blocks of one shape from now on, or no more; nothing is held then."""
        self.runner.free()
        if yes:
            self.runner = Blocks(self.network, self.context, self._tap, self._check_stop)
        else:
            self.runner = self._runner()

    @torch.inference_mode()
    def embed(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of its table for `ids` [n], as the published model stores them: [n, width]."""
        table: Any = self.network.get_input_embeddings()
        rows = torch.nn.functional.embedding(ids.to(table.weight.device), table.weight)
        turned = turned_of(self.network)
        return rows if turned is None else turned.back(rows.float())

    @torch.inference_mode()
    def logits(self, states: torch.Tensor) -> torch.Tensor:
        """What its output matrix says of `states` [n, width] behind the published model's last
        norm: [n, vocab]."""
        output: Any = self.network.get_output_embeddings()
        turned = turned_of(self.network)
        if turned is not None:
            states = turned.read(states.float())
        found: torch.Tensor = output(states)
        return found

    @property
    def layer_count(self) -> int:
        """Its decoder layers."""
        return len(layers(self.network))

    def tell(self, *listeners: Listener) -> None:
        """Tell these the hidden states of every pass from now on, and nobody else."""
        self._tap.set(listeners, layers(self.network))

    @property
    def attends(self) -> bool:
        """Whether it attends by our function, over keys and values kept in float32."""
        return bool(self.network.config._attn_implementation == NAME)

    @property
    def memory_bytes(self) -> int:
        """Bytes of the weights; a matrix that serves twice counts once."""
        held = chain(self.network.parameters(), self.network.buffers())
        tensors = {t.data_ptr(): t for whole in held for t in _parts(whole)}.values()
        packed = sum(kernel.nbytes for kernel in kernels(self.network))
        loose: int = sum(p.numel() * p.element_size() for p in tensors)
        return packed + loose

    def close(self) -> None:
        """Give all memory back; the model cannot run any more."""
        self.runner.free()
        release(self.network)
        self.network.to("meta")

    def feed(self, tokens: Sequence[int], answers: Sequence[range] = ()) -> None:
        """Take `tokens` into the cache, chunk by chunk.

        `answers` are the positions in the whole text that belong to answers: where how a row is
        computed follows from its role (`runner`), they are computed as answers were. Raises
        Cancelled when `stopped` says so; the cache then holds the chunks done.
        """
        self.runner.feed(tokens, answers)

    def forward(self, tokens: Sequence[int], rows: int = 1) -> torch.Tensor:
        """Feed `tokens`, of an answer; the logits that follow each of the last `rows` of them.

        [rows, vocab]. Raises Cancelled as `feed` does.
        """
        return self.runner.forward(tokens, rows)

    def rewind(self, length: int, total: int, answers: Sequence[range] = ()) -> None:
        """Hold at most `length` tokens, and none that would be computed in another way if a text
        of `total` tokens with these `answers` were fed anew.
        """
        self.runner.rewind(length, total, answers)

    def _runner(self) -> Runner:
        """The ordinary way to compute it."""
        if families.is_rewindable(self.network.config.get_text_config(decoder=True).model_type):
            return Stateful(self.network, self.context, self._tap)
        return AnyRows(self.network, self.context, self._tap)

    def _check_stop(self, *_: Any) -> None:
        if self.stopped():
            raise Cancelled()


def _parts(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The tensors that hold a quantised one's numbers; a plain tensor itself."""
    flatten = getattr(tensor, "__tensor_flatten__", None)
    return [tensor] if flatten is None else [getattr(tensor, name) for name in flatten()[0]]


def layers(network: torch.nn.Module) -> list[torch.nn.Module]:
    """The decoder's layers: the longest list of modules; models name it differently."""
    found = network.get_submodule(layers_name(network))
    return list(found) if isinstance(found, torch.nn.ModuleList) else []


def layers_name(network: torch.nn.Module) -> str:
    """What the list of the decoder's layers is called in `network`; "" without one."""
    lists = ((n, m) for n, m in network.named_modules() if isinstance(m, torch.nn.ModuleList))
    return max(lists, key=lambda found: len(found[1]), default=("", None))[0]


def beside_layers(network: torch.nn.Module) -> list[str]:
    """The names of the largest modules that hold no decoder layer."""
    found, path, above = [], layers_name(network), network
    for depth, step in enumerate(path.split(".")):
        prefix = ".".join(path.split(".")[:depth])
        names = (name for name, _ in above.named_children() if name != step)
        found += [f"{prefix}.{name}" if prefix else name for name in names]
        above = above.get_submodule(step)
    return found
