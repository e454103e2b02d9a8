"""GGUF files become the model they were made from, or are refused for a reason."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from transformers import AutoConfig, AutoModelForCausalLM

from engine.errors import Incomplete, Unsupported
from engine.gguf.config import config_of
from engine.gguf.tokenizer import build_tokenizer, eos_ids_of, special_tokens_of, template_of
from engine.gguf.weights import empty_model, tensors
from engine.library.gguf import read_header
from engine.vocabulary import from_gguf, from_tokenizer_json
from tests.gguf_files import byte_level_metadata, converted, settings, write_gguf

SIZES = {
    "vocab_size": 96,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False,
    "pad_token_id": None,
    "rope_parameters": {"rope_type": "default", "rope_theta": 5000.0},
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
EXPERT_KEYS = {
    ".expert_count": 4,
    ".expert_used_count": 2,
    ".expert_feed_forward_length": 32,
}
GEMMA = {"tie_word_embeddings": True, "head_dim": 32, "query_pre_attn_scalar": 32}
GEMMA_ROPE = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 5000.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 700.0},
}
# name -> architecture in the file, model type, changes to SIZES, settings beyond the common ones
MODELS = {
    "llama": ("llama", "llama", {}, {}),
    "llama, tied": ("llama", "llama", {"tie_word_embeddings": True}, {".rope.dimension_count": 16}),
    "llama with biases": ("llama", "llama", {"attention_bias": True, "mlp_bias": True}, {}),
    "llama, wide heads": ("llama", "llama", {"head_dim": 32}, {".vocab_size": 96}),
    "qwen2": ("qwen2", "qwen2", {}, {}),
    "qwen3": ("qwen3", "qwen3", {"head_dim": 32}, {".attention.value_length": 32}),
    "qwen2moe": (
        "qwen2moe",
        "qwen2_moe",
        EXPERTS | {"shared_expert_intermediate_size": 64, "norm_topk_prob": False},
        EXPERT_KEYS | {".expert_shared_feed_forward_length": 64},
    ),
    "qwen3moe": ("qwen3moe", "qwen3_moe", EXPERTS | {"norm_topk_prob": True}, EXPERT_KEYS),
    "phi3": ("phi3", "phi3", {"sliding_window": 5}, {".attention.sliding_window": 5}),
    "gemma2": (
        "gemma2",
        "gemma2",
        GEMMA | {"sliding_window": 5, "attn_logit_softcapping": 9.0},
        {".attention.sliding_window": 5, ".attn_logit_softcapping": 9.0},
    ),
    "gemma3": (
        "gemma3",
        "gemma3_text",
        GEMMA | {"num_hidden_layers": 7, "sliding_window": 5, "rope_parameters": GEMMA_ROPE},
        {".attention.sliding_window": 5, ".rope.scaling.type": "linear",
         ".rope.scaling.factor": 8.0, ".rope.freq_base_swa": 700.0},
    ),
}  # fmt: skip


def made(name, **changes):
    """A tiny model with random weights, norms and biases included."""
    _, model_type, sizes, _ = MODELS[name]
    torch.manual_seed(1)
    config = AutoConfig.for_model(model_type, **{**SIZES, **sizes, **changes})
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        for value in model.parameters():
            value.normal_(std=0.2)
    return model


def written(path, name, model=None, *, without=(), quantisation="F32", more=None, **changes):
    """That model's file and header; `changes` to settings replace dots by double underscores."""
    architecture, _, _, extra = MODELS[name]
    model = model or made(name)
    metadata = settings(model.config) | extra
    metadata |= {"." + key.replace("__", "."): value for key, value in changes.items()}
    weights = {**converted(model, architecture), **(more or {})}
    weights = {key: value for key, value in weights.items() if key not in without}
    write_gguf(path / "tiny.gguf", architecture, metadata, weights, quantisation)
    return read_header(path / "tiny.gguf")


