"""EAGLE-3 heads: read as they are published, no token changed, and aligned so that they pay."""

import gc
import weakref
from dataclasses import replace

import pytest
import torch
from safetensors.torch import save_file

from engine.api import Drafting, Kind, Message, ModelInfo, Sampling
from engine.bench.comparison import compare
from engine.bench.plan import Plan
from engine.controller import FixedLength
from engine.decode import decode
from engine.drafters.head import HeadDrafter
from engine.errors import Cancelled, DraftRefused, LoadError, OutOfMemory, Unsafe
from engine.heads.opening import open_head
from engine.kernels.network import kernels
from engine.library.candidates import head_verdict
from engine.library.catalogue import Catalogue
from engine.library.inspect import inspect
from engine.memory import estimate
from engine.session import Session
from tests.folders import IM_END, tiny_config, write_json, write_model
from tests.heads import (
    PLACES,
    PROPOSAL,
    dflash_tensors,
    info_of,
    joined,
    reference,
    safeailab,
    speculators,
    speculators_dflash,
    speculators_peagle,
    tensors,
    write_head,
    zlab,
)
from tests.tiny import language_model, only_drafter, plain, policy, run
from tests.trained import late, rates, trained_head, trained_target

ONE_ROW = {"layer_types": ["sliding_attention"], "sliding_window": 1}
# Both formats, each flag, other sizes than the target's, other counts of states.
FORMATS = {
    "safeailab": (safeailab(), {}),
    "full vocabulary": (safeailab(draft_vocab_size=262), {}),
    "biases": (safeailab(attention_bias=True, norm_before_residual=True), {}),
    "five states": (
        safeailab(eagle_config={"eagle_aux_hidden_state_layer_ids": [0, 1, 2, 1, 0]}),
        {},
    ),
    "speculators": (speculators(), {"table": False}),
    "normed together": (speculators(norm_before_fc=True, norm_output=True), {}),
    "normed apart": (speculators(fc_norm=True, norm_before_residual=False), {}),
    "narrow": (
        speculators({"hidden_size": 32, "head_dim": 16}, target_hidden_size=64),
        {},
    ),
    "sliding": (speculators({**ONE_ROW, "sliding_window": 5}), {}),
}
PROMPTS = [[(7 * j + seed) % 250 for j in range(5 + 60 * seed)] for seed in range(3)]


@pytest.fixture(scope="module")
def target():
    return language_model()


def opened(folder, target, precision="fp32"):
    return open_head(folder, target, info_of(target), precision)


def listening(head, target):
    drafter = HeadDrafter(head, target.device)
    target.tell(drafter)
    return drafter


@pytest.fixture(scope="module", params=FORMATS)
def folder(request, tmp_path_factory):
    config, more = FORMATS[request.param]
    return write_head(tmp_path_factory.mktemp("head") / "h", config, **more)


@pytest.mark.parametrize(("precision", "temperature"), [("fp32", 0.8), ("int8", 0.0)])
def test_ids_equal_plain_decoding(folder, target, precision, temperature):
    drafter = listening(opened(folder, target, precision), target)
    drafted = 0
    for seed, prompt in enumerate(PROMPTS):
        choose = policy(temperature=temperature, seed=seed, answer_start=len(prompt))
        expected = plain(target, prompt, tokens=20, choose=choose)
        for length in (1, 7, 17):
            found, proposed, _ = run(
                target, drafter, prompt, tokens=20, draft_length=length, choose=choose
            )
            assert found == expected
            drafted += proposed
    assert drafted > 0


