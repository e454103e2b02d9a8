"""Published models: their parameters from headers, and on which card they fit."""

import pytest

from engine.fit import GIB, Pair, Room, judge
from engine.library.inspect import inspect
from tests.published import FACTS, write

CARDS = (8, 12, 16, 24)  # GiB, all of it free
CONTEXT = 8192
# At 16 bits with 8,192 tokens: n(o), t(ight), f(its). In GiB: 2 bytes a parameter, keys and values
# (of every layer in full: a fixed block needs them so), 0.54 of the device's own, 0.02 of work.
# Running states count ten times: as they are, and copies to go back to.
VERDICTS = {
    "llama-3.1-8b": "nnnf",  # 14.96 + 1.00
    "llama-3.2-1b": "ffff",  # 2.30 + 0.25
    "qwen2.5-7b": "nnff",  # 14.19 + 0.44, so that 0.82 of 16 stay free: more than 5 %
    "qwen3-8b": "nnnf",  # 15.26 + 1.13
    "qwen3-30b-a3b": "nnnn",  # 56.87: all experts, however few are used
    "gemma-2-9b": "nnnf",  # 17.21 + 2.63
    "gemma-3-4b": "nfff",  # 7.23 and 0.78 for images + 1.06
    "gemma-3-12b": "nnnn",  # 22.70 + 3.00
    "gemma-4-e4b": "nnff",  # 13.90 + 0.44
    "gemma-4-31b": "nnnn",  # 58.25
    "qwen3.5-4b": "nfff",  # 7.83 + 0.25 and 10 x 0.05 of states
    "qwen3-next-80b-a3b": "nnnn",  # 148.41
    "deepseek-v3": "nnnn",  # 1249.88
    "deepseek-v2-lite": "nnnn",  # 29.26
    "gpt-oss-20b": "nnnn",  # 38.96
    "lfm2-1.2b": "ffff",  # 2.18 + 0.09
    "phi-3-mini-4k": "nfff",  # 7.12 + 3.00
    "mistral-7b-v0.3": "nnff",  # 13.50 + 1.00
    "mixtral-8x7b": "nnnn",  # 86.99
    "olmoe-1b-7b": "nnff",  # 12.89 + 1.00
    "mamba-codestral-7b": "nnnf",  # 13.57 + 10 x 0.25 of states: 16.68 with the 0.56
    "falcon-mamba-7b": "nnff",  # 13.55 + 10 x 0.04 of states
    "smollm2-135m": "ffff",  # 0.25 + 0.18
    "glm-4-9b-0414": "nnnf",  # 17.51 + 0.31
}
# The same at 4 bits: half a byte and a sixteenth for each number of a linear layer, 2 bytes for the
# others, among them the tables of tokens and a mixture's experts.
VERDICTS_INT4 = {
    "llama-3.1-8b": "ffff",  # 3.66 + 1.96 of tables + 1.00
    "qwen3-8b": "tfff",  # 3.64 + 2.32 + 1.13: 0.36 to spare
    "gemma-2-9b": "nfff",  # 4.36 + 1.71 + 2.63
    "phi-3-mini-4k": "ffff",  # 1.90 + 0.37 + 3.00
    "qwen3-30b-a3b": "nnnn",  # 54.0 of experts at 16 bits
}
WORDS = {"n": "no", "t": "tight", "f": "fits"}


@pytest.fixture(scope="module", params=FACTS)
def published(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("published") / request.param
    return request.param, inspect(write(request.param, folder))


def words(info, precision):
    pair = Pair(info, precision, CONTEXT)
    return [judge(pair, Room("cuda", "card", gib * GIB, gib * GIB)).word for gib in CARDS]


def test_a_published_model_has_the_parameters_that_it_is_known_by(published):
    name, info = published
    assert info.parameters == FACTS[name].parameters
    assert info.active == FACTS[name].active


def test_a_published_model_fits_on_the_cards_that_hold_it(published):
    name, info = published
    assert words(info, "bf16") == [WORDS[letter] for letter in VERDICTS[name]]
    if name in VERDICTS_INT4:
        assert words(info, "int4") == [WORDS[letter] for letter in VERDICTS_INT4[name]]


def test_parts_that_text_does_not_need_are_no_parameters(published):
    name, info = published
    # the towers of Gemma 3 and 4: what transformers builds beside the text
    expected = {"gemma-3-4b": 419_816_304, "gemma-3-12b": 421_290_864, "gemma-4-31b": 575_741_232}
    assert info.apart == expected.get(name, 0)
