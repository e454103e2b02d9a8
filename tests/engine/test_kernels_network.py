"""A network on our kernels: its layers merged, its experts apart, its norms and bounds its own."""

import pytest
import torch
from torch import nn

from engine.kernels import linear
from engine.kernels.network import (
    Capped,
    Experts,
    Gate,
    Linear,
    Norm,
    experts,
    groups,
    kernels,
    release,
    replace,
    settle,
    take_attention,
)
from engine.kernels.pointwise import InRows, RotaryInRows, RowByRow
from tests.families import FAMILIES, logits
from tests.families import original as network
from tests.rowwise import dependent, matrix


class Counted(linear.Dense):
    """torch's product, that counts how often it is asked for."""

    def __init__(self, weight, bias):
        super().__init__(weight, bias)
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return super().__call__(x)


def joined(group):
    """The weights of a group as one matrix."""
    layers = group.layers
    biases = [layer.bias for layer in layers]
    bias = None if biases[0] is None else torch.cat(biases)
    return Counted(torch.cat([layer.weight for layer in layers]), bias)


def test_layers_of_one_input_form_a_group_and_others_stand_alone():
    found = [group.name for group in groups(network("qwen2"))]
    layer = "model.layers.{}.self_attn.{}", "model.layers.{}.mlp.{}"
    expected = []
    for i in range(2):
        expected += [layer[0].format(i, "q_proj+k_proj+v_proj"), layer[0].format(i, "o_proj")]
        expected += [layer[1].format(i, "gate_proj+up_proj"), layer[1].format(i, "down_proj")]
    assert sorted(found) == sorted([*expected, "lm_head"])


def test_every_linear_layer_is_in_one_group():
    for family in FAMILIES:
        made = network(family)
        paths = [path for group in groups(made) for path in group.paths]
        layers = [name for name, module in made.named_modules() if type(module) is nn.Linear]
        assert sorted(paths) == sorted(layers), family


def test_siblings_that_differ_are_not_merged():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.q_proj = nn.Linear(8, 8)
            self.k_proj = nn.Linear(8, 4, bias=False)
            self.v_proj = nn.Linear(8, 4)
            self.gate_proj = nn.Linear(8, 8)
            self.up_proj = nn.Linear(6, 8)

    assert [group.names for group in groups(Odd())] == [
        ("q_proj",),
        ("k_proj",),
        ("v_proj",),
        ("gate_proj",),
        ("up_proj",),
    ]


def test_merged_layers_are_computed_once_a_pass_and_say_the_same():
    made = network("qwen2")
    expected = logits(made)
    counted = []
    for group in groups(made):
        counted.append(joined(group))
        replace(group, counted[-1])
    assert [k.calls for k in counted] == [0] * len(counted)
    torch.testing.assert_close(logits(made), expected)
    assert [k.calls for k in counted] == [1] * len(counted)
    assert len(kernels(made)) == len(counted)
    assert {id(kernel) for kernel in kernels(made)} == {id(kernel) for kernel in counted}


def test_a_pass_broken_off_between_siblings_leaves_nothing_behind():
    made = network("llama")
    for group in groups(made):
        replace(group, joined(group))
    expected = logits(made)
    attention = made.model.layers[1].self_attn

    def stop(*_):
        raise KeyboardInterrupt

    hook = attention.k_proj.register_forward_pre_hook(stop)
    with pytest.raises(KeyboardInterrupt):
        logits(made, torch.tensor([[9, 9, 9, 9, 9, 9]]))
    hook.remove()
    assert torch.equal(logits(made), expected)


def test_a_layer_may_be_asked_twice_for_the_same_input():
    made = network("llama")
    group = groups(made)[0]
    kernel = joined(group)
    replace(group, kernel)
    x = matrix((1, 3, 64))
    layer = getattr(group.parent, group.names[0])
    assert torch.equal(layer(x), layer(x))
    assert kernel.calls == 2


def filled(stack):
    """`Experts` with the matrices of a stack."""
    made = Experts(stack)
    for part, count, _ in made.matrices:
        for expert in range(count):
            made.put(part, expert, linear.Dense(getattr(stack, part)[expert], None))
    return made


