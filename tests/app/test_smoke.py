"""`slipstream --smoke`: its exit code, and the reason of a failure."""

import subprocess
import sys
from pathlib import Path

import pytest

SMOKE = (
    "import sys, time\nfrom app import smoke, start\n"
    "from engine.api import Chunk, Finish\nfrom engine.errors import TemplateError\n"
    "from tests.fakes import FakeShelf, ScriptedSession, chunks_of\n"
    "build = start.build\n"
    "start.build = lambda argv: build(argv, session_factory=lambda: session, shelf=shelf)\n"
    "shelf = FakeShelf({found})\nsession = ScriptedSession({answer})\n"
    "sys.exit(smoke.run(time.monotonic()))"
)


@pytest.mark.parametrize(
    ("found", "answer", "code", "said"),
    [
        ("", "[TemplateError('t', 'The template failed.')]", 1, "The template failed."),
        ("", "chunks_of(['a'])[:1] + [TemplateError('t', 'It broke.')]", 1, "It broke."),
        ("", "[Chunk(finish=Finish.STOP)]", 1, "it is empty"),
        ("[]", "", 1, "no model was found"),
        ("", "chunks_of(['Hello'])", 0, ""),
    ],
)
def test_the_smoke_run_says_why_it_failed(found, answer, code, said):
    done = subprocess.run(
        [sys.executable, "-c", SMOKE.format(found=found, answer=answer)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == code, done.stderr
    assert done.stderr.strip() == (f"no answer: {said}" if said else "")