@pytest.mark.parametrize("name", FORMATS)
def test_a_head_says_what_its_format_says(name, target, tmp_path):
    """Over a whole text at once; and guess by guess, its own output in place of states."""
    config, more = FORMATS[name]
    head = opened(write_head(tmp_path / "h", config, **more), target)
    weights = tensors(config, **more)
    network = target.network
    tokens = torch.tensor([(5 * j) % 250 for j in range(30)])
    with torch.no_grad():
        hidden = network(tokens[None], output_hidden_states=True).hidden_states
        states = torch.cat([hidden[place][0] for place in head.places], -1)
        table = weights.get("embed_tokens.weight", network.get_input_embeddings().weight)
        x, embedded = joined(weights, config, states)[:-1], table[tokens[1:]]
        wanted, carried = reference(weights, config, x[None], embedded[None])
        torch.testing.assert_close(head.joined(states)[:-1], x, rtol=1e-3, atol=1e-3)
        # in two passes: keys and values are kept
        out = torch.cat([head(x[:20], tokens[1:21], 0), head(x[20:], tokens[21:], 20)])
        torch.testing.assert_close(out, carried[0], rtol=1e-3, atol=1e-3)
        ids = torch.arange(config["draft_vocab_size"]) + weights.get("d2t", 0)
        found = head.logits(out)
        torch.testing.assert_close(found[:, ids], wanted[0], rtol=1e-3, atol=1e-3)
        assert found.shape[-1] == 262
        assert found.isfinite().sum() == len(out) * len(ids)
        more_x = torch.cat([x, out[-1:]])
        again = torch.cat([embedded, table[tokens[3:4]]])
        _, wanted = reference(weights, config, more_x[None], again[None])
        torch.testing.assert_close(
            head(out[-1:], tokens[3:4], 29), wanted[0, -1:], rtol=1e-3, atol=1e-3
        )


def test_a_head_only_ever_holds_pairs_of_true_states(target, tmp_path):
    """Its keys are those of a head that was given the whole text at once, at every round."""
    folder = write_head(tmp_path / "h", safeailab())
    drafter, other = listening(opened(folder, target), target), opened(folder, target)
    tokens = list(PROMPTS[1])
    target.cache.empty()
    rounds = decode(target, drafter, FixedLength(4), tokens, policy(), limit=len(tokens) + 12)
    for _ in rounds:
        held = drafter._head.length
        if not held:
            continue
        out = target.network(torch.tensor([tokens]), output_hidden_states=True).hidden_states
        states = torch.cat([out[place][0] for place in PLACES], -1)
        other.empty()
        x = other.joined(states)
        other(x[:held], torch.tensor(tokens[1 : held + 1]), 0)
        for ours, theirs in zip(drafter._head._kept[0]._room, other._kept[0]._room, strict=True):
            torch.testing.assert_close(ours[:, :held], theirs[:, :held], rtol=1e-3, atol=1e-3)
        torch.testing.assert_close(
            drafter._states[: drafter._held], x[: drafter._held], rtol=1e-3, atol=1e-3
        )
    assert held >= len(PROMPTS[1]) + 5


def test_a_head_that_comes_late_begins_where_it_came(target, tmp_path):
    drafter = listening(opened(write_head(tmp_path / "h", safeailab()), target), target)
    tokens = list(PROMPTS[2])
    choose = policy(temperature=0.8)
    expected = plain(target, tokens, tokens=12, choose=choose)
    drafter.reset()
    target.tell()
    target.cache.empty()
    target.feed(tokens[:50])
    target.tell(drafter)
    drafted = 0
    for _, one in decode(target, drafter, FixedLength(3), tokens, choose, limit=len(tokens) + 12):
        drafted += one.drafted
    assert tokens[len(PROMPTS[2]) :] == expected
    assert drafter._first == 50
    assert drafted > 0


def test_a_text_of_one_token_has_no_state_yet(target, tmp_path):
    drafter = listening(opened(write_head(tmp_path / "h", safeailab()), target), target)
    target.cache.empty()
    assert drafter.propose([65], 4, policy()).tokens == ()
    assert run(target, drafter, [65], tokens=8, draft_length=4, choose=policy())[1] > 0


