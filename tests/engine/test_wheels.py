"""Pinned wheels from an index: whole or not at all, and only what was pinned."""

import shutil
import stat
from types import SimpleNamespace

import pytest

from engine.errors import Cancelled, DownloadError
from engine.library import transfer, unpacking, wheels
from engine.library.begun import PARTIAL
from engine.library.hub import ANYONE, Access
from tests import index as play
from tests.index import TORCH, build, index, pinned, wheel

SMALL = "nvidia_small-1-py3-none-any.whl"


@pytest.fixture(autouse=True)
def _online(monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(transfer, "WAITS", (0.0, 0.0))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "wheels"


@pytest.fixture
def files():
    small = wheel({"nvidia/lib/a.so": b"a" * 70_000, "nvidia_small-1.dist-info/METADATA": b"m"})
    return {TORCH: play.torch(), SMALL: small}


@pytest.fixture
def served(files, monkeypatch):
    with index(files) as made:
        monkeypatch.setenv("PIP_INDEX_URL", f"{made.url}/simple")
        yield made


def get(made, folder, *, stopped=lambda: False, access=ANYONE, progress=lambda _: None):
    wheels.fetch(made, folder, progress, stopped, access)


def code_of(call, *args, **kwargs):
    with pytest.raises(DownloadError) as caught:
        call(*args, **kwargs)
    return caught.value.code


def test_every_wheel_comes_whole_and_is_counted(files, served, folder):
    told = []
    made = build(files)
    get(made, folder, progress=told.append)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files
    assert told[-1].done == told[-1].total == made.size
    assert [p.done for p in told] == sorted(p.done for p in told)
    get(made, folder)
    assert served.asked("/files/") == 2


def test_a_download_goes_on_where_it_stopped(files, served, folder):
    made, half = build(files), len(files[TORCH]) // 2
    folder.mkdir()
    (folder / f"{TORCH}{PARTIAL}").write_bytes(files[TORCH][:half])
    assert wheels.come(made, folder) == half
    assert wheels.space(made, folder).needed == made.size - half + made.unpacked
    get(made, folder)
    assert (f"/files/{TORCH}", f"bytes={half}-") in served.requests
    assert (folder / TORCH).read_bytes() == files[TORCH]


def test_a_connection_that_breaks_is_made_again(files, served, folder):
    served.cut[TORCH] = [100_000, 200_000]
    get(build(files), folder)
    assert (folder / TORCH).read_bytes() == files[TORCH]
    assert [r for p, r in served.requests if p.endswith(TORCH)][1:] == [
        "bytes=100000-", "bytes=300000-",
    ]  # fmt: skip


def test_a_server_that_gives_no_parts_begins_anew(files, served, folder):
    served.ranges = False
    folder.mkdir()
    (folder / f"{TORCH}{PARTIAL}").write_bytes(b"x" * 1000)
    get(build(files), folder)
    assert (folder / TORCH).read_bytes() == files[TORCH]


def test_an_index_that_is_busy_is_asked_again(files, served, folder, monkeypatch):
    from engine.library import patience

    monkeypatch.setattr(patience, "WAITS", (0.0, 0.0))
    served.busy["/simple/torch"] = [(503, {}), (429, {})]
    get(build(files), folder)
    assert served.asked("/simple/torch") == 3


def test_other_bytes_than_the_pinned_ones_are_thrown_away(files, served, folder):
    served.lies[TORCH] = files[TORCH][:-1] + b"?"
    assert code_of(get, build(files), folder) == "wrong_hash"
    assert list(folder.iterdir()) == []


def test_more_bytes_than_pinned_are_not_taken(files, served, folder):
    served.lies[TORCH] = files[TORCH] * 3
    assert code_of(get, build(files), folder) == "wrong_size"
    assert list(folder.iterdir()) == []


def test_fewer_bytes_than_pinned_end_in_a_sentence_and_are_kept(files, served, folder):
    served.lies[TORCH] = files[TORCH][:50_000]
    assert code_of(get, build(files), folder) == "no_index"
    assert not (folder / TORCH).exists()
    assert (folder / f"{TORCH}{PARTIAL}").stat().st_size == 50_000


@pytest.mark.parametrize("what", ["size", "hash"])
def test_an_index_with_another_wheel_of_that_name_is_not_asked_for_it(files, served, folder, what):
    made = build(files)
    if what == "size":
        served.sizes[TORCH] = 7
    else:
        files[TORCH] = files[TORCH][:-1] + b"?"
    assert code_of(get, made, folder) == "other_wheel"
    assert served.asked("/files/") == 0


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (lambda s: s.repositories["index"].pop(TORCH), "index_gone"),
        (lambda s: s.fail.update({"/files/": (404, {})}), "index_gone"),
        (lambda s: s.fail.update({"/simple/": (403, {})}), "index_failed"),
        (lambda s: s.says.update({"/simple/": ("text/html", b"<html>log in")}), "not_an_index"),
        (lambda s: s.says.update({"/simple/": ("application/json", b"[" * 9000)}), "not_an_index"),
        (lambda s: s.says.update({"/files/": ("text/html", b"<html>log in")}), "not_an_index"),
    ],
)
def test_what_an_index_answers_instead_is_a_sentence(files, served, folder, fault, code):
    made = build(files)
    fault(served)
    assert code_of(get, made, folder) == code
    assert not (folder / TORCH).exists()