@pytest.mark.parametrize("family", ["qwen2_moe", "qwen3_moe"])
def test_experts_say_what_transformers_own_say(family):
    (_, stack), *_ = experts(network(family))
    hidden = matrix((30, 64))
    generator = torch.Generator().manual_seed(0)
    chosen = torch.stack([torch.randperm(4, generator=generator)[:2] for _ in range(30)])
    weights = torch.rand(30, 2, generator=generator)
    torch.testing.assert_close(
        filled(stack)(hidden, chosen, weights), stack(hidden, chosen, weights)
    )


def test_a_token_does_not_mind_who_else_asks_the_experts():
    (_, stack), *_ = experts(network("qwen2_moe"))
    made = Experts(stack)
    for part, count, _ in made.matrices:
        for expert in range(count):
            weight = getattr(stack, part)[expert]
            made.put(part, expert, linear.int8(*linear.quantised(weight), None))
    places = torch.arange(40)
    chosen = torch.stack([places % 4, (places + 1 + places // 4 % 3) % 4], 1)
    weights = matrix((40, 2)).abs()
    x = torch.cat([matrix((40, 64)), chosen, weights], 1)

    def call(rows):
        return made(rows[:, :64], rows[:, 64:66].long(), rows[:, 66:])

    assert dependent(call, x) == []


def test_an_expert_put_again_takes_the_place_of_the_first():
    (_, stack), *_ = experts(network("qwen2_moe"))
    made = filled(stack)
    hidden, chosen, weights = matrix((3, 64)), torch.zeros(3, 1, dtype=torch.long), torch.ones(3, 1)
    before = made(hidden, chosen, weights)
    made.put("down_proj", 0, linear.Dense(2 * stack.down_proj[0], None))
    torch.testing.assert_close(made(hidden, chosen, weights), 2 * before)
    assert len(made.kernels["down_proj"]) == 4


def test_experts_of_a_layout_that_is_not_known_are_left_alone():
    assert experts(network("gpt_oss")) == []
    assert experts(network("llama")) == []


@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma2", "gemma3", "phi3", "qwen2_moe"])
def test_a_settled_network_says_what_it_said(family):
    made = network(family)
    expected = logits(made)
    settle(made)
    torch.testing.assert_close(logits(made), expected, rtol=1e-4, atol=1e-5)


def test_all_but_the_linear_layers_is_settled():
    made = network("qwen2_moe")
    settle(made)
    kinds = {type(module) for module in made.modules()}
    assert {InRows, RotaryInRows, RowByRow, Gate, Norm} <= kinds
    assert not [m for m in made.modules() if type(m).__name__ == "Qwen2MoeRMSNorm"]


def test_settling_twice_changes_nothing():
    made = network("gemma2")
    settle(made)
    expected = logits(made)
    settle(made)
    assert torch.equal(logits(made), expected)


def test_a_norm_that_is_no_plain_one_is_kept():
    class OddRMSNorm(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.eps = nn.Parameter(torch.ones(64)), 1e-5

        def forward(self, x):
            return 0.5 * x * self.weight

    made = network("llama")
    made.model.norm = OddRMSNorm()
    settle(made)
    assert type(made.model.norm) is OddRMSNorm


def test_bounded_logits_are_bounded_and_their_matrix_can_still_be_replaced():
    made = network("gemma2")
    settle(made)
    output = made.get_output_embeddings()
    assert type(output) is Capped
    assert output.out_features == 262
    assert logits(made).abs().max() <= 3.0
    (group,) = [g for g in groups(made) if g.names == ("linear",)]
    assert group.parent is output


def test_attention_is_taken_where_a_model_asks_for_one():
    made = network("llama")
    take_attention(made)
    assert made.config._attn_implementation == "slipstream"
    recurrent = network("mamba2")
    before = recurrent.config._attn_implementation
    take_attention(recurrent)
    assert recurrent.config._attn_implementation == before


def test_a_released_network_holds_no_matrix_and_says_so():
    made = network("qwen2_moe")
    for group in groups(made):
        replace(group, joined(group))
    release(made)
    assert sum(kernel.nbytes for kernel in kernels(made)) == 0
    (layer, *_) = [m for m in made.modules() if isinstance(m, Linear)]
    with pytest.raises(RuntimeError, match="closed"):
        layer(matrix((1, 64)))
