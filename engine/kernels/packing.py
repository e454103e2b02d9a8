"""The weights of a model packed into a network, one matrix at a time.

What is read is quantised and packed at once, so memory never holds the model in 16 bits beside
its packed form. Quantised weights are taken from the store where it has them.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, Protocol

import torch
from torch import nn

from engine.kernels import linear
from engine.kernels.linear import Kernel
from engine.kernels.network import Embedding, Experts, Group, experts, groups, replace
from engine.kernels.rotation import Turn, turned, turns
from engine.kernels.store import Damaged, Store, Writer

Form = Literal["fp32", "bf16", "fp16", "int8", "int4"]
DTYPES: dict[str, torch.dtype] = {
    "fp32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
# float16 matrices that together hold float32 weights: 22 of their 24 bits.
PLANES = 2
# What a router decides is a matter of all or nothing, and its matrix is small.
ROUTERS = ("gate", "router", "shared_expert_gate")

Tensors = dict[str, torch.Tensor]
Done = Callable[[int], None]


class Weights(Protocol):
    """Where the parameters of a network come from."""

    def read(self, name: str) -> torch.Tensor:
        """The parameter `name`, in any floating type; read anew at each call."""
        ...


@dataclass(frozen=True)
class Item:
    """Parameters that go to one place in the network: a packed matrix or a tensor as it is.

    `sources` names parameters and, of a stack of matrices, which one; `turn` is what becomes of
    them before they are quantised.
    """

    name: str
    form: Form
    shape: tuple[int, ...]
    sources: tuple[tuple[str, int | None], ...]
    biases: tuple[str, ...]
    place: Callable[[Tensors], None]
    packed: bool = True
    group: Group | None = None
    turn: Turn | None = None

    @property
    def numel(self) -> int:
        return torch.Size(self.shape).numel()

    @property
    def shapes(self) -> dict[str, tuple[torch.dtype, tuple[int, ...]]]:
        """Type and shape of each tensor that holds this item."""
        found = _shapes(self.form, self.shape) if self.packed else {"weight": _whole(self)}
        if self.biases:
            found["bias"] = (torch.float32, self.shape[:1])
        return found


def _shapes(form: Form, shape: tuple[int, ...]) -> dict[str, tuple[torch.dtype, tuple[int, ...]]]:
    if form == "int8":
        return {"levels": (torch.int8, shape), "scales": (torch.float32, shape[:1])}
    if form == "int4":
        pairs = (shape[1] // linear.GROUP, shape[0], 2)
        return {"levels": (torch.uint8, shape), "pairs": (torch.bfloat16, pairs)}
    return {"weight": (DTYPES[form], shape)}


def _whole(item: Item) -> tuple[torch.dtype, tuple[int, ...]]:
    return DTYPES[item.form], item.shape


def pack(
    network: nn.Module,
    weights: Weights,
    precision: Form,
    *,
    store: Store | None = None,
    key: str = "",
    done: Done = lambda numel: None,
) -> tuple[list[Item], bool]:
    """Fill `network`, whose large parameters may be on the meta device, with `weights`.

    Linear layers become packed kernels, tables 16 bits wide, the rest float32. With a `store`,
    quantised weights are read from it or written to it under `key`. `done` is told after each
    matrix how many numbers it has; what it raises, like what `weights` raises, ends the packing
    and leaves the network half filled. How its stream is turned is noted on it. Returns what was
    filled, and whether from the store.
    """
    whole: Any = network
    whole.turned = turned(network, weights.read) if precision == "int8" else None
    items = _items(network, precision)
    shapes = {f"{item.name}|{part}": s for item in items for part, s in item.shapes.items()}
    if store is not None:
        kept = store.tensors(key, shapes)
        if kept is not None:
            if _fill_from(kept, items, done):
                return items, True
            store.drop(key)
    writer = store.writer(key, shapes) if store is not None else None
    try:
        _fill(items, weights, writer, done)
    except BaseException:
        if writer is not None:
            writer.cancel()
        raise
    if writer is not None:
        writer.finish()
    return items, False


def _fill_from(kept: Iterator[tuple[str, torch.Tensor]], items: list[Item], done: Done) -> bool:
    """Fill from the store; False when it turns out to be damaged."""
    try:
        read = ((item, {part: next(kept)[1] for part in item.shapes}) for item in items)
        _place(read, done)
        for _ in kept:
            raise Damaged
    except Damaged:
        return False
    return True


def _fill(items: list[Item], weights: Weights, writer: Writer | None, done: Done) -> None:
    reader = _Reader(weights)

    def made() -> Iterator[tuple[Item, Tensors]]:
        for item in items:
            tensors = _quantised(item, reader)
            if writer is not None:
                for part in item.shapes:
                    writer.put(tensors[part])
            yield item, tensors

    _place(made(), done)


def _place(filled: Iterator[tuple[Item, Tensors]], done: Done) -> None:
    """Pack and place, one matrix per core at once: packing one takes a single core, and long."""
    cores = torch.get_num_threads()
    with ThreadPoolExecutor(cores) as pool:
        at_work: deque[tuple[Item, Future[None]]] = deque()
        for item, tensors in filled:
            at_work.append((item, pool.submit(item.place, tensors)))
            del tensors
            if len(at_work) > cores:
                _finish(*at_work.popleft(), done)
        for item, job in at_work:
            _finish(item, job, done)


def _finish(item: Item, job: "Future[None]", done: Done) -> None:
    job.result()
    done(item.numel)


class _Reader:
    """Reads matrices of a stack one by one, the stack once."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._name, self._stack = "", torch.empty(0)

    def read(self, name: str) -> torch.Tensor:
        return self._weights.read(name)

    def matrix(self, name: str, index: int | None) -> torch.Tensor:
        if index is None:
            return self.read(name)
        if name != self._name:
            self._name, self._stack = name, self._weights.read(name)
        return self._stack[index]


