"""What must not be in a bundle, and what of torch stays behind."""

import importlib.util
import sys
from pathlib import Path, PurePosixPath
from types import SimpleNamespace

import pytest

PACKAGING = Path(__file__).parents[1] / "packaging"


@pytest.fixture
def freezing(monkeypatch):
    """`packaging/bundle.py`, which finds its neighbours as when it is run by path."""
    monkeypatch.syspath_prepend(str(PACKAGING))
    for name in ("binaries", "libraries"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    spec = importlib.util.spec_from_file_location("freezing", PACKAGING / "bundle.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    for name in ("binaries", "libraries"):
        sys.modules.pop(name, None)


def install(monkeypatch, freezing, version, *names):
    """Make the environment hold that torch and packages of these names."""
    held = [SimpleNamespace(name=name) for name in ("torch", "nvidia-ml-py", *names)]
    monkeypatch.setattr(freezing.metadata, "distributions", lambda: held)
    monkeypatch.setattr(freezing.metadata, "version", lambda name: version)
    monkeypatch.setattr(freezing.sys, "platform", "linux")


@pytest.mark.parametrize(
    ("version", "names"),
    [
        ("2.13.0", ()),
        ("2.13.0+cu130", ()),
        ("2.13.0+cpu", ("nvidia-cublas",)),
        ("2.13.0+cpu", ("nvidia-cudnn-cu13",)),
        ("2.13.0+cpu", ("cuda-toolkit",)),
        ("2.13.0+cpu", ("Triton",)),
    ],
)
def test_no_bundle_is_made_where_a_wheel_for_cuda_slipped_in(monkeypatch, freezing, version, names):
    install(monkeypatch, freezing, version, *names)
    with pytest.raises(RuntimeError, match="not a CPU build"):
        freezing.check_environment()


def test_the_library_that_asks_nvidias_driver_is_none_of_cudas(monkeypatch, freezing):
    install(monkeypatch, freezing, "2.13.0+cpu", "numpy")
    freezing.check_environment()


@pytest.mark.parametrize(
    "name",
    ["libcudart.so.13", "libcublas.so.13", "libnvrtc.so", "libnccl.so.2", "libtorch_cuda.so"],
)
def test_a_bundle_with_a_library_of_cuda_is_refused(freezing, tmp_path, name):
    (tmp_path / "_internal").mkdir()
    (tmp_path / "_internal" / name).write_bytes(b"")
    with pytest.raises(RuntimeError, match=name):
        freezing.check(tmp_path)


def test_a_bundle_of_more_than_1_1_gb_is_refused(freezing, tmp_path, capsys):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1_100_000_000)  # takes no room on the disk
    freezing.check(tmp_path)
    assert "1100 MB unpacked in 1 files" in capsys.readouterr().out
    (tmp_path / "small").write_bytes(b".")
    with pytest.raises(RuntimeError, match="at most 1100"):
        freezing.check(tmp_path)


@pytest.mark.parametrize(
    ("name", "left_out"),
    [
        ("torch/test", True),
        ("torch/testing", False),
        ("torch/bin", False),
        ("torch/bin/protoc", True),
        ("torch/bin/torch_shm_manager", False),
        ("torch/include", True),
        ("torch/lib/libjitbackend_test.so", True),
        ("torch/lib/libtorch_cpu.so", False),
        ("torch/nn/__pycache__", True),
        ("torch/nn/modules/linear.py", False),
        ("torch-2.13.0+cpu.dist-info/METADATA", False),
    ],
)
def test_of_torch_only_what_runs_is_shipped(freezing, name, left_out):
    assert freezing.is_left_out(PurePosixPath(name)) == left_out
