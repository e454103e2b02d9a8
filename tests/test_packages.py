"""Packages made of a stand-in for the bundle: what is in them, and that they come and go."""

import argparse
import configparser
import gzip
import importlib.util
import itertools
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from app import cli, start

TOP = Path(__file__).parents[1]
PACKAGING = TOP / "packaging"
VERSION = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
HOMES = ["anna", "Jürgen Ünï 田中", "it's a $HOME `x` \"q\" 100% back\\slash"]

linux = pytest.mark.skipif(sys.platform != "linux", reason="packages for Linux")


def tool(name):
    """A mark for tests that need a program."""
    return pytest.mark.skipif(shutil.which(name) is None, reason=f"{name} is not here")


@pytest.fixture(scope="module")
def scripts():
    """The scripts of `packaging/`, which find each other as they do when run by path."""
    before = set(sys.modules)
    sys.path.insert(0, str(PACKAGING))
    names = ("share", "icons", "libraries", "binaries", "deb", "tarball", "sums")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1700000000")
        yield argparse.Namespace(**{name: importlib.import_module(name) for name in names})
    sys.path.remove(str(PACKAGING))
    for name in set(sys.modules) - before:
        if name in names:
            del sys.modules[name]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory):
    """A folder of a bundle's shape: a program, a library that needs another, data."""
    folder = tmp_path_factory.mktemp("bundle") / "slipstream"
    (folder / "_internal").mkdir(parents=True)
    shutil.copy2(shutil.which("true"), folder / "slipstream")
    (library,) = itertools.islice(Path(sys.exec_prefix, "lib").rglob("*/torch/lib/libc10.so"), 1)
    shutil.copy2(library, folder / "_internal" / "libc10.so")
    (folder / "_internal" / "notice.txt").write_text("notice\n")
    (folder / "_internal" / "notice.txt").chmod(0o775)
    (folder / "_internal" / "libsame.so").symlink_to("libc10.so")
    return folder


@pytest.fixture(scope="module")
def shared(scripts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("share")
    scripts.share.spread(folder, VERSION)
    return folder
