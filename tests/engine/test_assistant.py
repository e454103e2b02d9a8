"""Gemma 4's assistants: read as they are published, what transformers makes of them, and aligned so
that they pay. What holds of every draft is tested in test_drafters.py."""

import functools
from dataclasses import replace

import pytest
import torch

from engine.drafters.assistant import AssistantDrafter
from engine.errors import DraftRefused
from engine.exactness import attend
from engine.heads.opening import open_head
from engine.model import LanguageModel
from tests.assistants import (
    CONTEXT,
    FULL,
    ORDERED,
    SLIDING,
    TARGET,
    WIDTH,
    WINDOW,
    info_of,
    published,
    random_network,
    randomised,
    target,
    tensors,
    write_assistant,
)
from tests.families import FAMILIES
from tests.tiny import language_model, policy
from tests.trained import acceptance, late, taught, trained_assistant

UNIFIED = {
    "model_type": "gemma4_unified_assistant",
    "architectures": ["Gemma4UnifiedAssistantForCausalLM"],
    **ORDERED,
}
FORMS = {
    "all tokens": published({"hidden_size": 48}),
    "nearest tokens": published({"hidden_size": 48}, **ORDERED),
    "unified": published({"hidden_size": 48, "model_type": "gemma4_unified_text"}, **UNIFIED),
}
TEXT = [(7 * j + 1) % 250 for j in range(65)]


@functools.cache
def library(form):
    """The library's own network of an assistant."""
    network = random_network(FORMS[form], 3)
    randomised(network)
    return network


def opened(folder, model=None):
    model = model or target()
    return open_head(folder, model, info_of(model), "fp32")


def listening(head, model):
    drafter = AssistantDrafter(head, model)
    model.tell(drafter)
    return drafter


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("length", [2, 10, 100])
@pytest.mark.parametrize("listed", [True, False])
def test_it_drafts_what_the_library_computes(form, length, listed, tmp_path):
    """Up to the window and past it; sizes of heads stated for all layers, or one by one."""
    network, model = library(form), target()
    config = FORMS[form] if listed else network.config.to_dict()
    head = opened(write_assistant(tmp_path / "h", config, network.state_dict()))
    drafter = listening(head, model)
    tokens = [(5 * j) % 250 for j in range(length)]
    with torch.no_grad():
        theirs = model.network(
            torch.tensor([tokens[:-1]]), output_hidden_states=True, return_shared_kv_states=True
        )
        state, token, said = theirs.hidden_states[-1][:, -1:], tokens[-1], []
        for _ in range(4):
            embedded = model.network.get_input_embeddings()(torch.tensor([[token]]))
            out = network(
                inputs_embeds=torch.cat([embedded, state], -1),
                position_ids=torch.tensor([[length - 1]]),
                shared_kv_states=theirs.shared_kv_states,
            )
            said.append(out.logits[0])
            state, token = out.last_hidden_state, int(out.logits.argmax())
    model.cache.empty()
    model.feed(tokens[:-1])
    assert drafter.propose(tokens, 4, policy()).tokens == tuple(int(x.argmax()) for x in said)
    with torch.inference_mode():
        out = head(drafter._states[-1:], tokens[-1], length - 1, head.held())
        found = head.logits(out)
    seen = found.isfinite()
    assert int(seen.sum()) == (32 if FORMS[form]["use_ordered_embeddings"] else 262)
    torch.testing.assert_close(found[seen], said[0][seen], rtol=1e-3, atol=1e-4)
    assert bool((said[0][~seen] < said[0][seen].min()).all())
    model.tell()


def test_where_its_last_state_is_gone_it_waits_for_the_next_pass(tmp_path):
    model = target()
    drafter = listening(opened(write_assistant(tmp_path / "h", published())), model)
    model.cache.empty()
    model.feed(TEXT[:-1])
    assert len(drafter.propose(TEXT, 3, policy()).tokens) == 3
    model.cache.crop_to(30)
    drafter.settle(30)
    assert drafter.propose(TEXT[:31], 3, policy()).tokens == ()
    model.forward(TEXT[30:31])
    assert len(drafter.propose(TEXT[:32], 3, policy()).tokens) == 3
    model.tell()


