"""The add-on in the frozen program: torch's real wheel for the processor, swapped in and answering.

SLIPSTREAM_TEST_BUNDLE names the folder that holds the executable, SLIPSTREAM_TEST_WHEEL torch's CPU
wheel of the same version. Where the pins name no CUDA, no card is asked for; else all is as it is
for a user.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from engine.library import addon, pins
from tests.index import build, index, table

BUNDLE = Path(os.environ.get("SLIPSTREAM_TEST_BUNDLE", ""))
WHEEL = Path(os.environ.get("SLIPSTREAM_TEST_WHEEL", ""))
LIBRARY = "torch/lib/libtorch_cpu.so"
SECONDS = 600

pytestmark = [
    pytest.mark.bundle,
    pytest.mark.skipif(not (BUNDLE / "slipstream").is_file(), reason="SLIPSTREAM_TEST_BUNDLE"),
    pytest.mark.skipif(not WHEEL.is_file(), reason="SLIPSTREAM_TEST_WHEEL"),
    pytest.mark.skipif(not pins.tag().startswith("cp311-linux"), reason="pinned for Python 3.11"),
]


@pytest.fixture
def program(tmp_path):
    """A copy of the bundle that pins the wheel, and an index that has it."""
    copy = tmp_path / "program"
    shutil.copytree(BUNDLE, copy, copy_function=os.link, symlinks=True)
    pinned = copy / "_internal" / "resources" / "gpu.json"
    pinned.unlink()
    files = {WHEEL.name: WHEEL.read_bytes()}
    pinned.write_text(table(build(files, cuda=None)), encoding="utf-8")
    with index(files) as served:
        yield _Program(copy, tmp_path / "home", served.url)


class _Program:
    def __init__(self, folder, home, url):
        self.folder, self.home = folder, home / "data" / "gpu"
        self._environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(home),
            "SLIPSTREAM_HOME": str(home),
            "PIP_INDEX_URL": f"{url}/simple",
            "OMP_NUM_THREADS": "1",
            "QT_QPA_PLATFORM": "offscreen",
        }

    def run(self, *words):
        return subprocess.run(
            [str(self.folder / "slipstream"), *words],
            env=self._environment, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip

    def says(self, *words):
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def answer(self):
        asked = ("--prompt", "Name three rivers.", "--max-tokens", "8", "--temperature", "0")
        return json.loads(self.says("chat", "--model", "starter", *asked, "--json"))["token_ids"]

    @property
    def torch(self):
        """The folder that torch is imported from."""
        return Path(json.loads(self.says("doctor", "--json"))["torch"]["folder"])


def test_another_torch_is_fetched_answers_breaks_and_is_given_up(program):
    packaged = program.folder / "_internal" / "torch-cpu"
    assert program.torch == packaged
    plain = program.answer()

    assert "From the next start on" not in program.says("gpu")
    enabled = program.run("gpu", "enable")
    assert enabled.returncode == 0, enabled.stderr
    assert "are downloaded" in enabled.stderr
    site = program.home / "site0"
    assert program.torch == site
    assert program.answer() == plain
    assert not (site / "torch" / "test").exists()
    assert not list(site.rglob("*.a"))

    library = site / LIBRARY
    whole = library.read_bytes()
    os.truncate(library, len(whole) // 2)
    assert program.answer() == plain
    assert program.torch == packaged
    assert "is damaged (libtorch_cpu.so)" in program.says("gpu")

    # of the right length, but nothing that can be loaded: the import itself fails
    library.write_bytes(b"\0" * 4096 + whole[4096:])
    (program.home / addon.REFUSAL).unlink()
    assert program.answer() == plain
    assert program.torch == packaged
    assert "cannot be loaded" in program.says("gpu")
    assert program.run("gpu", "enable").returncode == 1

    library.write_bytes(whole)
    program.says("gpu", "enable")
    assert program.torch == site

    program.says("gpu", "disable")
    assert program.torch == packaged
    assert [path.name for path in program.home.iterdir() if path.is_dir()] == []
    assert program.answer() == plain