def _quantised(item: Item, reader: _Reader) -> Tensors:
    found: Tensors = {}
    for name, index in item.sources:
        matrix = reader.matrix(name, index)
        for part, tensor in _parts(item, matrix, reader).items():
            # the outputs lie along axis 0, of the 4-bit pairs along axis 1
            axis = 1 if part == "pairs" else 0
            found[part] = torch.cat([found[part], tensor], axis) if part in found else tensor
    if item.biases:
        found["bias"] = torch.cat([reader.matrix(name, None).float() for name in item.biases])
    return found


def _parts(item: Item, matrix: torch.Tensor, reader: _Reader) -> Tensors:
    by_rows: Callable[[torch.Tensor], torch.Tensor] = linear.to_float
    if item.turn is not None and item.turn.side == "reads" and item.packed:
        by_rows = item.turn.rows(reader.read)
    elif item.turn is not None:
        matrix = item.turn.whole(matrix, reader.read, DTYPES.get(item.form, torch.float32))
    if item.packed and item.form == "int8":
        levels, scales = linear.quantised(matrix, by_rows)
        return {"levels": levels, "scales": scales}
    if item.packed and item.form == "int4":
        levels, pairs = linear.grouped(matrix)
        return {"levels": levels, "pairs": pairs}
    return {"weight": matrix.to(DTYPES[item.form])}


def kernel(form: Form, tensors: Mapping[str, torch.Tensor], fine: bool = True) -> Kernel:
    """The packed matrix that `tensors` hold, by the best means this processor has.

    `fine`: its inputs need more than 8 bits.
    """
    bias = tensors.get("bias")
    if form == "int4":
        return linear.int4(tensors["levels"], tensors["pairs"], bias)
    if form == "int8":
        return linear.int8(tensors["levels"], tensors["scales"], bias, fine=fine)
    return linear.half(tensors["weight"], bias, PLANES if form == "fp32" else 1)


