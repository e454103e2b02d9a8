"""Gemma 4's assistants: read as they are published, exact, and what transformers makes of them."""

import functools
import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

from engine.api import Drafting, Finish, Message, ModelInfo, Sampling
from engine.drafters.assistant import AssistantDrafter
from engine.errors import DraftRefused
from engine.exactness import attend
from engine.heads.opening import open_head
from engine.library import caches
from engine.library.heads import is_known
from engine.library.inspect import inspect
from engine.model import LanguageModel
from engine.session import Session
from tests.families import FAMILIES
from tests.folders import CHATML, IM_END, write_json, write_tokenizer
from tests.tiny import language_model, only_drafter, plain, policy, run

FULL, SLIDING = "full_attention", "sliding_attention"
WIDTH, WINDOW = 64, 24
LAYER = {
    "intermediate_size": 128,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "global_head_dim": 32,
    "sliding_window": WINDOW,
    "vocab_size": 262,
    "max_position_embeddings": 320,
}
TARGET = {
    **LAYER,
    "hidden_size": WIDTH,
    "num_hidden_layers": 4,
    "num_kv_shared_layers": 2,
    "layer_types": [SLIDING, FULL] * 2,
    "hidden_size_per_layer_input": 16,
    "vocab_size_per_layer_input": 262,
    "tie_word_embeddings": False,
    "bos_token_id": 256,
    "eos_token_id": IM_END,
    "pad_token_id": 0,
}
PROMPTS = [[(7 * j + seed) % 250 for j in range(5 + 60 * seed)] for seed in range(3)]


def published(layer=(), **changes):
    """config.json of an assistant, as it is published."""
    text = {
        **LAYER,
        "model_type": "gemma4_text",
        "hidden_size": WIDTH,
        "num_hidden_layers": 3,
        "num_kv_shared_layers": 3,
        "layer_types": [SLIDING, SLIDING, FULL],
        "hidden_activation": "gelu_pytorch_tanh",
        "hidden_size_per_layer_input": 0,
        "vocab_size_per_layer_input": 0,
        "rms_norm_eps": 1e-6,
        **dict(layer),
    }
    return {
        "architectures": ["Gemma4AssistantForCausalLM"],
        "model_type": "gemma4_assistant",
        "backbone_hidden_size": WIDTH,
        "use_ordered_embeddings": False,
        "tie_word_embeddings": True,
        "text_config": text,
        **changes,
    }


ORDERED = {"use_ordered_embeddings": True, "num_centroids": 131, "centroid_intermediate_top_k": 16}
UNIFIED = {"hidden_size": 48, "model_type": "gemma4_unified_text"}
FORMS = {
    "all tokens": published({"hidden_size": 48}),
    "nearest tokens": published({"hidden_size": 48}, **ORDERED),
    "unified": published(UNIFIED, model_type="gemma4_unified_assistant", **ORDERED),
}


def randomised(network):
    """Norms and scalars that are not all ones, and large enough matrices to tell them apart."""
    for name, tensor in network.state_dict().items():
        if "norm" in name or "scalar" in name:
            tensor.add_(0.1 * torch.randn(tensor.shape))
        elif name.endswith("token_ordering"):
            tensor.copy_(torch.randperm(len(tensor)))
        elif "proj" in name or "centroids" in name:
            tensor.mul_(5)


@functools.cache
def target():
    """Its layers add little, so that what it says follows mostly from the last token."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        config = AutoConfig.for_model("gemma4_text", **TARGET)
        network = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
        network.requires_grad_(False)
        randomised(network)
    for name, tensor in network.state_dict().items():
        if ".post_" in name:
            tensor.mul_(0.3)
    network.get_input_embeddings().weight *= 4
    network.get_output_embeddings().weight *= 50
    return LanguageModel(network, 320)


def info():
    """What headers would say of it."""
    config = target().network.config.to_dict()
    sizes = {"hidden_size": WIDTH, "vocab_size": 262, "layers": 4}
    kept = caches.of_config(config, "gemma4_text")
    return ModelInfo("target", None, "safetensors", "gemma4_text", **sizes, **kept)


@functools.cache
def library(form):
    """The library's own network of an assistant."""
    config = AutoConfig.for_model(**FORMS[form])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        network = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
        network.requires_grad_(False)
        randomised(network)
    return network


def write(folder, config, state, change=lambda state: state):
    """Published without the matrix that is the table once more."""
    kept = {n: t.clone().contiguous() for n, t in state.items() if n != "lm_head.weight"}
    folder.mkdir(parents=True)
    write_json(folder / "config.json", config)
    save_file(change(kept), folder / "model.safetensors")
    return folder


