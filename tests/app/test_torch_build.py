"""Which torch a packaged program imports, whatever lies in the user's folder."""

import os
import signal
import subprocess
import sys
import time

import pytest

from app import torch_addon
from engine.library import addon
from tests.packaged import bundle, put_addon, start

IMPORT = "import torch, torch.part; print(torch.name, torch.part.name)"


@pytest.fixture
def packaged(tmp_path):
    return bundle(tmp_path)


def imported(packaged, code=IMPORT):
    """What a start prints; it must not end badly."""
    done = start(packaged, code)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def code_of_refusal():
    refused = addon.refusal(torch_addon.home())
    return refused and refused[0].code


def test_without_an_addon_it_is_the_packaged_one(packaged):
    assert imported(packaged) == "packaged packaged"
    assert not torch_addon.home().exists()


def test_an_addon_comes_first_and_the_packaged_one_stays_behind_it(packaged):
    site = put_addon()
    assert imported(packaged) == "added added"
    paths = imported(packaged, "print(sys.path[0], sys.path[1])").split()
    assert paths == [str(site), str(packaged / "torch-cpu")]
    assert code_of_refusal() is None
    assert not (torch_addon.home() / "loading").exists()


def test_children_import_the_same(packaged):
    put_addon()
    code = """
from engine.child import Child
from tests import packaged
child = Child(packaged.tell)
print(child.receive(30))
child.close()
"""
    assert imported(packaged, code) == "added"


def test_one_for_another_torch_python_or_system_is_not_used(packaged):
    put_addon(torch="2.12.0")
    assert imported(packaged) == "packaged packaged"
    put_addon(tag="cp310-linux_x86_64")
    assert imported(packaged) == "packaged packaged"
    put_addon(tag="cp311-win32_amd64")
    assert imported(packaged) == "packaged packaged"
    assert code_of_refusal() is None


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"torch": "2.13.0"}', "\0" * 50])
def test_a_damaged_note_is_no_addon(packaged, damage):
    put_addon()
    (torch_addon.home() / addon.NOTE).write_text(damage)
    assert imported(packaged) == "packaged packaged"


@pytest.mark.parametrize("site", ["..", "../../elsewhere", "/tmp", ""])
def test_a_note_names_no_folder_elsewhere(packaged, site):
    real = put_addon()
    note = torch_addon.home() / addon.NOTE
    note.write_text(note.read_text().replace(f'"{real.name}"', f'"{site}"'))
    assert imported(packaged) == "packaged packaged"


@pytest.mark.parametrize("change", [lambda p: p.unlink(), lambda p: p.write_bytes(b"x" * 99)])
def test_a_library_that_is_cut_off_or_gone_is_seen_before_it_is_loaded(packaged, change):
    change(put_addon() / "torch" / "large.so")
    assert imported(packaged) == "packaged packaged"
    assert code_of_refusal() == "addon_damaged"


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
def test_one_that_others_can_write_to_is_not_run(packaged):
    put_addon().chmod(0o777)
    assert imported(packaged) == "packaged packaged"
    assert code_of_refusal() == "addon_not_ours"


def test_where_the_import_fails_the_packaged_one_comes_in_its_place(packaged):
    put_addon("from torch import part; raise OSError('libcublas.so.13: file too short')")
    assert imported(packaged) == "packaged packaged"
    reason, told = addon.refusal(torch_addon.home())
    assert reason.code == "addon_failed"
    assert "libcublas.so.13: file too short" in reason.text
    assert not told
    # and from then on nobody tries
    paths = imported(packaged, "print(sys.path[0])")
    assert paths == str(packaged / "torch-cpu")


def test_where_its_libraries_are_loaded_already_the_next_start_falls_back(packaged):
    put_addon("sys = __import__('sys'); sys.modules['torch._C'] = sys; raise ImportError('half')")
    done = start(packaged, IMPORT)
    assert "ImportError: half" in done.stderr
    assert imported(packaged) == "packaged packaged"
    assert code_of_refusal() == "addon_failed"


def test_where_it_ended_the_program_the_next_start_falls_back(packaged):
    put_addon("import os; os._exit(7)")
    assert start(packaged, IMPORT).returncode == 7
    assert imported(packaged) == "packaged packaged"
    assert code_of_refusal() == "addon_ended_program"
    assert not (torch_addon.home() / "loading").exists()


def test_what_another_start_is_importing_just_now_has_not_ended_it(packaged):
    put_addon()
    (torch_addon.home() / "loading").write_text(torch_addon._this())
    assert imported(packaged) == "added added"


def test_another_process_that_got_the_number_after_a_restart_is_none_that_imports(packaged):
    put_addon()
    (torch_addon.home() / "loading").write_text(f"{os.getpid()} {time.time() - 1e6}")
    assert imported(packaged) == "packaged packaged"
    assert code_of_refusal() == "addon_ended_program"


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_program_that_is_told_to_end_while_it_imports_blames_nothing(packaged, number):
    put_addon(f"import os; os.path.exists('{packaged}-later') or os.kill(os.getpid(), {number:d})")
    before = signal.signal(number, signal.SIG_DFL)  # under nohup a child would ignore one
    try:
        assert start(packaged, IMPORT).returncode == -number
    finally:
        signal.signal(number, before)
    packaged.with_name("bundle-later").touch()
    assert imported(packaged) == "added added"
    assert code_of_refusal() is None


@pytest.mark.skipif(sys.platform == "win32", reason="it keeps what is in use itself")
def test_what_another_process_uses_is_not_removed_under_it(packaged):
    disable = "from app import gpu_addon; gpu_addon.disable()"
    site = put_addon()
    let_go = addon.hold(site)
    imported(packaged, disable)
    assert site.is_dir()
    let_go()
    imported(packaged, "from app import gpu_addon; gpu_addon.tidy()")
    assert not site.exists()
    site = put_addon()
    imported(packaged, disable)
    assert not site.exists()


def test_a_program_that_is_closed_while_it_imports_blames_nothing(packaged):
    put_addon("from app import torch_addon; torch_addon.unmark(); import os; os._exit(0)")
    assert start(packaged, IMPORT).returncode == 0
    put_note = torch_addon.home() / addon.REFUSAL
    imported(packaged, "print()")
    assert not put_note.exists()


def test_looking_for_torch_without_importing_it_marks_nothing(packaged):
    put_addon()
    code = "from importlib.util import find_spec; print(find_spec('torch').origin)"
    assert imported(packaged, code).endswith("site0/torch/__init__.py")
    assert not (torch_addon.home() / "loading").exists()


def test_choosing_is_cheap():
    """What it imports, every start of the packaged program waits for."""
    code = "import sys; from app import torch_addon, torch_build; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "PySide6", "huggingface_hub", "httpx2", "psutil", "numpy", "zipfile"}
    assert heavy.isdisjoint(done.stdout.split())
