"""Packed linear layers: right on ordinary and extreme numbers, and no row depends on another."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.kernels import linear
from tests import rowwise
from tests.rowwise import SHAPES, kernels, matrix, spread

REPOSITORY = Path(__file__).parents[2]
# Of a result's own size: 12 bits of activations; float32; bfloat16 activations; float32 again.
NEAR = {"int8": 3e-4, "int8 of even rows": 3e-2, "bf16": 2e-6, "int4": 6e-3, "fp32": 2e-6}
EXTREMES = (float("nan"), float("inf"), -float("inf"), 3e38, 1e-42, 0.0)


def error(found, x, weight, bias=0.0):
    """How far a product is off, in units of what such a sum is as a rule."""
    expected = x.double() @ weight.double().T + bias
    usual = (x.double() ** 2 @ weight.double().T ** 2).sqrt()
    return float((found.double() - expected).norm() / usual.norm())


@pytest.mark.parametrize("shape", SHAPES)
def test_a_product_is_that_of_the_weights_it_holds(shape):
    x, bias = matrix((40, shape[1]), 2), matrix(shape[:1], 1)
    for name, weight, kernel in kernels(shape):
        for rows in range(1, 41, 3):
            found = kernel(x[:rows])
            assert error(found, x[:rows], weight, bias) < NEAR[name], (name, rows)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("extreme", EXTREMES)
def test_no_number_of_a_row_reaches_another_row(shape, extreme):
    if shape[1] < 2:
        pytest.skip("one number a row")
    x = matrix((7, shape[1]), 2)
    for name, _, kernel in kernels(shape):
        expected = kernel(x)
        for place in (0, 3, 6):
            for column in (0, shape[1] // 2, shape[1] - 1):
                changed = x.clone()
                changed[place, column] = extreme
                found = kernel(changed)
                others = [row for row in range(7) if row != place]
                assert torch.equal(found[others], expected[others]), (name, place, column)
                if not -1e39 < extreme < 1e39:
                    assert not found[place].isfinite().any(), (name, place, column)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_of_zeros_is_the_bias(shape):
    for name, _, kernel in kernels(shape):
        found = kernel(torch.zeros(3, shape[1]))
        assert torch.equal(found, matrix(shape[:1], 1).expand(3, -1)), name


@pytest.mark.parametrize("shape", SHAPES)
def test_one_huge_number_among_small_ones_keeps_its_row_right(shape):
    x = matrix((5, shape[1]), 2)
    x[2, shape[1] // 2] = 1e6
    bias = matrix(shape[:1], 1)
    for name, weight, kernel in kernels(shape):
        if name != "int8 of even rows":
            assert error(kernel(x)[2:3], x[2:3], weight, bias) < NEAR[name], name


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(1, 40),
    width=st.integers(2, 1200),
    outputs=st.integers(1, 70),
    seed=st.integers(0, 2**31),
)
def test_integers_are_summed_exactly(rows, width, outputs, seed):
    """The ends of the range in any mixture of signs, and zeros: the largest sums there are."""
    if linear.grid() is None:
        pytest.skip("no exact int8 product on this processor")
    _, top = linear.grid()
    generator = torch.Generator().manual_seed(seed)
    weight = 127 * torch.randint(-1, 2, (outputs, width), generator=generator, dtype=torch.int8)
    x = top * torch.randint(-1, 2, (rows, width), generator=generator)
    x[:, 0] = top
    weight[0] = 127
    found = linear.Int8(weight, torch.ones(outputs), None)(x.float())
    assert torch.equal(found, (x @ weight.long().T).float())


def test_all_ends_of_the_range_add_up():
    if linear.grid() is None:
        pytest.skip("no exact int8 product on this processor")
    _, top = linear.grid()
    for sign in (1, -1):
        weight = torch.full((40, 1000), 127 * sign, dtype=torch.int8)
        found = linear.Int8(weight, torch.ones(40), None)(torch.full((3, 1000), float(top)))
        assert torch.equal(found, torch.full((3, 40), 1000.0 * 127 * top * sign))


def test_bf16_weights_are_held_to_the_last_bit():
    """From the largest down to 2^-20 of it; what a unit row finds is a column of the weights."""
    weight = (matrix((64, 48)) * torch.logspace(0, -20, 48, base=2.0)).bfloat16().float()
    for factor in (1.0, 2.0**-60, 2.0**60):
        kernel = linear.Half(weight * factor, None)
        assert torch.equal(kernel(torch.eye(48)), (weight * factor).T)


def test_float_weights_are_held_to_float_precision():
    weight = matrix((64, 48))
    kernel = linear.Half(weight, None, 3)
    torch.testing.assert_close(kernel(torch.eye(48)), weight.T, rtol=1e-7, atol=1e-9)
    assert kernel.nbytes == 3 * 2 * weight.numel()
    assert linear.Half(weight.bfloat16().float(), None, 3).nbytes == 2 * weight.numel()


@pytest.mark.parametrize("weight", [torch.zeros(40, 70), torch.full((40, 70), 1e-40)])
def test_a_matrix_of_nothing_is_nothing(weight):
    for kernel in (linear.int8(*linear.quantised(weight), None), linear.half(weight, None, 3)):
        assert kernel(matrix((3, 70))).abs().max() < 1e-36


def test_a_matrix_with_one_input_has_a_product_too():
    weight, x = matrix((40, 1)), matrix((3, 1), 1)
    kernel = linear.int8(*linear.quantised(weight), None)
    torch.testing.assert_close(kernel(x), x @ weight.T, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("shape", [(7, 5), (70, 300), (3, 2000)])
def test_int8_levels_are_the_nearest_however_many_rows_are_quantised_at_once(shape, monkeypatch):
    weight = matrix(shape)
    weight[1] = 0
    whole = linear.quantised(weight)
    levels, scales = whole
    assert (levels * scales[:, None] - weight).abs().max() <= scales.max() / 2 * 1.001
    assert levels.abs().amax(1).tolist() == [127, 0, *[127] * (shape[0] - 2)]
    monkeypatch.setattr(linear, "AT_ONCE", 64)
    assert all(torch.equal(a, b) for a, b in zip(whole, linear.quantised(weight), strict=True))
    assert all(
        torch.equal(a, b)
        for a, b in zip(
            linear.quantised(weight.bfloat16()),
            linear.quantised(weight.bfloat16().float()),
            strict=True,
        )
    )


def test_int4_levels_are_near_however_many_rows_are_quantised_at_once(monkeypatch):
    weight = matrix((96, 192))
    weight[5], weight[6] = 0, 0.25
    levels, pairs = linear.grouped(weight)
    assert levels.max() <= 15
    step = pairs[..., 0].float().T.repeat_interleave(linear.GROUP, 1)
    # the scale is rounded to bfloat16, so the ends of a group may be off by more than half a step
    assert ((spread(levels, pairs) - weight).abs() <= 0.6 * step + 0.01).all()
    monkeypatch.setattr(linear, "AT_ONCE", 64)
    again = linear.grouped(weight)
    assert torch.equal(levels, again[0])
    assert torch.equal(pairs, again[1])


def test_a_result_is_not_written_over_by_the_next():
    """Room for the rows is kept between calls."""
    for name, _, kernel in kernels((64, 64)):
        first = kernel(matrix((3, 64), 5))
        kept = first.clone()
        kernel(matrix((3, 64), 6))
        assert torch.equal(first, kept), name


def test_room_made_in_inference_mode_serves_outside_it_too():
    x = matrix((3, 130))
    for name, _, kernel in kernels((40, 130)):
        with torch.inference_mode():
            expected = kernel(x).clone()
        assert torch.equal(kernel(x), expected), name


@pytest.mark.parametrize("shape", SHAPES)
def test_a_row_has_the_same_bits_at_any_count(shape):
    x = matrix((36, shape[1]), 2)
    for name, _, kernel in kernels(shape):
        assert rowwise.dependent(kernel, x) == [], name


def test_other_row_counts_too():
    """Beyond the counts of a round: prompts come in up to 128."""
    x = matrix((131, 192), 2)
    for name, _, kernel in kernels((96, 192)):
        assert rowwise.dependent(kernel, x, (47, 63, 64, 100, 127, 128, 129, 131)) == [], name


@pytest.fixture(params=["grid", "half_counts", "int4_agrees"])
def without(request, monkeypatch):
    """A processor that lacks one of the kernels."""
    lacking = {"grid": None, "half_counts": None, "int4_agrees": False}
    monkeypatch.setattr(linear, request.param, lambda: lacking[request.param])
    return request.param


def test_without_a_kernel_another_gives_the_same_and_its_rows_are_independent_too(without):
    x, bias = matrix((36, 192), 2), matrix((96,), 1)
    taken = set()
    for name, weight, kernel in kernels((96, 192)):
        taken.add(type(kernel).__name__)
        # in place of int4's own product weights are rounded to float16
        assert error(kernel(x), x, weight, bias) < max(NEAR[name], 1e-3), name
        assert rowwise.dependent(kernel, x) == [], name
    gone = {"grid": "Int8", "half_counts": "Half", "int4_agrees": "Int4"}
    assert gone[without] not in taken


def test_with_no_kernel_at_all_torchs_own_is_taken(monkeypatch):
    monkeypatch.setattr(linear, "grid", lambda: None)
    monkeypatch.setattr(linear, "half_counts", lambda: None)
    monkeypatch.setattr(linear, "int4_agrees", lambda: False)
    x = matrix((36, 64), 2)
    for name, weight, kernel in kernels((64, 64)):
        assert type(kernel) is linear.Plain, name
        assert error(kernel(x), x, weight, matrix((64,), 1)) < 1e-6, name
        assert rowwise.dependent(kernel, x) == [], name


def test_a_product_that_saturates_is_found_out(monkeypatch):
    """As oneDNN's was where pairs are added in 16 bits; then fewer levels are taken, or none."""
    real = linear._ops.linear_dynamic

    class Saturating:
        def __init__(self, tops):
            self.tops = tops

        def __getattr__(self, name):
            return getattr(linear.torch.ops.quantized, name)

        def linear_dynamic(self, x, packed, reduced):
            top = 63 if reduced else 127
            out = real(x, packed, True)
            return out.clamp(-1000, 1000) if top in self.tops else out

    for tops, expected in (({127}, (True, 63)), ({127, 63}, None)):
        monkeypatch.setattr(linear, "_ops", Saturating(tops))
        assert linear.grid.__wrapped__() == expected