def test_the_same_proposal_twice_and_none_beyond_the_limit(target, tmp_path):
    drafter = listening(opened(write_head(tmp_path / "h", safeailab()), target), target)
    target.cache.empty()
    tokens = PROMPTS[1]
    target.feed(tokens[:-1])
    for limit in (0, 1, 5):
        found = [drafter.propose(tokens, limit, policy()).tokens for _ in range(2)]
        assert found[0] == found[1]
        assert len(found[0]) == limit


def test_a_head_without_rows_for_the_text_pauses(target, tmp_path):
    config = safeailab()
    drafter = listening(opened(write_head(tmp_path / "h", config), target), target)
    drafter._head.known = 100
    prompt = [5, 200, 7, 9]
    expected = plain(target, prompt, tokens=8, choose=policy())
    got, drafted, _ = run(target, drafter, prompt, tokens=8, draft_length=3, choose=policy())
    assert got == expected
    assert drafted == 0
    assert drafter.pause.code == "draft_lacks_token"


# --- heads that do not belong


def without(config, *names):
    return {name: tensor for name, tensor in tensors(config).items() if name not in names}


def with_map(change):
    found = tensors(safeailab())
    found["d2t"] = change(found["d2t"])
    return found


REDUCED = safeailab()
BROKEN = {
    "no map": (REDUCED, without(REDUCED, "d2t"), "head_no_map", "d2t"),
    "map leads out": (REDUCED, with_map(lambda m: m + 200), "head_map_leads_out", 262),
    "map before the first": (REDUCED, with_map(lambda m: m - 30), "head_map_leads_out", -10),
    "map twice": (REDUCED, with_map(lambda m: m - torch.arange(len(m))), "head_map_twice", 20),
    "map of fractions": (REDUCED, with_map(lambda m: m.float()), "head_bad_map", "d2t"),
    "another width": (
        safeailab(hidden_size=48, intermediate_size=96),
        None,
        "head_fc",
        144,
    ),
    "other tokens": (safeailab(vocab_size=300), None, "head_tokens", 300),
    "a missing matrix": (
        REDUCED,
        without(REDUCED, "midlayer.mlp.up_proj.weight"),
        "head_lacks_tensor",
        "layers.0.mlp.up_proj.weight",
    ),
    "a missing norm": (
        speculators(norm_before_fc=True),
        without(speculators(), "x"),
        "head_lacks_tensor",
        "input_norm.weight",
    ),
    "a norm that no flag names": (
        speculators(norm_before_fc=False),
        tensors(speculators(norm_before_fc=True)),
        "head_surplus",
        "input_norm.weight",
    ),
    "both norms": (
        speculators(norm_before_fc=True, fc_norm=True),
        None,
        "head_setting",
        "fc_norm",
    ),
    "another shape": (
        REDUCED,
        tensors(REDUCED) | {"norm.weight": torch.ones(63)},
        "head_shape",
        "norm.weight",
    ),
    "whole numbers": (
        REDUCED,
        tensors(REDUCED) | {"norm.weight": torch.ones(64, dtype=torch.int8)},
        "head_shape",
        "I8 x 64",
    ),
    "a layer too many": (safeailab(num_hidden_layers=2), None, "head_setting", "2"),
    "another activation": (safeailab(hidden_act="gelu"), None, "head_setting", "gelu"),
    "one state only": (
        safeailab(eagle_config={"use_aux_hidden_state": False}),
        tensors(REDUCED),
        "head_setting",
        "use_aux_hidden_state",
    ),
    "more states than fc reads": (
        safeailab(eagle_config={"eagle_aux_hidden_state_layer_ids": [0, 1]}),
        tensors(REDUCED),
        "head_joined",
        192,
    ),
    "a layer that is not there": (
        safeailab(eagle_config={"eagle_aux_hidden_state_layer_ids": [0, 1, 5]}),
        None,
        "head_layers",
        5,
    ),
    "layers of a deep target": (safeailab(eagle_config={}), tensors(REDUCED), "head_layers", -1),
    "lossy": (
        speculators(speculators_config={"proposal_methods": [PROPOSAL | {"verifier_accept_k": 3}]}),
        None,
        "head_lossy",
        "verifier_accept_k",
    ),
    "tolerant": (
        speculators(
            speculators_config={"proposal_methods": [PROPOSAL | {"accept_tolerance": 0.1}]}
        ),
        None,
        "head_lossy",
        "0.1",
    ),
    "unknown positions": (
        safeailab(rope_scaling={"rope_type": "spiral", "factor": 2.0}),
        None,
        "head_setting",
        "spiral",
    ),
    "positions that lack a number": (
        safeailab(rope_scaling={"rope_type": "linear"}),
        None,
        "head_positions",
        None,
    ),
    "a flag that is none": (
        safeailab(norm_before_residual="yes"),
        None,
        "head_setting",
        "norm_before_residual",
    ),
    "heads that do not divide": (
        safeailab(num_key_value_heads=3),
        None,
        "head_setting",
        "num_key_value_heads",
    ),
    "narrow and without a table": (
        speculators({"hidden_size": 32, "head_dim": 8}, target_hidden_size=64),
        without(
            speculators({"hidden_size": 32, "head_dim": 8}, target_hidden_size=64),
            "embed_tokens.weight",
        ),
        "head_no_table",
        "embed_tokens.weight",
    ),
    "a size that is none": (
        safeailab(intermediate_size=-5),
        tensors(REDUCED),
        "head_setting",
        "intermediate_size",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_head_that_does_not_belong_is_refused_by_number_or_tensor(
    name, target, tmp_path, monkeypatch
):
    """SPC-2: before a weight is read."""
    config, weights, code, value = BROKEN[name]
    if code != "head_positions":
        monkeypatch.setattr("engine.heads.opening.FolderWeights", None)
    folder = write_head(tmp_path / "h", config, weights or tensors(config))
    with pytest.raises(DraftRefused) as refused:
        opened(folder, target)
    assert refused.value.code == code
    assert value is None or value in refused.value.reason.values.values()


def test_a_pickle_is_refused(target, tmp_path):
    folder = write_head(tmp_path / "h", safeailab())
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    session = Session(tmp_path, None)
    session.load_target(write_model(tmp_path / "target"))
    with pytest.raises(Unsafe) as refused:
        session.choose_draft(folder)
    assert refused.value.code == "pickle"
    session.close()


# --- alignment


@pytest.fixture(scope="module")
def knowing():
    return trained_target()


TRAINED = {
    "safeailab": safeailab(**ONE_ROW),
    "speculators": speculators(ONE_ROW, norm_before_fc=True),
}


@pytest.fixture(scope="module")
def heads(knowing, tmp_path_factory):
    """Trained with a reference of the paper's formulas; they see their own row only, so that
    the states alone can tell them what came before."""
    found = {}
    for name, config in TRAINED.items():
        found[name] = write_head(
            tmp_path_factory.mktemp(name) / "h", config, trained_head(knowing, config)
        )
    return found


@pytest.mark.parametrize("name", TRAINED)
def test_a_trained_head_is_right_far_beyond_chance_and_only_if_read_as_it_was_trained(
    name, heads, knowing
):
    """Chance is 1/16, or 0.2 by the last token alone; each of these mistakes leaves the text as it
    is and takes the speed."""
    folder, config = heads[name], TRAINED[name]
    assert rates(folder, knowing, HeadDrafter)[0] > 0.7
    assert rates(folder, knowing, late(HeadDrafter))[0] < 0.25
    off_by_one = [min(place + 1, 2) for place in PLACES]
    key = "eagle_aux_hidden_state_layer_ids"
    wrong = {key: off_by_one} if key in config else {"eagle_config": {key: off_by_one}}
    assert rates(folder, knowing, HeadDrafter, **wrong)[0] < 0.25
    flipped = not config.get("norm_before_residual", False)
    assert rates(folder, knowing, HeadDrafter, norm_before_residual=flipped)[0] < 0.3


def test_a_map_of_ids_read_as_offsets_would_be_wrong(heads, knowing):
    """What a head says goes to the target's ids by offsets."""

    def change(weights):
        return weights | {"d2t": torch.zeros_like(weights["d2t"])}

    assert rates(heads["safeailab"], knowing, HeadDrafter, change)[0] < 0.05


@pytest.mark.parametrize(
    ("names", "level"),
    [
        (("Target", "somebody/target"), "good"),
        (("Another", "somebody/target"), "caution"),
        (("Target", None), "caution"),
    ],
)
def test_a_head_whose_sizes_are_right_can_be_chosen(tmp_path, target, names, level):
    """It is said whether it was made for this target."""
    verifier = {"verifier": {"name_or_path": names[1]}}
    folder = write_head(tmp_path / "h", speculators(speculators_config=verifier))
    info = replace(info_of(target), name=names[0])
    catalogue = Catalogue({"targets": [], "drafts": []})
    verdict = head_verdict(inspect(folder), info, catalogue)
    assert verdict.level == level
    recurrent = replace(info, recurrent=True)
    assert head_verdict(inspect(folder), recurrent, catalogue).level == "refused"
    (folder / "config.json").unlink()
    assert head_verdict(inspect_again(folder), info, catalogue).level == "refused"


def inspect_again(folder):
    return ModelInfo("h", folder, "safetensors", "", Kind.HEAD)


@pytest.mark.parametrize(
    "config",
    [
        safeailab(),
        speculators(),
        speculators_peagle({"num_hidden_layers": 2}),
        zlab(),
        speculators_dflash(),
    ],
)
@pytest.mark.parametrize("precision", ["int8", "bf16", "int4"])
def test_its_memory_is_estimated_as_it_is(config, precision, target, tmp_path):
    dflash = "DFlash" in config["architectures"][0]
    weights = dflash_tensors(config) if dflash else tensors(config)
    folder = write_head(tmp_path / "h", config, weights)
    head = opened(folder, target, precision)
    held = sum(kernel.nbytes for kernel in kernels(head))
    held += sum(p.numel() * p.element_size() for p in head.parameters())
    guessed = estimate(inspect(folder), precision, "cpu", 100)
    assert guessed.weights == pytest.approx(held, rel=0.03)
    assert guessed.cache > 0
    # on a card all has 16 bits
    numbers = sum(tensor.numel() for tensor in weights.values())
    there = estimate(inspect(folder), precision, "cuda", 100)
    assert there.weights == pytest.approx(2 * numbers, rel=0.03)


def test_a_head_of_another_kind_cannot_be_used_yet(tmp_path, target):
    config = safeailab(architectures=["LlamaMedusa"], medusa_num_heads=4)
    weights = {"norm.weight": torch.ones(64)}
    folder = write_head(tmp_path / "h", config, weights)
    with pytest.raises(DraftRefused) as refused:
        opened(folder, target)
    assert refused.value.code == "head"


def test_a_bench_has_a_row_for_a_head(heads, session, tmp_path):
    path = session.target.loaded.info.path
    plan = Plan(
        path,
        tmp_path,
        prompts=[("(/.-7*31",)],
        drafts=[heads["safeailab"]],
        draft_lengths=[3],
        precisions=["fp32"],
        max_tokens=12,
        against_transformers=True,
    )
    report = compare(plan)
    row = next(row for row in report.rows if row.drafter == "eagle3")
    assert row.differing_ids == 0
    assert row.acceptance_rate > 0


# --- in a session


@pytest.fixture(scope="module")
def session(knowing, tmp_path_factory):
    root = tmp_path_factory.mktemp("session")
    folder = write_model(root / "target", config=tiny_config(eos_token_id=IM_END))
    save_file(
        {n: t.contiguous() for n, t in knowing.network.state_dict().items()},
        folder / "model.safetensors",
        metadata={"format": "pt"},
    )
    settings = {"eos_token": "<|im_end|>", "bos_token": "<s>"}
    write_json(folder / "tokenizer_config.json", settings)
    (folder / "chat_template.jinja").write_text(
        "{% for m in messages %}{{ m.content }}{% endfor %}", encoding="utf-8"
    )
    found = Session(root / "cache")
    found.load_target(folder)
    yield found
    found.close()


def test_a_head_tells_how_far_it_is_and_can_be_stopped(session, tmp_path):
    folder = write_head(tmp_path / "h", safeailab(**ONE_ROW))
    told = []
    session.choose_draft(folder, progress=told.append)
    done = [one.done for one in told]
    assert (done[0], done[-1]) == (0, told[-1].total)
    assert done == sorted(done)
    assert len(set(done)) > 5
    assert session._drafter.listeners
    for calls in (0, 1, 3):
        asked = iter([False] * calls + [True] * 9)
        with pytest.raises(Cancelled):
            session.choose_draft(folder, stopped=lambda asked=asked: next(asked))
        assert not session._drafter.listeners


USER = [Message("user", "(/.-7*31")]


def answer(session, messages=USER, length=4, **settings):
    sampling = Sampling(**{"temperature": 1.0, "seed": 3, "max_tokens": 24, **settings})
    return list(session.reply(messages, sampling, Drafting(length)))


def ids_of(chunks):
    return [token for chunk in chunks for token in chunk.token_ids]


def test_a_head_chosen_in_mid_chat_sees_all_of_it(session, heads):
    session.choose_draft("none")
    expected = ids_of(answer(session))
    session.choose_draft(heads["safeailab"])
    assert ids_of(answer(session)) == expected
    assert only_drafter(session)._first == 0


def test_without_the_head_nobody_listens_and_its_memory_is_free(session, heads):
    session.choose_draft(heads["safeailab"])
    answer(session)
    drafter = weakref.ref(only_drafter(session))
    session.choose_draft("none")
    gc.collect()
    assert drafter() is None
    assert not session.target.model._tap._listeners


def test_a_head_that_breaks_leaves_the_answer_as_it_was(session, heads, monkeypatch):
    session.choose_draft("none")
    expected = ids_of(answer(session))
    session.choose_draft(heads["safeailab"])
    head = only_drafter(session)._head
    monkeypatch.setattr(type(head), "logits", lambda *_: 1 / 0)
    chunks = answer(session)
    assert ids_of(chunks) == expected
    assert "draft_failed" in [n.code for c in chunks for n in c.notices]
    monkeypatch.undo()
    found = answer(session)
    assert ids_of(found) == expected


def test_a_head_for_which_memory_lacks_is_an_error_in_words(session, heads, monkeypatch):
    session.choose_draft("none")
    monkeypatch.setattr("engine.heads.opening._settle", lambda *_: [].pop())
    with pytest.raises(LoadError) as failed:
        session.choose_draft(heads["safeailab"])
    assert failed.value.code == "load_failed"
    monkeypatch.setattr("engine.heads.opening._settle", no_memory)
    with pytest.raises(OutOfMemory):
        session.choose_draft(heads["safeailab"])
    assert ids_of(answer(session))


def no_memory(*_):
    raise MemoryError


def test_weights_in_16_bits_are_as_good(heads, knowing):
    def half(weights):
        return {n: t.bfloat16() if t.is_floating_point() else t for n, t in weights.items()}

    assert rates(heads["safeailab"], knowing, HeadDrafter, half)[0] > 0.55


def test_a_head_does_not_end_an_answer_while_the_target_reads(session, heads, monkeypatch):
    """What it is told of a pass is no part of the pass."""
    session.choose_draft("none")
    expected = ids_of(answer(session))
    session.choose_draft(heads["safeailab"])
    monkeypatch.setattr(HeadDrafter, "hear", lambda *_: 1 / 0)
    assert ids_of(answer(session)) == expected
