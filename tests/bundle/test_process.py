"""How it starts, what it starts itself, and what it leaves alone."""

import contextlib
import resource
import subprocess
from pathlib import Path

import psutil
import pytest

from tests.bundle.program import BUNDLE, TOP, command, until

pytestmark = pytest.mark.bundle


def test_it_starts_where_the_environment_says_nothing(tmp_path):
    told = {} if BUNDLE else {"PYTHONPATH": str(TOP)}
    done = subprocess.run(
        [*command(), "--version"],
        env=told,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("slipstream ")


def test_a_second_start_calls_the_first_and_ends(program, tiny):
    first = program.start()
    try:
        until((program.data / "running.address").exists)
        program.run()
        program.run(str(tiny))
        assert first.poll() is None
    finally:
        first.kill()
        first.communicate()


def test_a_list_of_models_needs_no_torch_and_little_time(program, tiny):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process, mapped = program.start("models", "--models", str(tiny)), set()
    while process.poll() is None:
        mapped |= maps(process.pid)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert "tiny" in process.communicate()[0]
    assert not any("torch" in name for name in mapped)
    # the processor's time: that of the clock is others' too
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3


def maps(process):
    """The files that it has mapped; none where it has just ended."""
    try:
        lines = Path(f"/proc/{process}/maps").read_text().splitlines()
    except OSError:
        return set()
    return {line.rpartition("/")[2] for line in lines if "/" in line}


def test_its_children_are_helpers_and_end_with_it(program, tiny):
    """Chat templates are rendered in one; none is the program again."""
    process = program.start("chat", "--model", str(tiny), "--prompt", "hi", "--max-tokens", "99")
    program_itself, above, words = psutil.Process(process.pid), {}, {}
    while process.poll() is None:
        with contextlib.suppress(psutil.NoSuchProcess):
            for child in program_itself.children(recursive=True):
                above.setdefault(child.pid, child.ppid())  # the first: orphans get another
                words[child.pid] = child.cmdline()
    assert process.communicate()[0]
    assert set(above.values()) == {process.pid}
    for said in filter(None, words.values()):
        assert any("multiprocessing" in word for word in said), said
    until(lambda: not any(map(psutil.pid_exists, above)), 20)


def test_children_end_where_the_program_is_killed(program, tiny):
    process = program.start("chat", "--model", str(tiny), "--prompt", "hi")
    parent = psutil.Process(process.pid)
    until(parent.children)
    children = parent.children(True)
    process.kill()
    process.communicate()
    until(lambda: not any(child.is_running() for child in children), 20)