ENVIRONMENTS = {
    "two threads, AVX512 without VNNI": (2, {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE"}, ()),
    "three threads, no vectors": (3, {"ATEN_CPU_CAPABILITY": "default"}, ("int8", "bf16")),
    "seven threads, AVX2": (7, {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}, ()),
}


@pytest.mark.parametrize(
    "environment",
    [
        pytest.param("three threads, no vectors", marks=pytest.mark.slow),
        "seven threads, AVX2",
    ],
)
def test_rows_are_independent_on_other_processors_and_threads(environment):
    """Kernels of all kinds, and models; torch reads its limits once, when it starts."""
    threads, limits, precisions = ENVIRONMENTS[environment]
    assert dependent_elsewhere(threads, limits, precisions) == []


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("environment", ENVIRONMENTS)
def test_models_are_exact_on_other_processors_and_threads(environment, threads):
    _, limits, _ = ENVIRONMENTS[environment]
    precisions = ("fp32", "bf16", "fp16", "int8", "int4")
    assert dependent_elsewhere(threads, limits, precisions) == []


def dependent_elsewhere(threads, limits, precisions):
    """What `tests.rowwise` finds in a process of its own."""
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.rowwise", str(threads), *precisions],
        cwd=REPOSITORY,
        env={**os.environ, "OMP_NUM_THREADS": str(threads)} | limits,
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize("shape", [(1536, 8960), (512, 17000), (1000, 4096), (2048, 2048)])
def test_rows_of_large_matrices_are_independent(shape):
    x = matrix((36, shape[1]), 2)
    for name, _, kernel in kernels(shape):
        assert rowwise.dependent(kernel, x) == [], name