def loaded(header):
    """The model in the file, by way of everything that loading does."""
    config = config_of(header)
    model = empty_model(config, torch.float32, "cpu")
    with torch.no_grad():
        for value in model.parameters():
            value.fill_(float("nan"))
        for name, values in tensors(header, config, model):
            model.get_parameter(name).copy_(values)
    return model


def logits(model):
    ids = torch.arange(24).reshape(1, -1) * 5 % 96
    with torch.inference_mode():
        return model(ids).logits


@pytest.mark.parametrize("name", MODELS)
def test_a_model_written_and_loaded_gives_the_same_logits(tmp_path, name):
    model = made(name)
    again = loaded(written(tmp_path, name, model))
    assert again.config.tie_word_embeddings == model.config.tie_word_embeddings
    # Norms stored as weight + 1 lose a bit of float32.
    tolerance = 1e-4 if name.startswith("gemma") else 0.0
    torch.testing.assert_close(logits(again), logits(model), atol=tolerance, rtol=tolerance)


def test_a_split_model_gives_the_same_logits(tmp_path):
    architecture, _, _, extra = MODELS["llama"]
    model = made("llama")
    weights = list(converted(model, architecture).items())
    for number in range(3):
        facts = settings(model.config) | extra if number == 0 else {}
        facts |= {"split.no": number, "split.count": 3}
        path = tmp_path / f"m-{number + 1:05d}-of-00003.gguf"
        write_gguf(path, architecture, facts, dict(weights[number::3]))
    again = loaded(read_header(tmp_path / "m-00002-of-00003.gguf"))
    torch.testing.assert_close(logits(again), logits(model), atol=0, rtol=0)


@pytest.mark.parametrize(("quantisation", "step"), [("Q8_0", 1 / 127), ("Q4_0", 1 / 8)])
def test_quantised_weights_are_within_a_step(tmp_path, quantisation, step):
    model = made("llama")
    again = loaded(written(tmp_path, "llama", model, quantisation=quantisation))
    for name, value in model.named_parameters():
        read = again.get_parameter(name)
        if value.dim() == 1:
            assert torch.equal(read, value)
            continue
        errors = (read - value).abs().detach().reshape(-1, 32)
        # Queries and keys are quantised in llama.cpp's order of rows; a row stays a row.
        largest = value.abs().detach().reshape(-1, 32).amax(1, keepdim=True)
        assert (errors <= 1.02 * step * largest).all()
        assert errors.max() > 0


def test_large_tensors_are_read_in_pieces_that_join(tmp_path, monkeypatch):
    model = made("llama")
    header = written(tmp_path, "llama", model)
    monkeypatch.setattr("engine.gguf.blocks.CHUNK", 150)
    assert torch.equal(logits(loaded(header)), logits(model))


def test_an_empty_model_has_its_tables_and_its_ties():
    model = empty_model(made("llama, tied").config, torch.bfloat16, "cpu")
    assert model.lm_head.weight is model.model.embed_tokens.weight
    assert {value.dtype for value in model.parameters()} == {torch.bfloat16}
    assert torch.equal(model.model.rotary_emb.inv_freq, made("llama").model.rotary_emb.inv_freq)
    assert not model.training


@pytest.mark.parametrize("tensor", ["blk.1.attn_q.weight", "output_norm.weight"])
def test_a_missing_tensor_is_named(tmp_path, tensor):
    header = written(tmp_path, "llama", without=[tensor])
    config = config_of(header)
    with pytest.raises(Incomplete, match=tensor):
        tensors(header, config, empty_model(config, torch.float32, "meta"))


def test_a_tensor_of_another_size_is_named(tmp_path):
    header = written(tmp_path, "llama", feed_forward_length=97)
    config = config_of(header)
    with pytest.raises(Incomplete, match=r"blk\.0\.ffn_"):
        tensors(header, config, empty_model(config, torch.float32, "meta"))