def stored(item: Item, weights: Weights) -> None:
    """Put the matrices of `item`, one of a group, into the network as `weights` has them."""
    assert item.group is not None
    reader = _Reader(weights)
    matrices = [reader.matrix(*source).float() for source in item.sources]
    if item.turn is not None:
        matrices = [item.turn.whole(matrix, reader.read) for matrix in matrices]
    matrix = torch.cat(matrices)
    biases = [reader.matrix(name, None).float() for name in item.biases]
    replace(item.group, linear.Dense(matrix, torch.cat(biases) if biases else None))


def _items(network: nn.Module, precision: Form) -> list[Item]:
    """Everything that has to be filled, in the network's order, each parameter once."""
    names = {id(p): name for name, p in network.named_parameters(remove_duplicate=True)}
    model: Any = network
    output = model.get_output_embeddings()
    turning = turns(network) if precision == "int8" else {}
    taken: set[str] = set()
    found: list[Item] = []
    for group in groups(network):
        layers = group.layers
        sources = tuple((names[id(layer.weight)], None) for layer in layers)
        biases = tuple(names[id(layer.bias)] for layer in layers if layer.bias is not None)
        # a matrix that is the embedding's too is read for both
        taken |= {n for n, _ in sources if n in group.weight_names} | set(biases)
        form = _form(precision, group.names[0], group.shape, layers[0] is output)
        turn = turning.get(group.paths[0])
        place = partial(_put_group, group, form, fine=turn is None or not turn.even)
        found.append(
            Item(group.name, form, group.shape, sources, biases, place, group=group, turn=turn)
        )
    for path, stack in experts(network):
        packed = Experts(stack)
        for part, count, shape in packed.matrices:
            name = f"{path}.{part}"
            taken.add(name)
            form = _form(precision, part, shape, False)
            for index in range(count):
                put = partial(_put_expert, packed, part, index, form)
                found.append(Item(f"{name}.{index}", form, shape, ((name, index),), (), put))
        _set_module(network, path, packed)
    modules = dict(network.named_modules())
    for name, parameter in network.named_parameters():
        if name not in taken:
            turn = turning.get(name.removesuffix(".weight"))
            found.append(_as_is(network, modules, name, parameter, precision, turn))
    return found


def _put_group(group: Group, form: Form, tensors: Tensors, *, fine: bool) -> None:
    replace(group, kernel(form, tensors, fine))


def _put_expert(packed: Experts, part: str, index: int, form: Form, tensors: Tensors) -> None:
    packed.put(part, index, kernel(form, tensors))


def _as_is(
    network: nn.Module,
    modules: Mapping[str, nn.Module],
    name: str,
    parameter: nn.Parameter,
    precision: Form,
    turn: Turn | None,
) -> Item:
    """A parameter that is no matrix of a linear layer; of tables 16 bits are kept."""
    path, _, attribute = name.rpartition(".")
    module = modules[path]
    table = isinstance(module, nn.Embedding)
    form: Form = "fp32"
    if table:
        form = precision if precision in DTYPES else "bf16" if turn is None else "fp16"

    def place(tensors: Tensors) -> None:
        weight = tensors["weight"]
        if table:
            scale = getattr(module, "embed_scale", 1.0)
            _set_module(network, path, Embedding(weight, float(scale)))
        else:
            module._parameters[attribute] = nn.Parameter(weight.clone(), requires_grad=False)

    shape = tuple(parameter.shape)
    return Item(name, form, shape, ((name, None),), (), place, packed=False, turn=turn)


def _form(precision: Form, name: str, shape: tuple[int, ...], output: bool) -> Form:
    """How a matrix is kept: routers exactly, the output matrix in no less than 8 bits."""
    if name in ROUTERS and precision in ("int8", "int4"):
        return "fp32"
    if precision == "int4" and (output or not linear.fits_int4(shape)):
        return "int8"
    return precision


def _set_module(network: nn.Module, path: str, module: nn.Module) -> None:
    parent, _, name = path.rpartition(".")
    setattr(network.get_submodule(parent), name, module)
