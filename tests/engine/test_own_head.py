"""Whether a target brings a head of its own, told from its headers."""

import pytest

from engine.guidance import Level
from engine.library import own_head
from engine.library.inspect import inspect
from tests.folders import write_bare, write_gguf

LAYER = {
    "model.embed_tokens.weight": [262, 64],
    "model.layers.0.self_attn.q_proj.weight": [64, 64],
}
AT = "model.mtp_layers.0."
MIMO = {
    f"{AT}token_layernorm.weight": [64],
    f"{AT}hidden_layernorm.weight": [64],
    f"{AT}input_proj.weight": [64, 128],
    f"{AT}final_layernorm.weight": [64],
}


def judged(folder, head):
    write_bare(folder, LAYER | head)
    return own_head.judge(inspect(folder))


def test_a_target_without_one_has_no_verdict(tmp_path):
    assert judged(tmp_path / "m", {}) is None
    write_gguf(tmp_path / "m.gguf", {"token_embd.weight": [256, 64]})
    assert own_head.judge(inspect(tmp_path / "m.gguf")) is None


def test_one_that_is_read_can_draft(tmp_path):
    found = judged(tmp_path / "m", MIMO)
    assert (found.level, found.reason) == (Level.GOOD, own_head.GOOD)


@pytest.mark.parametrize(
    ("head", "code", "named"),
    [
        ({n: s for n, s in MIMO.items() if "final" not in n}, "head_lacks_tensor", "final_"),
        (MIMO | {f"{AT}input_proj.weight": [64, 64]}, "head_shape", "64 x 128"),
        ({"mtp.layers.0.norm.weight": [64]}, "own_head_unknown", "cannot be used yet"),
    ],
)
def test_one_that_is_not_is_refused_by_what_is_wrong(tmp_path, head, code, named):
    found = judged(tmp_path / "m", head)
    assert (found.level, found.reason.code) == (Level.REFUSED, code)
    assert named in found.reason.text


def test_one_in_a_gguf_file_is_refused(tmp_path):
    tensors = {"token_embd.weight": [256, 64], "blk.1.nextn.eh_proj.weight": [64, 128]}
    write_gguf(tmp_path / "m.gguf", tensors)
    found = own_head.judge(inspect(tmp_path / "m.gguf"))
    assert (found.level, found.reason) == (Level.REFUSED, own_head.IN_GGUF)