def test_a_tensor_without_a_place_is_refused(tmp_path):
    odd = {"blk.0.attn_sinks.weight": np.zeros(4, np.float32)}
    header = written(tmp_path, "llama", more=odd)
    config = config_of(header)
    with pytest.raises(Unsupported, match="attn_sinks"):
        tensors(header, config, empty_model(config, torch.float32, "meta"))


def test_a_file_that_shrinks_while_it_is_read_is_incomplete(tmp_path):
    header = written(tmp_path, "llama")
    os.truncate(header.path, header.path.stat().st_size - 4096)
    with pytest.raises(Incomplete):
        loaded(header)


@pytest.mark.parametrize(
    "change",
    [{"attention__scale": 0.5}, {"logit_scale": 2.0}, {"expert_count": 8},
     {"attention__value_length": 32}, {"rope__dimension_count": 8}, {"attention__causal": False},
     {"attention__head_count_kv": [2, 2, 1]}, {"rope__scaling__type": "longrope"},
     {"attention__sliding_window": 8}, {"rope__freq_base_swa": 1e4}],
)  # fmt: skip
def test_a_setting_that_cannot_be_carried_over_is_refused_by_name(tmp_path, change):
    with pytest.raises(Unsupported, match=next(iter(change)).split("__")[-1]):
        config_of(written(tmp_path, "llama", **change))


@pytest.mark.parametrize(
    "change",
    [{"embedding_length": "64"}, {"block_count": 0}, {"block_count": 2**31 - 1},
     {"attention__layer_norm_rms_epsilon": -1.0}, {"context_length": True}],
)  # fmt: skip
def test_a_senseless_setting_is_incomplete(tmp_path, change):
    with pytest.raises(Incomplete):
        config_of(written(tmp_path, "llama", **change))


def test_an_unknown_architecture_is_named(tmp_path):
    write_gguf(tmp_path / "m.gguf", "rwkv7", {}, {"x": np.zeros(1, np.float32)})
    with pytest.raises(Unsupported, match="rwkv7"):
        config_of(read_header(tmp_path / "m.gguf"))


def test_rope_scaling_is_carried_over(tmp_path):
    linear = config_of(written(tmp_path, "llama", rope__scaling__factor=4.0)).rope_parameters
    assert (linear["rope_type"], linear["factor"]) == ("linear", 4.0)
    keys = {"type": "yarn", "factor": 4.0, "original_context_length": 64, "finetuned": True}
    keys = {"rope__scaling__" + key: value for key, value in keys.items()}
    yarn = config_of(written(tmp_path, "qwen2", **keys)).rope_parameters
    assert (yarn["rope_type"], yarn["factor"]) == ("yarn", 4.0)
    assert yarn["original_max_position_embeddings"] == 64


def llama3_factors(theta, head_dim, factor, low=1.0, high=4.0, original=8192):
    """What llama.cpp's converter stores for a Llama 3.1 rope."""
    result = []
    for i in range(0, head_dim, 2):
        wavelength = 2 * np.pi * theta ** (i / head_dim)
        if wavelength < original / high:
            result.append(1.0)
        elif wavelength > original / low:
            result.append(factor)
        else:
            smooth = (original / wavelength - low) / (high - low)
            result.append(1 / ((1 - smooth) / factor + smooth))
    return {"rope_freqs.weight": np.array(result, np.float32)}


def test_llama_3_rope_is_found_again_from_its_factors(tmp_path):
    rope = {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 32.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}  # fmt: skip
    model = made("llama", head_dim=64, rope_parameters=rope)
    factors = llama3_factors(500000.0, 64, 32.0)
    again = loaded(written(tmp_path, "llama", model, more=factors))
    assert torch.equal(logits(again), logits(model))


