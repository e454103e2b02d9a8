"""What the program is given: a home, and a hub with a tiny model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import hub
from tests.bundle.program import TINY, Program, command
from tests.folders import write_model


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "user", command())


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """F-TINY on disk."""
    return write_model(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture
def hub_url(tiny: Path) -> Iterator[str]:
    """F-HUB, with the tiny model in it."""
    files = {path.name: path.read_bytes() for path in tiny.iterdir()}
    with hub.serving({TINY: files}) as served:
        yield served.url
