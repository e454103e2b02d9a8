"""The catalogue of public drafts: every row has a source, and is offered to the right target."""

import datetime
import json
from dataclasses import replace
from pathlib import Path

import pytest

import resources
from engine.api import ModelInfo
from engine.guidance import HEAD_FOR_THIS, RECURRENT_TARGET, Level
from engine.library import catalogue
from engine.library.catalogue import Catalogue
from engine.library.scan import Entry

TABLE = json.loads(resources.read_text("catalogue.json"))
GUIDANCE = json.loads(resources.read_text("guidance.json"))
KINDS = {"model", "eagle3", "dflash", "mtp", "p-eagle", "pard", "assistant"}
TARGET_KEYS = {
    "repository", "name", "vocabulary", "parameters", "active", "licence", "source", "read",
}  # fmt: skip
DRAFT_KEYS = (TARGET_KEYS - {"active"}) | {"kind", "for"}


def local(name, path=None, parameters=7_615_616_512):
    return ModelInfo(
        name,
        Path(path or name),
        "gguf",
        "qwen2",
        parameters=parameters,
        hidden_size=3584,
        vocab_size=152_064,
        context=32_768,
        linear=parameters,
        linear_rows=0,
        embedding=0,
        head=0,
        other=0,
        cache_widths=(1024,) * 28,
        cache_windows=(0,) * 28,
    )


def entry(name, path=None):
    info = local(name, path)
    return Entry(name, info.path, info, None)


@pytest.mark.parametrize("kind", ["targets", "drafts"])
def test_every_row_is_whole_and_has_a_source_and_a_date(kind):
    keys = TARGET_KEYS if kind == "targets" else DRAFT_KEYS
    for row in TABLE[kind]:
        assert row.keys() == keys, row
        assert row["source"].startswith("https://"), row
        datetime.date.fromisoformat(row["read"])
        assert row["repository"].count("/") == 1, row
        assert row["parameters"] is None or 1e7 < row["parameters"] < 2e12, row


def test_rows_refer_to_each_other_and_none_is_there_twice():
    targets = {row["repository"]: row for row in TABLE["targets"]}
    assert len(targets) == len(TABLE["targets"])
    assert len({(r["repository"], r["kind"]) for r in TABLE["drafts"]}) == len(TABLE["drafts"])
    families = {row["vocabulary"] for row in TABLE["targets"]}
    for row in TABLE["drafts"]:
        assert row["kind"] in KINDS, row
        assert row["vocabulary"] in families, row
        for target in row["for"]:
            assert targets[target]["vocabulary"] == row["vocabulary"], row


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("Qwen2.5 7B Instruct", "x.gguf"),
        ("qwen2.5-7b-instruct", "qwen2.5-7b-instruct"),
        ("Other", "Qwen2.5-7B-Instruct-Q4_K_M.gguf"),
        ("Other", "qwen2.5-7b-instruct-q8_0.gguf"),
        ("Other", "Qwen2.5-7B-Instruct-UD-IQ3_XXS.gguf"),
        ("Other", "qwen2_5_7b_instruct_fp16.gguf"),
        ("Other", "models--Qwen--Qwen2.5-7B-Instruct/snapshots/abc"),
        ("Other", "models--bartowski--Qwen2.5-7B-Instruct-GGUF/snapshots/abc/x.gguf"),
        ("Other", "Qwen2.5-7B-Instruct"),
    ],
)
def test_a_target_is_known_by_any_of_its_names(name, path):
    offers = Catalogue(TABLE).offers(local(name, path), [])
    assert "Qwen/Qwen2.5-0.5B-Instruct" in {offer.repository for offer in offers}


def known_as(name):
    row = Catalogue(TABLE)._known(replace(local(name), path=Path(f"{name}.gguf")))
    return None if row is None else row["repository"]