# --- what the target keeps


KEPT = {
    "the library's": (FAMILIES["gemma3"], lambda model: None),
    "ours": (FAMILIES["gemma3"], attend),
    "shared": (None, lambda model: None),
    "blocks": ({**FAMILIES["gemma3"], "max_position_embeddings": 2048},
               LanguageModel.compute_in_blocks),
}  # fmt: skip


@pytest.mark.parametrize("kind", KEPT)
@pytest.mark.parametrize("windowed", [True, False])
def test_what_is_handed_out_of_a_cut_cache_is_that_of_the_text_so_far(kind, windowed):
    changes, prepare = KEPT[kind]
    model = target() if changes is None else language_model(**changes)
    prepare(model)
    tokens = [(3 * j) % 250 for j in range(90)]
    assert model.attends == (kind == "ours")
    model.cache.empty()
    model.feed(tokens[:80])
    model.forward([5, 6, 7, *tokens[80:85]], rows=8)
    model.cache.crop_to(78)
    found = model.cache.last_layer(windowed=windowed)
    model.cache.empty()
    model.feed(tokens[:78])
    wanted = model.cache.last_layer(windowed=windowed)
    for one, other in zip(found, wanted, strict=True):
        last = min(one.shape[2], other.shape[2])
        assert last >= (WINDOW - 1 if windowed else 78)
        torch.testing.assert_close(one[:, :, -last:], other[:, :, -last:], rtol=1e-3, atol=1e-3)
    model.cache.empty()


# --- what does not belong


def without(name):
    return lambda state: {n: t for n, t in state.items() if n != name}


def with_order(change):
    name = "masked_embedding.token_ordering"
    return lambda state: state | {name: change(state[name])}


