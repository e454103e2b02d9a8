"""EXE-1: pickles and code in a model's folder never run, whatever is asked about it."""

import pickle
import shutil
from pathlib import Path

import pytest

from tests.folders import tiny_config, tokenizer_config, write_json

pytestmark = pytest.mark.bundle
CLASSES = {"AutoConfig": "cfg.C", "AutoModelForCausalLM": "m.M"}


class Marker:
    """Creates a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture
def pwned(tmp_path):
    """What must never exist."""
    return tmp_path / "pwned"


@pytest.fixture
def pickled(tiny, tmp_path, pwned):
    """(a) Weights that are a pickle; it would act, as is seen first."""
    folder = tmp_path / "pickled"
    shutil.copytree(tiny, folder, ignore=shutil.ignore_patterns("*.safetensors"))
    data = pickle.dumps(Marker(pwned))
    pickle.loads(data)
    pwned.unlink()
    (folder / "pytorch_model.bin").write_bytes(data)
    return folder


@pytest.fixture
def coded(tiny, tmp_path, pwned):
    """(b) A configuration that names code."""
    return _with_code(tiny, tmp_path / "coded", pwned, "config.json", tiny_config(auto_map=CLASSES))


@pytest.fixture
def tokenized(tiny, tmp_path, pwned):
    """(c) A tokenizer's configuration that does."""
    named = tokenizer_config(auto_map=CLASSES)
    return _with_code(tiny, tmp_path / "tokenized", pwned, "tokenizer_config.json", named)


def _with_code(tiny, folder, pwned, file, config):
    shutil.copytree(tiny, folder)
    for name in ("cfg.py", "m.py"):
        (folder / name).write_text(f"open({str(pwned)!r}, 'w')\nclass C: pass\nclass M: pass\n")
    write_json(folder / file, config)
    return folder


REFUSALS = {
    "pickled": "pytorch_model.bin is a pickle, which can run code: only safetensors are loaded.",
    "coded": "config.json asks for custom code to be run: cfg.C, m.M.",
    "tokenized": "tokenizer_config.json asks for custom code to be run: cfg.C, m.M.",
}


def test_it_is_listed_with_the_reason_and_nothing_runs(
    program, tiny, tmp_path, pickled, coded, tokenized, pwned
):
    listed = program.run("models", "--models", str(tmp_path))[0]
    drafts = program.run("drafts", str(tiny), "--models", str(tmp_path))[0]
    for refusal in REFUSALS.values():
        assert refusal in listed
        assert refusal in drafts
    assert not pwned.exists()


@pytest.mark.parametrize("kind", REFUSALS)
def test_it_is_refused_in_words_and_nothing_runs(program, tiny, request, pwned, kind):
    folder, refusal = str(request.getfixturevalue(kind)), REFUSALS[kind]
    asked = ("--prompt", "hi", "--max-tokens", "4")
    assert refusal in program.run("fit", folder, code=1)[1]
    assert refusal in program.run("drafts", folder, code=1)[1]
    assert refusal in program.run("chat", "--model", folder, *asked, code=1)[1]
    assert (
        refusal in program.run("chat", "--model", str(tiny), "--draft", folder, *asked, code=1)[1]
    )
    assert not pwned.exists()
