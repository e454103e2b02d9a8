"""SRV-3: the program without standard input, output and error, as a windowed one has none."""

import pytest

from tests.bundle.program import BUNDLE, TINY
from tests.bundle.screen import converse

pytestmark = pytest.mark.bundle


def test_the_terminal_commands_work_without_a_terminal(program, hub_url):
    program.environment["HF_ENDPOINT"] = hub_url
    program.run("get", TINY, closed=True)
    (model,) = program.models.rglob("config.json")
    program.run("models", closed=True)
    program.run("doctor", closed=True)
    asked = ("--model", str(model.parent), "--draft", "ngram", "--max-tokens", "8")
    program.run("chat", *asked, "--prompt", "hi", closed=True)
    program.run("chat", *asked, closed=True)  # nobody asks anything
    program.run("chat", "--model", "nowhere", "--prompt", "hi", closed=True, code=1)


def test_the_window_works_and_logs_into_a_file(program, hub_url):
    program.environment["HF_ENDPOINT"] = hub_url
    program.run("get", TINY)
    (model,) = program.models.rglob("config.json")
    converse(program, "how are you", str(model.parent), closed=True)
    question, answer = program.entries()
    assert (question.text, question.role, answer.role) == ("how are you", "user", "assistant")
    assert answer.text
    assert "Traceback" not in program.log


@pytest.mark.skipif(not BUNDLE, reason="the starter model is in the bundle")
def test_it_checks_itself(program):
    program.run("--self-test", closed=True)