def test_other_rope_factors_are_refused(tmp_path):
    model = made("llama", head_dim=64)
    for factors in (
        llama3_factors(5000.0, 64, 8.0, low=2.0),
        {"rope_freqs.weight": np.full(32, 3.0, np.float32)},
        {"rope_freqs.weight": np.ones(8, np.float32)},
    ):
        with pytest.raises(Unsupported, match="rotary"):
            config_of(written(tmp_path, "llama", model, more=factors))
    factors = llama3_factors(5000.0, 64, 8.0)
    for name, change in (("llama", {"rope__scaling__factor": 2.0}), ("gemma3", {}), ("qwen2", {})):
        with pytest.raises(Unsupported, match=r"rope_freqs\.weight"):
            config_of(written(tmp_path, name, more=factors, **change))


def test_gemma_windows_may_be_stated(tmp_path):
    usual = config_of(written(tmp_path, "gemma3"))
    assert usual.layer_types == ["sliding_attention"] * 5 + ["full_attention", "sliding_attention"]
    every = config_of(written(tmp_path, "gemma3", attention__sliding_window_pattern=2))
    assert every.layer_types[:3] == ["sliding_attention", "full_attention", "sliding_attention"]
    flags = [True, False, False, True, True, True, False]
    listed = config_of(written(tmp_path, "gemma3", attention__sliding_window_pattern=flags))
    assert [kind == "sliding_attention" for kind in listed.layer_types] == flags
    for wrong in (0, [True], "2"):
        with pytest.raises(Incomplete):
            config_of(written(tmp_path, "gemma3", attention__sliding_window_pattern=wrong))


@pytest.mark.parametrize("shape", [(4, 32), (4, 64, 64), (64,)])
def test_experts_of_another_size_are_refused(tmp_path, shape):
    more = {"blk.1.ffn_up_exps.weight": np.zeros(shape, np.float32)}
    header = written(tmp_path, "qwen3moe", more=more)
    config = config_of(header)
    with pytest.raises(Incomplete, match="ffn_gate_exps"):
        tensors(header, config, empty_model(config, torch.float32, "meta"))


# --- tokenizers -------------------------------------------------------------------------------

AWKWARD = [
    "", " ", "  two   spaces\n\n\n\ttabs  ", "👩‍👩‍👧‍👦 龘 नमस्ते", "e\u0301 é",
    "\0\1", "12345 3.14", "<0x0A> Ġ", "Hello <|im_start|>user\nWie geht's?<|im_end|>",
    "don't <think>x</think>",
]  # fmt: skip
CHAT = {"<|im_start|>": 3, "<|im_end|>": 3, "<｜end｜>": 3, "<think>": 4, "</think>": 4}


def headed(path: Path, metadata, architecture="llama"):
    """The header of a file with this metadata and next to no weights."""
    weights = {"token_embd.weight": np.zeros((4, 4), np.float32)}
    return read_header(write_gguf(path / "vocab.gguf", architecture, metadata, weights))


def sentencepiece_metadata(**changes):
    """A vocabulary as Llama 2's: bytes, then letters, then words from pairs, best score first."""
    words = ["▁t", "he", "▁the", "▁▁", "ü"]
    letters = sorted(set("abcdefghijklmnopqrstuvwxyz.,'▁"))
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    types = [2, 3, 3] + [6] * 256 + [1] * len(words + letters) + [4]
    tokens += [*words, *letters, "<tool>"]
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.pre": "default",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [float(-i) for i in range(len(tokens))],
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
    } | {f"tokenizer.ggml.{key}": value for key, value in changes.items()}


def kept(header):
    """The tokenizer after a round through tokenizer.json, as the app's cache keeps it."""
    return Tokenizer.from_str(build_tokenizer(header).to_str())


