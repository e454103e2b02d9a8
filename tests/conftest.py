"""Shared by all tests: no screen, no network, no folder and no keyring of the user's touched."""

import os

import pytest

os.environ["QT_QPA_PLATFORM"] = "offscreen"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["PYTHON_KEYRING_BACKEND"] = "keyring.backends.fail.Keyring"
os.environ.pop("HF_TOKEN", None)
os.environ["TOKENIZERS_PARALLELISM"] = "false"
# tiny models are slower on two threads than on one, and far slower on a busy machine
if "SLIPSTREAM_TEST_MODELS" not in os.environ:
    os.environ["OMP_NUM_THREADS"] = "1"


@pytest.fixture(autouse=True)
def _own_home(tmp_path, monkeypatch):
    """Every test has its own home, so nothing of the user's is read or written."""
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("SLIPSTREAM_HOME", str(home / "slipstream"))
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(home / name.lower()))