@pytest.mark.parametrize(
    ("name", "repository"),
    [
        ("Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("Meta-Llama-3.1-8B-Instruct-Q4_K_M", "meta-llama/Llama-3.1-8B-Instruct"),
        ("Meta Llama 3.1 8B Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("meta-llama_Llama-3.1-8B-Instruct-IQ4_XS", "meta-llama/Llama-3.1-8B-Instruct"),
        ("llama3.1:8b", "meta-llama/Llama-3.1-8B-Instruct"),
        ("llama3.1:70b-instruct-q4_K_M", "meta-llama/Llama-3.1-70B-Instruct"),
        ("google_gemma-3-4b-it-Q4_K_M", "google/gemma-3-4b-it"),
        ("gemma-3-4b-it-qat-q4_0-gguf", "google/gemma-3-4b-it"),
        ("gemma3:4b", "google/gemma-3-4b-it"),
        ("gemma3:4b-it-qat", "google/gemma-3-4b-it"),
        ("unsloth_Qwen3-8B-GGUF", "Qwen/Qwen3-8B"),
        ("Qwen_Qwen3-8B-Q4_K_M", "Qwen/Qwen3-8B"),
        ("bartowski/Qwen_Qwen3-8B-GGUF", "Qwen/Qwen3-8B"),
        ("hf.co/unsloth/Qwen3-8B-GGUF:Q4_K_M", "Qwen/Qwen3-8B"),
        ("Qwen3-8B-unsloth-bnb-4bit", "Qwen/Qwen3-8B"),
        ("Qwen3-8B-BF16", "Qwen/Qwen3-8B"),
        ("Qwen3-8B-FP8-dynamic", "Qwen/Qwen3-8B"),
        ("Qwen3-8B-quantized.w4a16", "Qwen/Qwen3-8B"),
        ("Qwen3-8B-GPTQ-Int4", "Qwen/Qwen3-8B"),
        ("Qwen3-8B-MLX-4bit", "Qwen/Qwen3-8B"),
        ("Qwen3-8B-TQ1_0", "Qwen/Qwen3-8B"),
        ("Qwen3-32B-Q8_0-00001-of-00002", "Qwen/Qwen3-32B"),
        ("qwen3:8b", "Qwen/Qwen3-8B"),
        ("qwen3:30b-a3b", "Qwen/Qwen3-30B-A3B"),
        ("qwen2.5:7b", "Qwen/Qwen2.5-7B-Instruct"),
        ("qwen2.5:7b, qwen2.5:latest", "Qwen/Qwen2.5-7B-Instruct"),
        ("qwen2.5:7b-instruct-q8_0", "Qwen/Qwen2.5-7B-Instruct"),
        ("qwen2.5-coder:7b", "Qwen/Qwen2.5-Coder-7B-Instruct"),
        ("Qwen2.5-Coder-7B-Instruct-AWQ", "Qwen/Qwen2.5-Coder-7B-Instruct"),
        ("gpt-oss:20b", "openai/gpt-oss-20b"),
        ("gpt-oss-20b-MXFP4", "openai/gpt-oss-20b"),
        ("smollm2:1.7b", "HuggingFaceTB/SmolLM2-1.7B-Instruct"),
        ("phi4:14b", "microsoft/phi-4"),
        ("gemma4:e4b", "google/gemma-4-E4B-it"),
    ],
)
def test_a_model_is_known_under_the_names_that_people_meet(name, repository):
    assert known_as(name) == repository


@pytest.mark.parametrize(
    "name",
    [
        "Qwen3-8B-Base",
        "Qwen3-80B",
        "Qwen3-8B-abliterated",
        "abliterated_Qwen3-8B",
        "Qwen3-8B_eagle3",
        "Qwen2.5-7B",
        "Qwen2.5 70B Instruct",
        "Qwen2.5-7B-Instruct-1M",
        "qwen2.5:latest",
        "qwen2.5:7b-base",
        "qwen2.5:70b",
        "Llama-3.2-8B-Instruct",
        "Meta-Llama-3-8B-Instruct",
        "Meta-Llama-3.1-8B",
        "Llama-31-8B-Instruct",
        "llama3.2:8b",
        "Llama-3.1-7B-Instruct",
        "gemma-2-9b",
        "gemma-3-4b-pt",
        "gemma-34b-it",
        "google_gemma",
        "8b",
        "Q4_K_M",
        "",
        ":",
        "/",
    ],
)
def test_another_size_version_or_make_is_another_model(name):
    assert known_as(name) is None


def test_no_two_rows_go_by_one_name():
    for kind in ("targets", "drafts"):
        keys = [key for row in TABLE[kind] for key in catalogue._keys(row)]
        rows = [catalogue._keys(row) for row in TABLE[kind] if row.get("kind") != "mtp"]
        shared = {key for key in keys if sum(key in own for own in rows) > 1}
        assert shared == set()


def dense(width, layers, inner, heads, groups, head, table, *, bias=False, norms=2, normed=False):
    """Parameters of a model with one matrix for both ends, as Llama's and its kind are built."""
    attention = 2 * width * head * heads + 2 * width * head * groups
    attention += head * (heads + 2 * groups) * bias + 2 * head * normed
    return table * width + layers * (attention + 3 * width * inner + norms * width) + width


@pytest.mark.parametrize(
    ("repository", "count"),
    [
        ("Qwen/Qwen2.5-0.5B-Instruct", dense(896, 24, 4864, 14, 2, 64, 151_936, bias=True)),
        ("Qwen/Qwen2.5-Coder-0.5B-Instruct", dense(896, 24, 4864, 14, 2, 64, 151_936, bias=True)),
        ("Qwen/Qwen2.5-1.5B-Instruct", dense(1536, 28, 8960, 12, 2, 128, 151_936, bias=True)),
        ("Qwen/Qwen2.5-Coder-1.5B-Instruct", dense(1536, 28, 8960, 12, 2, 128, 151_936, bias=True)),
        ("Qwen/Qwen2.5-3B-Instruct", dense(2048, 36, 11_008, 16, 2, 128, 151_936, bias=True)),
        ("Qwen/Qwen3-0.6B", dense(1024, 28, 3072, 16, 8, 128, 151_936, normed=True)),
        ("Qwen/Qwen3-1.7B", dense(2048, 28, 6144, 16, 8, 128, 151_936, normed=True)),
        ("Qwen/Qwen3-4B", dense(2560, 36, 9728, 32, 8, 128, 151_936, normed=True)),
        ("meta-llama/Llama-3.2-1B-Instruct", dense(2048, 16, 8192, 32, 8, 64, 128_256)),
        ("meta-llama/Llama-3.2-3B-Instruct", dense(3072, 28, 8192, 24, 8, 128, 128_256)),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", dense(576, 30, 1536, 9, 3, 64, 49_152)),
        ("HuggingFaceTB/SmolLM2-360M-Instruct", dense(960, 32, 2560, 15, 5, 64, 49_152)),
        ("HuggingFaceTB/SmolLM2-1.7B-Instruct", dense(2048, 24, 8192, 32, 32, 64, 49_152)),
        ("HuggingFaceTB/SmolLM3-3B", dense(2048, 36, 11_008, 16, 4, 128, 128_256)),
        ("ibm-granite/granite-3.3-8b-instruct", dense(4096, 40, 12_800, 32, 8, 128, 49_159)),
        ("microsoft/Phi-4-mini-instruct", dense(3072, 32, 8192, 24, 8, 128, 200_064)),
        ("google/gemma-2-2b-it", dense(2304, 26, 9216, 8, 4, 256, 256_000, norms=4)),
        ("google/gemma-2-9b-it", dense(3584, 42, 14_336, 16, 8, 256, 256_000, norms=4)),
        ("google/gemma-2-27b-it", dense(4608, 46, 36_864, 32, 16, 128, 256_000, norms=4)),
    ],
)
def test_a_matrix_that_is_both_ends_counts_once(repository, count):
    """Some are stored twice in the files whose counts are published."""
    (row,) = [r for r in TABLE["targets"] + TABLE["drafts"] if r["repository"] == repository]
    assert row["parameters"] == count


def test_an_unknown_target_is_offered_nothing():
    assert Catalogue(TABLE).offers(local("My own model"), []) == []


def test_what_is_here_is_not_offered():
    here = [entry("Qwen2.5 0.5B Instruct", "qwen2.5-0.5b-instruct-q8_0.gguf")]
    offers = Catalogue(TABLE).offers(local("Qwen2.5 7B Instruct"), here)
    assert offers
    assert "Qwen/Qwen2.5-0.5B-Instruct" not in {offer.repository for offer in offers}


def test_offers_are_of_the_targets_vocabulary_and_heads_are_its_own():
    rows = {row["repository"]: row for row in TABLE["drafts"]}
    for target in TABLE["targets"]:
        for offer in Catalogue(TABLE).offers(local(target["name"]), []):
            row = rows[offer.repository]
            assert row["vocabulary"] == target["vocabulary"]
            assert not offer.targets or target["repository"] in offer.targets
            assert offer.kind == "mtp" or offer.repository != target["repository"]


def test_every_row_is_shown_for_some_target():
    shown = {
        (offer.repository, offer.kind)
        for target in TABLE["targets"]
        for offer in Catalogue(TABLE).offers(local(target["name"]), [])
    }
    assert shown == {(row["repository"], row["kind"]) for row in TABLE["drafts"]}


def test_what_a_target_brings_itself_is_named_though_its_files_lack_it():
    target = local("MiMo 7B RL")
    (own,) = Catalogue(TABLE).offers(target, [entry("MiMo 7B RL")])
    assert own.kind == "mtp"
    verdict, info = catalogue.verdict(own, target, GUIDANCE)
    assert (verdict.level, info) == (Level.REFUSED, None)
    assert verdict.reason.text == "Built in: but not in these files"
    assert Catalogue(TABLE).offers(target, [entry("MiMo 7B RL")], own_head=True) == []


def test_an_offer_is_judged_by_size_and_its_download_guessed():
    target = local("Qwen2.5 7B Instruct")
    offers = {o.repository: o for o in Catalogue(TABLE).offers(target, [])}
    small = offers["Qwen/Qwen2.5-0.5B-Instruct"]
    verdict, info = catalogue.verdict(small, target, GUIDANCE)
    assert verdict.level is Level.GOOD
    assert info.parameters == small.parameters
    assert small.size == 2 * small.parameters


def test_heads_that_are_read_are_offered_and_others_say_their_format():
    info = local("Qwen3 8B")
    offers = [o for o in Catalogue(TABLE).offers(info, []) if o.targets]
    seen = {}
    for offer in offers:
        verdict, model = catalogue.verdict(offer, info, GUIDANCE)
        assert model is None
        if offer.kind in ("eagle3", "p-eagle", "dflash"):
            assert (verdict.level, verdict.reason) == (Level.GOOD, HEAD_FOR_THIS)
        else:
            assert verdict.level is Level.REFUSED
        seen[offer.kind] = offer
    unread = replace(seen["p-eagle"], kind="dspark")
    said = catalogue.verdict(unread, info, GUIDANCE)[0].reason
    assert said.text == f"DSpark head for {info.name}: cannot be used yet"


def test_a_head_for_a_target_that_cannot_be_drafted_for_is_not_offered():
    info = local("Qwen3 8B")
    recurrent = replace(info, recurrent=True, architecture="mamba", format="gguf")
    heads = [o for o in Catalogue(TABLE).offers(info, []) if o.kind == "eagle3"]
    assert heads
    for offer in heads:
        assert catalogue.verdict(offer, recurrent, GUIDANCE)[0].reason == RECURRENT_TARGET


def test_a_head_on_disk_is_known_by_its_repository():
    targets = {row["repository"]: row["name"] for row in TABLE["targets"]}
    heads = [row for row in TABLE["drafts"] if row["for"] and row["kind"] != "mtp"]
    for row in heads:
        owner, name = row["repository"].split("/")
        path = f"models--{owner}--{name}/snapshots/abc"
        assert Catalogue(TABLE).made_for(local("head", path)) in targets.values()
    first = heads[0]
    name = first["repository"].split("/")[1]
    assert Catalogue(TABLE).made_for(local(name)) == targets[first["for"][0]]
    assert Catalogue(TABLE).made_for(local("My own head")) is None


def test_a_size_that_nobody_stated_is_unknown():
    target = local("Qwen2.5 7B Instruct")
    offer = replace(Catalogue(TABLE).offers(target, [])[0], parameters=None, kind="model")
    verdict, info = catalogue.verdict(offer, target, GUIDANCE)
    assert verdict.level is Level.CAUTION
    assert verdict.reason.text == "Unknown: its size is not known"
    nameless = replace(target, parameters=None)
    said = catalogue.verdict(replace(offer, parameters=1), nameless, GUIDANCE)[0].reason
    assert said.text == "Unknown: the files do not state their sizes"
    assert info.parameters is info.linear is offer.size is None