@pytest.mark.parametrize("pre", ["gpt-2", "smollm", "qwen2", "llama-bpe", "tekken", "gpt-4o"])
def test_byte_level_text_survives_and_marked_tokens_are_whole(tmp_path, pre):
    metadata = byte_level_metadata(["Ġthe", "ĠHello"], CHAT, pre)
    header = headed(tmp_path, metadata)
    tokenizer = kept(header)
    for text in AWKWARD:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.decode(ids, skip_special_tokens=False) == text
    for text in CHAT:
        assert tokenizer.encode(f"a{text}b", add_special_tokens=False).ids == [
            ord("a"), metadata["tokenizer.ggml.tokens"].index(text), ord("b")
        ]  # fmt: skip
    hidden = tokenizer.encode("<think>x<｜end｜>").ids
    assert tokenizer.decode(hidden) == "<think>x"
    assert from_gguf(header.metadata) == from_tokenizer_json(tokenizer.to_str().encode())


def test_digits_are_cut_as_the_file_says(tmp_path):
    metadata = byte_level_metadata(["Ġ12", "123"])
    cut = {
        pre: build_tokenizer(headed(tmp_path, metadata | {"tokenizer.ggml.pre": pre}))
        .encode("123 12").tokens
        for pre in ("gpt-2", "smollm", "llama-bpe")
    }  # fmt: skip
    assert cut == {
        "gpt-2": ["123", "Ġ12"],
        "smollm": ["1", "2", "3", "Ġ", "1", "2"],
        "llama-bpe": ["123", "Ġ", "12"],
    }


def test_llama_3_takes_whole_words_that_no_pairs_lead_to(tmp_path):
    metadata = byte_level_metadata(["ab"], {"<s>": 3})
    metadata["tokenizer.ggml.tokens"].insert(256, "Ġxyz")
    metadata["tokenizer.ggml.token_type"].insert(256, 1)
    for pre, expected in (("gpt-2", ["Ġ", "x", "y", "z"]), ("llama-bpe", ["Ġxyz"])):
        header = headed(tmp_path, metadata | {"tokenizer.ggml.pre": pre})
        assert kept(header).encode(" xyz").tokens == expected


@pytest.mark.parametrize("prefix", [True, False])
def test_sentencepiece_text_survives(tmp_path, prefix):
    header = headed(tmp_path, sentencepiece_metadata(add_space_prefix=prefix))
    tokenizer = kept(header)
    for text in AWKWARD:
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert tokenizer.decode(ids, skip_special_tokens=False) == text
    # Llama 2 puts a space before a text and, as llama.cpp does too, behind a marked token.
    spaced = ["<s>", "▁the", "<0x0A>", "<tool>", "▁", "ü"]
    bare = ["<s>", "t", "he", "<0x0A>", "<tool>", "ü"]
    assert tokenizer.encode("the\n<tool>ü").tokens == (spaced if prefix else bare)
    assert from_gguf(header.metadata) == from_tokenizer_json(tokenizer.to_str().encode())


def test_typed_letters_never_join_to_a_control_token(tmp_path):
    metadata = sentencepiece_metadata()
    for text in ("<", ">", "/", "s>", "</"):
        metadata["tokenizer.ggml.tokens"].append(text)
        metadata["tokenizer.ggml.token_type"].append(1)
        metadata["tokenizer.ggml.scores"].append(0.0)
    tokenizer = kept(headed(tmp_path, metadata))
    assert tokenizer.encode("<s></s>", add_special_tokens=False).ids == [1, 2]
    tokenizer.encode_special_tokens = True
    typed = tokenizer.encode("<s></s>", add_special_tokens=False)
    assert typed.tokens == ["▁", "<", "s>", "</", "s>"]


def test_bos_is_added_where_the_file_or_its_kind_asks_for_it(tmp_path):
    def first(metadata):
        tokenizer = kept(headed(tmp_path, metadata))
        assert tokenizer.encode("a", add_special_tokens=False).tokens[-1] == "a"
        return tokenizer.encode("a").tokens[0]

    byte_level = byte_level_metadata(added={"<s>": 3}) | {"tokenizer.ggml.bos_token_id": 256}
    assert first(sentencepiece_metadata()) == "<s>"
    assert first(sentencepiece_metadata(add_bos_token=False)) != "<s>"
    assert first(byte_level) == "a"
    assert first(byte_level | {"tokenizer.ggml.add_bos_token": True}) == "<s>"
    assert first(byte_level | {"tokenizer.ggml.pre": "llama-bpe"}) == "<s>"


