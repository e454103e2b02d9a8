"""The packaged program, imitated: where its files lie, and what it does to the environment."""

import os
import sys

import pytest

from app import bundle, paths
from app.__main__ import main
from engine.library.starter import STARTER


@pytest.fixture
def packaged(monkeypatch, tmp_path):
    """The folder of a packaged program's files."""
    inside = tmp_path / "田中　太郎 Ünï'x" / "_internal"
    (inside / "models").mkdir(parents=True)
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    monkeypatch.setattr(sys, "_MEIPASS", str(inside), raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("TORCHDYNAMO_DISABLE", "1")
    return inside


def test_run_from_installed_packages_there_is_no_bundle():
    assert bundle.folder() is bundle.models() is bundle.torch() is None


def test_the_models_that_came_with_the_program_are_in_the_library(packaged):
    assert packaged / "models" in paths.library_folders(["/somewhere"])


def test_the_starter_that_came_with_the_program_is_not_fetched(packaged, monkeypatch, capsys):
    (packaged / "models" / STARTER.file).write_bytes(b"GGUF")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert main(["get", "starter"]) == 0
    assert capsys.readouterr().out.strip() == str(packaged / "models" / STARTER.file)


@pytest.mark.parametrize("before", [None, "/usr/lib/mine"])
def test_other_programs_do_not_get_the_bundles_libraries(packaged, monkeypatch, before):
    monkeypatch.setenv("LD_LIBRARY_PATH", str(packaged))
    monkeypatch.delenv("LD_LIBRARY_PATH_ORIG", raising=False)
    if before:
        monkeypatch.setenv("LD_LIBRARY_PATH_ORIG", before)
    bundle.settle()
    assert os.environ.get("LD_LIBRARY_PATH") == before


def test_without_a_bundle_the_environment_stays(monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/usr/lib/mine")
    bundle.settle()
    assert os.environ["LD_LIBRARY_PATH"] == "/usr/lib/mine"
