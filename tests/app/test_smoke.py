"""`slipstream --smoke`: its exit code, and the reason of a failure."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

SMOKE = """
import contextlib, io, json, sys, time
from app import smoke, start
from engine.api import Chunk, Finish
from engine.errors import TemplateError
from tests.fakes import FakeShelf, ScriptedSession, chunks_of

build = start.build
for found, answer in json.loads(sys.argv[1]):
    session, shelf = ScriptedSession(eval(answer)), FakeShelf(found)
    start.build = lambda argv: build(argv, session_factory=lambda: session, shelf=shelf)
    with contextlib.redirect_stdout(None), contextlib.redirect_stderr(io.StringIO()) as said:
        code = smoke.run(time.monotonic())
    print(json.dumps([code, said.getvalue().strip()]))
"""
# The models found (None: some), what the session answers; the code, and what is said.
CASES = [
    (None, "[TemplateError('t', 'The template failed.')]", 1, "The template failed."),
    (None, "chunks_of(['a'])[:1] + [TemplateError('t', 'It broke.')]", 1, "It broke."),
    (None, "[Chunk(finish=Finish.STOP)]", 1, "it is empty"),
    ([], "[]", 1, "no model was found"),
    (None, "chunks_of(['Hello'])", 0, ""),
]


@pytest.fixture(scope="module")
def ended():
    """How each case ended, all run in one process."""
    asked = json.dumps([case[:2] for case in CASES])
    done = subprocess.run(
        [sys.executable, "-c", SMOKE, asked],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_smoke_run_says_why_it_failed(ended, number):
    *_, code, said = CASES[number]
    assert ended[number] == [code, f"no answer: {said}" if said else ""]