def test_tokens_that_only_fill_the_embedding_are_left_out(tmp_path):
    added = {"<|im_end|>": 3, "[PAD257]": 5, "[PAD258]": 5}
    assert kept(headed(tmp_path, byte_level_metadata(added=added))).get_vocab_size() == 257


def test_a_tokenizer_that_is_not_known_or_damaged_is_refused(tmp_path):
    known = byte_level_metadata(["ab"])
    unknown = {"tokenizer.ggml.pre": "klingon"}, {"tokenizer.ggml.model": "gemma4"}
    damaged = {"tokenizer.ggml.merges": ["a"]}, {"tokenizer.ggml.merges": ["q zz"]}
    for change in unknown:
        with pytest.raises(Unsupported):
            build_tokenizer(headed(tmp_path, known | change))
    for metadata in (*(known | change for change in damaged), byte_level_metadata(added={"a": 1})):
        with pytest.raises(Incomplete):
            build_tokenizer(headed(tmp_path, metadata))


def test_every_end_of_turn_the_vocabulary_marks_ends_an_answer(tmp_path):
    added = {"<|endoftext|>": 3, "<|im_start|>": 3, "<|im_end|>": 3, "<|end|>": 4, "<|eot_id|>": 1}
    metadata = byte_level_metadata(added=added) | {"tokenizer.ggml.eos_token_id": 256}
    assert eos_ids_of(headed(tmp_path, metadata)) == (256, 258, 259)
    named = {"tokenizer.ggml.eot_token_id": 257, "tokenizer.ggml.eom_token_id": 10**6}
    assert eos_ids_of(headed(tmp_path, metadata | named)) == (256, 257, 258, 259)


def test_template_and_special_tokens_are_read(tmp_path):
    header = headed(tmp_path, sentencepiece_metadata())
    assert special_tokens_of(header) == {
        "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"
    }  # fmt: skip
    assert template_of(header) is None
    header = headed(tmp_path, {"tokenizer.chat_template": "{{ x }}"})
    assert template_of(header) == "{{ x }}"
    assert special_tokens_of(header) == {}


def test_a_vocabulary_that_is_none_names_no_tokens(tmp_path):
    senseless = {"tokens": 5, "token_type": "x", "eos_token_id": 0, "bos_token_id": "<s>"}
    metadata = {f"tokenizer.ggml.{key}": value for key, value in senseless.items()}
    header = headed(tmp_path, metadata | {"tokenizer.chat_template": 7})
    assert (eos_ids_of(header), special_tokens_of(header), template_of(header)) == ((), {}, None)


@pytest.mark.real_model
def test_smollm2_reads_writes_and_continues(request):
    found = os.environ.get("SLIPSTREAM_TEST_MODELS")
    path = Path(found or "absent") / "smollm2-135m-instruct.q4_1.gguf"
    if not path.exists():
        pytest.skip("SLIPSTREAM_TEST_MODELS has no SmolLM2")
    header = read_header(path)
    tokenizer = kept(header)
    assert from_gguf(header.metadata) == from_tokenizer_json(tokenizer.to_str().encode())
    assert tokenizer.encode("<|im_start|>12").ids == [1, 33, 34]
    assert eos_ids_of(header) == (0, 2)
    for text in AWKWARD:
        assert tokenizer.decode(tokenizer.encode(text).ids, skip_special_tokens=False) == text
    ids = torch.tensor([tokenizer.encode("The capital of France is").ids])
    with torch.inference_mode():
        after = loaded(header)(ids).logits[0, -1].argmax()
    assert tokenizer.decode([int(after)]) == " Paris"