@pytest.mark.parametrize(
    ("address", "code"),
    [("http://127.0.0.1:9/simple", "no_index"), ("nonsense", "bad_index")],
)
def test_no_index_is_a_sentence(files, folder, monkeypatch, address, code):
    monkeypatch.setenv("PIP_INDEX_URL", address)
    assert code_of(get, build(files), folder) in (code, "no_index", "not_an_index")


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://example.org/x.whl"])
def test_only_the_web_is_asked(files, served, folder, url):
    import json

    listed = {"files": [{"filename": TORCH, "url": url}]}
    served.says["/simple/"] = ("application/json", json.dumps(listed).encode())
    assert code_of(get, build(files), folder) == "index_gone"


def test_offline_nothing_is_asked(files, served, folder):
    assert code_of(get, build(files), folder, access=Access(offline=True)) == "offline"
    assert served.requests == []


def test_without_room_for_wheels_and_what_is_in_them_nothing_begins(
    files, served, folder, monkeypatch
):
    made = build(files)
    free = made.size + made.unpacked - 1
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))
    assert code_of(get, made, folder) == "no_space"
    assert served.requests == []


def test_a_stopped_download_keeps_what_has_come(files, served, folder):
    come = []

    def stopped():
        return sum(p.done > 50_000 for p in come) > 0

    with pytest.raises(Cancelled):
        get(build(files), folder, stopped=stopped, progress=come.append)
    kept = (folder / f"{TORCH}{PARTIAL}").stat().st_size
    assert 0 < kept < len(files[TORCH])
    get(build(files), folder)
    assert (folder / TORCH).read_bytes() == files[TORCH]


def unpacked(data, tmp_path, pin=None, stopped=lambda: False):
    archive, folder = tmp_path / "a.whl", tmp_path / "out"
    archive.write_bytes(data)
    folder.mkdir(exist_ok=True)
    unpacking.unpack(pin or pinned("a.whl", data), archive, folder, lambda _: None, stopped)
    return folder


def test_what_is_never_needed_is_not_unpacked(tmp_path):
    folder = unpacked(play.torch(), tmp_path)
    names = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert names == {
        "torch/__init__.py", "torch/lib/libtorch_cpu.so", "torch/bin/torch_shm_manager",
        "torch-2.13.0.dist-info/METADATA",
    }  # fmt: skip
    assert (folder / "torch/bin/torch_shm_manager").stat().st_mode & stat.S_IXUSR
    assert not (folder / "torch/__init__.py").stat().st_mode & stat.S_IXUSR


LINK = stat.S_IFLNK | 0o777


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        ("../evil.py", None), ("torch/../../evil.py", None), ("/evil.py", None),
        ("C:/evil.py", None), ("torch/..\\..\\evil.py", None), ("evil/x.py", None),
        ("torch/link.so", LINK), ("torch/a\nb.py", None), ("sitecustomize.py", None),
    ],
)  # fmt: skip
def test_a_wheel_that_reaches_outside_writes_nothing(tmp_path, name, mode):
    members = {"torch/a.py": b"1", name: b"evil"}
    data = wheel(members, {name: mode} if mode else None)
    good = pinned("a.whl", wheel({"torch/a.py": b"1" * 100}))
    assert code_of(unpacked, data, tmp_path, good) == "odd_wheel"
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == [tmp_path / "a.whl"]


def test_a_wheel_that_grows_beyond_its_pin_is_refused(tmp_path):
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.whl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("torch/a.py", b"\0" * 5_000_000)
    bomb = (tmp_path / "a.whl").read_bytes()
    good = pinned("a.whl", wheel({"torch/a.py": b"1" * 100}))
    assert code_of(unpacked, bomb, tmp_path, good) == "odd_wheel"
    # and where its table of contents lies about that
    shrunk = bomb.replace((5_000_000).to_bytes(4, "little"), (90).to_bytes(4, "little"))
    assert shrunk != bomb
    assert code_of(unpacked, shrunk, tmp_path, good) == "odd_wheel"
    assert sum(p.stat().st_size for p in (tmp_path / "out").rglob("*") if p.is_file()) <= 100


def test_a_damaged_wheel_is_refused(tmp_path):
    data = play.torch()
    assert code_of(unpacked, data[:-500], tmp_path, pinned("a.whl", data)) == "odd_wheel"


def test_unpacking_can_be_stopped(tmp_path):
    with pytest.raises(Cancelled):
        unpacked(play.torch(), tmp_path, stopped=lambda: True)