def tensors(config):
    """Of an assistant that says what the target says where the last token tells it."""
    config = AutoConfig.for_model(**config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        network = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        small = 0.05 * torch.randn(WIDTH, WIDTH)
    state = {n: t.detach().clone() for n, t in network.state_dict().items()}
    for name, tensor in state.items():
        if ".post_" in name:
            tensor.mul_(0.3)
    state["pre_projection.weight"] = torch.cat([torch.eye(WIDTH), small], 1)
    state["post_projection.weight"] = torch.eye(WIDTH)
    theirs = target().network
    state["model.embed_tokens.weight"] = theirs.get_output_embeddings().weight.clone()
    state["model.norm.weight"] = theirs.model.norm.weight.clone()
    if "masked_embedding.token_ordering" in state:
        state["masked_embedding.token_ordering"] = torch.arange(262)
        pairs = state["model.embed_tokens.weight"].view(131, 2, WIDTH)
        state["masked_embedding.centroids.weight"] = pairs.mean(1)
    return state


def opened(folder, precision="fp32"):
    return open_head(folder, target(), info(), precision)


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
    head = opened(write(tmp_path / "h", config, network.state_dict()))
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


@pytest.mark.parametrize("ordered", [{}, ORDERED])
@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_ids_equal_plain_decoding(ordered, precision, tmp_path):
    config, model = published(**ordered), target()
    drafter = listening(opened(write(tmp_path / "h", config, tensors(config)), precision), model)
    drafted = accepted = 0
    for seed, prompt in enumerate(PROMPTS):
        for temperature in (0.0, 0.8):
            choose = policy(temperature=temperature, seed=seed, answer_start=len(prompt))
            expected = plain(model, prompt, tokens=30, choose=choose)
            for length in (1, 3, 7):
                found, *counts = run(
                    model, drafter, prompt, tokens=30, draft_length=length, choose=choose
                )
                assert found == expected
                drafted, accepted = drafted + counts[0], accepted + counts[1]
    model.tell()
    assert 0 < accepted < drafted


def test_where_its_last_state_is_gone_it_waits_for_the_next_pass(tmp_path):
    config, model = published(), target()
    drafter = listening(opened(write(tmp_path / "h", config, tensors(config))), model)
    model.cache.empty()
    model.feed(PROMPTS[1][:-1])
    assert len(drafter.propose(PROMPTS[1], 3, policy()).tokens) == 3
    model.cache.crop_to(30)
    drafter.settle(30)
    assert drafter.propose(PROMPTS[1][:31], 3, policy()).tokens == ()
    model.forward(PROMPTS[1][30:31])
    assert len(drafter.propose(PROMPTS[1][:32], 3, policy()).tokens) == 3
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
    folder = write(tmp_path / "h", config, state, change or (lambda found: found))
    with pytest.raises(DraftRefused) as refused:
        opened(folder)
    assert refused.value.code == code
    assert value is None or value in refused.value.reason.values.values()


def test_keys_that_nobody_reads_and_a_shorter_order_are_taken(states, tmp_path):
    def change(state):
        name = "masked_embedding.token_ordering"
        keys = {"model.layers.0.self_attn.k_proj.weight": torch.zeros(32, WIDTH)}
        return state | keys | {name: state[name].int()}

    opened(write(tmp_path / "h", published(**ORDERED), states[1], change))


# --- in a session


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("gemma")
    model = target()
    state = {n: t.clone().contiguous() for n, t in model.network.state_dict().items()}
    config = model.network.config.to_dict()
    (root / "target").mkdir()
    save_file(state, root / "target" / "model.safetensors", metadata={"format": "pt"})
    more = {"architectures": ["Gemma4ForCausalLM"], "dtype": "float32"}
    write_json(root / "target" / "config.json", config | more)
    write_tokenizer(root / "target")
    (root / "target" / "chat_template.jinja").write_text(CHATML, encoding="utf-8")
    write(root / "assistant", published(), tensors(published()))
    return root


@pytest.fixture(scope="module")
def session(folders):
    found = Session(folders / "cache")
    found.load_target(folders / "target", precision="fp32")
    yield found
    found.close()


USER = [Message("user", "abc abd abc abd abc ab")]
LONG = [Message("user", "abc abd " * 20)]


def answer(session, messages=USER, length=4, **settings):
    sampling = Sampling(**{"temperature": 0.8, "seed": 3, "max_tokens": 24, **settings})
    return list(session.reply(messages, sampling, Drafting(length)))


def ids_of(chunks):
    return [token for chunk in chunks for token in chunk.token_ids]


def chat(session):
    """Two turns, an edit, a stop string, and to the end of the context, past the window."""
    first = answer(session)
    text = "".join(chunk.text for chunk in first)
    told = Message("assistant", text, tuple(ids_of(first)), session.target.loaded.vocabulary)
    return [
        first,
        answer(session, [*USER, told, *USER]),
        answer(session, [Message("user", "abc abX äöü 😀 abc abX")]),
        answer(session, temperature=0.0),
        answer(session, stop=(text[4:6],)),
        answer(session, LONG, max_tokens=None),
    ]


def test_no_edit_no_stop_and_no_end_of_the_context_changes_a_token(session, folders):
    session.choose_draft("none")
    wanted = chat(session)
    assert is_known(folders / "assistant")
    assert inspect(folders / "target").cache_widths == (64, 128, 0, 0)
    session.choose_draft(folders / "assistant")
    assert isinstance(only_drafter(session), AssistantDrafter)
    for _ in range(2):
        found = chat(session)
        assert [ids_of(one) for one in found] == [ids_of(one) for one in wanted]
        assert [one[-1].finish for one in found] == [one[-1].finish for one in wanted]
        usages = [one[-1].usage for one in found]
        assert 0 < sum(u.accepted for u in usages) < sum(u.drafted for u in usages)
    assert wanted[-1][-1].finish is Finish.CONTEXT
    said = {notice.code for one in found for chunk in one for notice in chunk.notices}
    assert "draft_failed" not in said


def test_a_session_refuses_one_for_another_target(session, folders, tmp_path):
    config = json.loads((folders / "assistant" / "config.json").read_text())
    state = load_file(folders / "assistant" / "model.safetensors")
    other = write(tmp_path / "h", config | {"backbone_hidden_size": 128}, state)
    with pytest.raises(DraftRefused, match="width 128, not 64"):
        session.choose_draft(other)