BROKEN = {
    "another width": (published(backbone_hidden_size=48), None, "head_width", 48),
    "no width": (
        published(backbone_hidden_size=None), None, "head_setting", "backbone_hidden_size"),
    "other tokens": (published({"vocab_size": 300}), None, "head_tokens", 300),
    "another family": (
        published({"model_type": "gemma3_text"}), None, "head_setting", "model_type"),
    "another size of heads": (published({"head_dim": 32}), None, "head_keys", 128),
    "another size of all-seeing heads": (
        published({"global_head_dim": 64}), None, "head_keys", FULL),
    "other layers": (
        published({"layer_types": [SLIDING] * 3}), None, "head_setting", "layer_types"),
    "too many layers": (published({"num_hidden_layers": 65}), None, "head_setting", 65),
    "heads that cannot be shared out": (
        published({"num_attention_heads": 5}), None, "head_setting", 5),
    "experts": (published({"enable_moe_block": True}), None, "head_setting", "enable_moe_block"),
    "positions": (
        published({"rope_parameters": {FULL: {"rope_type": "x"}}}), None, "head_setting",
        "rope_type"),
    "positions without a base": (
        published({"rope_parameters": {FULL: {"rope_type": "proportional"},
                                       SLIDING: {"rope_type": "default"}}}),
        None, "head_config", None),
    "no projection": (
        published(), without("post_projection.weight"), "head_lacks_tensor",
        "post_projection.weight"),
    "no table": (
        published(), without("model.embed_tokens.weight"), "head_lacks_tensor", "lm_head.weight"),
    "no centroids": (
        published(**ORDERED), without("masked_embedding.centroids.weight"), "head_lacks_tensor",
        "masked_embedding.centroids.weight"),
    "no order": (
        published(**ORDERED), without("masked_embedding.token_ordering"), "head_lacks_tensor",
        "masked_embedding.token_ordering"),
    "an order that leads out": (
        published(**ORDERED), with_order(lambda x: x + 1), "head_map_leads_out", 262),
    "a token twice": (published(**ORDERED), with_order(lambda x: x // 2), "head_map_twice", 0),
    "an order of fractions": (
        published(**ORDERED), with_order(lambda x: x.float()), "head_bad_map",
        "masked_embedding.token_ordering"),
    "centroids that share unevenly": (
        published(**ORDERED | {"num_centroids": 130}), None, "head_setting", 130),
    "more centroids than there are": (
        published(**ORDERED | {"centroid_intermediate_top_k": 132}), None, "head_setting", 132),
    "a wide projection": (
        published(),
        lambda state: state | {"pre_projection.weight": torch.zeros(WIDTH, WIDTH)},
        "head_shape", "pre_projection.weight"),
    "a tensor too many": (
        published(), lambda state: state | {"x.weight": torch.zeros(2)}, "head_surplus",
        "x.weight"),
}  # fmt: skip


@pytest.fixture(scope="module")
def states():
    return {ordered: tensors(published(**(ORDERED if ordered else {}))) for ordered in (0, 1)}


@pytest.mark.parametrize("name", BROKEN)
def test_one_that_does_not_belong_is_refused_by_number_or_tensor(
    name, states, tmp_path, monkeypatch
):
    """SPC-2: before a weight is read."""
    monkeypatch.setattr("engine.heads.opening.FolderWeights", None)
    config, change, code, value = BROKEN[name]
    state = states[bool(config["use_ordered_embeddings"])]
    folder = write_assistant(tmp_path / "h", config, state, change or (lambda found: found))
    with pytest.raises(DraftRefused) as refused:
        opened(folder)
    assert refused.value.code == code
    assert value is None or value in refused.value.reason.values.values()


def test_keys_that_nobody_reads_and_a_shorter_order_are_taken(states, tmp_path):
    def change(state):
        name = "masked_embedding.token_ordering"
        keys = {"model.layers.0.self_attn.k_proj.weight": torch.zeros(32, WIDTH)}
        return state | keys | {name: state[name].int()}

    opened(write_assistant(tmp_path / "h", published(**ORDERED), states[1], change))


# --- alignment


BOTH = {"num_hidden_layers": 2, "layer_types": [SLIDING, FULL], "global_head_dim": 16}
KNOWING = {**TARGET, **BOTH, "num_kv_shared_layers": 0, "hidden_size_per_layer_input": 0}
TRAINED = published({**BOTH, "num_kv_shared_layers": 2})


@pytest.fixture(scope="module")
def knowing():
    network = random_network({"model_type": "gemma4_text", **KNOWING}, 2)
    return taught(LanguageModel(network, CONTEXT))


@pytest.fixture
def right(knowing, tmp_path, request):
    """How often the first guess is, of one that has learned by the states or by the keys alone."""
    weights = trained_assistant(knowing, TRAINED, by=request.param)
    folder = write_assistant(tmp_path / "h", TRAINED, weights)

    def of(kind=AssistantDrafter, change=lambda head: None):
        head = opened(folder, knowing)
        change(head)
        return acceptance(knowing, kind(head, knowing))[0]

    return of


def unscaled(head):
    head._shape = replace(head._shape, target_width=1)


@pytest.mark.parametrize("right", ["states"], indirect=True)
def test_a_trained_one_is_right_far_beyond_chance_and_only_by_the_state_it_was_trained_with(right):
    """Chance is 1/16, or 0.2 by the last token alone."""
    whole = right()
    assert whole > 0.7
    assert right(late(AssistantDrafter)) < 0.25
    # as Gemma's table is not
    assert right(change=unscaled) < 0.4


def all_but_the_last(held):
    return {kind: (keys[:, :, :-1], values[:, :, :-1]) for kind, (keys, values) in held.items()}


def of_the_other_kind(held):
    return {FULL: held[SLIDING], SLIDING: held[FULL]}


@pytest.mark.parametrize("right", ["keys"], indirect=True)
def test_a_trained_one_is_right_far_beyond_chance_and_only_by_the_keys_it_was_trained_with(right):
    def reading(read):
        def change(head):
            held = head.held
            head.held = lambda: read(held())

        return change

    assert right() > 0.7
    assert right(change=reading(all_but_the_last)) < 0.25
    assert right(change=reading(of_the_other_kind)) < 0.25
