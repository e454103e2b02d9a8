"""Folders: where the system has them, or all below one place."""

import stat
import sys

import pytest

from app import paths

FOLDERS = (
    paths.data_folder, paths.cache_folder, paths.model_folder, paths.config_folder,
    paths.log_folder,
)  # fmt: skip


def test_one_variable_moves_everything(tmp_path, monkeypatch):
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path))
    found = [folder() for folder in FOLDERS]
    assert len(set(found)) == len(FOLDERS)
    assert all(folder.parent == tmp_path for folder in found)
    assert paths.model_folder() == tmp_path / "models"
    assert paths.library_folders() == [tmp_path / "models"]


@pytest.mark.parametrize("value", [None, ""])
def test_without_it_the_system_decides(monkeypatch, value):
    monkeypatch.delenv("SLIPSTREAM_HOME")
    if value is not None:
        monkeypatch.setenv("SLIPSTREAM_HOME", value)
    assert all("slipstream" in folder().parts for folder in FOLDERS)
    assert len({folder() for folder in FOLDERS}) == len(FOLDERS)
    # Models are fetched once; a cache may be wiped.
    assert paths.cache_folder() not in paths.model_folder().parents


def test_a_relative_home_stays_where_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLIPSTREAM_HOME", "here")
    assert paths.data_folder() == tmp_path / "here" / "data"


def test_asking_creates_nothing_and_ensure_does(tmp_path, monkeypatch):
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "new"))
    for folder in FOLDERS:
        folder()
    assert not (tmp_path / "new").exists()
    made = paths.ensure(paths.log_folder())
    assert paths.ensure(made).is_dir()
    if sys.platform != "win32":
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
