"""Elementwise functions: a number's place among others does not show in its bits."""

import pytest
import torch

from engine.kernels.pointwise import (
    GRAIN,
    InRows,
    NextInRows,
    RotaryInRows,
    RowByRow,
    in_rows,
)
from tests.rowwise import FUNCTIONS, dependent, matrix


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(5, 64), (1, 33), (2, 3, 40), (9, 4096), (3, 20_000)])
def test_values_are_the_functions_own(name, shape):
    x = 3 * matrix(shape)
    torch.testing.assert_close(in_rows(FUNCTIONS[name], x), FUNCTIONS[name](x))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("width", [1, 5, 33, 64, 100, 262, 1024])
def test_a_row_has_the_same_bits_at_any_count(name, width):
    x = 3 * matrix((36, width))
    assert dependent(lambda part: in_rows(FUNCTIONS[name], part), x) == []


@pytest.mark.parametrize("width", [1, 31, 32, 64, 96, 4096, GRAIN - 32, GRAIN, GRAIN + 32, 40_000])
def test_what_is_computed_at_once_is_whole_rows_of_one_thread(width):
    """GELU is given to several threads from fewer numbers on than other functions."""
    asked = []
    in_rows(lambda part: asked.append(part.shape) or part, matrix((40, width)))
    assert sum(rows for rows, _ in asked) == 40
    for rows, found in asked:
        assert found == width
        assert rows == 1 or (width % 32 == 0 and rows * width <= 16_384)


def test_a_function_that_minds_the_place_does_not_show():
    """As torch's do: the last numbers, those of no whole vector, are computed otherwise."""

    def vectors_of_32(x):
        flat = x.reshape(-1)
        rest = len(flat) % 32
        return torch.cat([flat[: len(flat) - rest] * 2, flat[len(flat) - rest :] * 3]).view(x.shape)

    for width in (5, 33, 64):
        x = matrix((40, width))
        assert dependent(lambda part: in_rows(vectors_of_32, part), x) == []


def test_a_nan_stays_in_its_place():
    x = matrix((5, 64))
    x[2, 3] = float("nan")
    found = InRows(FUNCTIONS["silu"])(x)
    assert found.isnan().nonzero().tolist() == [[2, 3]]


class Rotary(torch.nn.Module):
    """Frequencies chosen by the largest position, as longrope does."""

    def __init__(self, kind, size=64):
        super().__init__()
        self.rope_type = kind
        self.inv_freq = torch.nn.Buffer(torch.logspace(0, -4, size // 2), persistent=False)

    def forward(self, x, position_ids):
        far = "longrope" in self.rope_type and position_ids.max() > 20
        angles = position_ids[..., None] * torch.cat([self.inv_freq] * 2) / (2 if far else 1)
        return angles.cos(), angles.sin()


@pytest.mark.parametrize("kind", ["default", "longrope"])
@pytest.mark.parametrize("size", [16, 64])
def test_a_positions_rotation_does_not_depend_on_the_positions_beside_it(kind, size):
    rotary = RotaryInRows(Rotary(kind, size))
    places = torch.arange(50)[None]
    alone = [rotary(None, places[:, i : i + 1]) for i in range(50)]
    for start, stop in ((0, 50), (0, 33), (3, 29), (15, 22)):
        for found, one in zip(
            rotary(None, places[:, start:stop]), zip(*alone, strict=True), strict=True
        ):
            assert torch.equal(found, torch.cat(one[start:stop], dim=-2))


def test_a_rotation_by_kinds_of_layers_is_told_the_kind():
    asked = []

    class Layered(Rotary):
        def forward(self, x, position_ids, layer_type):
            asked.append(layer_type)
            return super().forward(x, position_ids)

    rotary = RotaryInRows(Layered({"full_attention": "default"}))
    rotary(None, torch.arange(20)[None], "full_attention")
    assert set(asked) == {"full_attention"}


def test_a_small_module_is_given_one_row_at_a_time():
    class Router(torch.nn.Module):
        def forward(self, x):
            assert x.shape == (1, 8)
            return x.sum(-1), x.topk(2)[1]

    x = matrix((2, 3, 8))
    sums, places = RowByRow(Router())(x)
    assert torch.equal(sums, torch.stack([row.sum() for row in x.view(6, 8)]))
    assert places.shape == (6, 2)


def test_what_a_model_does_to_a_gate_is_done_row_by_row():
    x = 3 * matrix((36, 1))
    found = torch.nn.functional.sigmoid(x.as_subclass(NextInRows))
    assert type(found) is torch.Tensor
    assert dependent(lambda part: torch.sigmoid(part.as_subclass(NextInRows)), x) == []
    torch.testing.assert_close(found, torch.sigmoid(x))
