"""A Debian package of a finished bundle, by `dpkg-deb`.

The program lies in /usr/lib/slipstream. Which libraries the system must have, `libraries` finds.
"""

import datetime
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from email.utils import format_datetime
from pathlib import Path

import binaries
import libraries
import share

MAINTAINER = "The Slipstream developers <slipstream@slipstream.invalid>"  # no public address
CONTROL = """\
Package: slipstream
Version: {version}
Architecture: {architecture}
Maintainer: {maintainer}
Installed-Size: {kib}
Depends: {depends}
Recommends: ca-certificates, fonts-dejavu-core | fonts-freefont-ttf, xdg-utils
Section: utils
Priority: optional
Description: chat with a local language model, made fast by speculative decoding
 Slipstream chats with a language model that runs on your own computer: a small
 draft proposes several tokens, the big model checks them in one pass, and the
 answer stays the big model's own. It lists the drafts that can serve a model,
 says why the others cannot, and shows how many drafted tokens were accepted.
 .
 A small model is part of it, so that it works without a network. Python,
 PyTorch and Qt come with it as well.
"""
CHANGELOG = """\
slipstream ({version}) stable; urgency=medium

  * Slipstream {version}.

 -- {maintainer}  {date}
"""
COMPRESSION = ("-Zxz", "-z0")  # higher levels take twice as long to save 6 %; lintian takes no zstd


def build(bundle: Path, version: str, out: Path) -> Path:
    """The package of the folder `bundle`, left in the folder `out`; its path. Version as in
    pyproject."""
    version = debian(version)
    architecture = _ask("dpkg", "--print-architecture").strip()
    with tempfile.TemporaryDirectory(dir=out, prefix="deb.") as made:
        root = Path(made) / "root"
        _lay_out(bundle, version, root)
        fields = {
            "version": version,
            "architecture": architecture,
            "maintainer": MAINTAINER,
            "kib": sum(_size(path) for path in root.rglob("*")),
            "depends": libraries.depends(bundle),
        }
        _control(root, CONTROL.format(**fields))
        path = out / f"slipstream_{version}_{architecture}.deb"
        _ask(
            *("dpkg-deb", "--root-owner-group", *COMPRESSION, "--build", str(root), str(path)),
            SOURCE_DATE_EPOCH=str(share.epoch()),
        )
    return path


def debian(version: str) -> str:
    """The version in Debian's order, where what precedes a release has a tilde: 0.2.0~rc1."""
    return re.sub(r"\.?(a|b|rc|dev)(\d+)", r"~\1\2", version)


def _lay_out(bundle: Path, version: str, root: Path) -> None:
    """All files of the package below `root`, with their permissions."""
    shutil.copytree(bundle, root / "usr/lib/slipstream", symlinks=True, copy_function=_link)
    (root / "usr/bin").mkdir()
    (root / "usr/bin/slipstream").symlink_to("../lib/slipstream/slipstream")
    share.spread(root / "usr/share", version)
    documents = root / "usr/share/doc/slipstream"
    documents.mkdir(parents=True)
    shutil.copyfile(share.LINUX / "copyright", documents / "copyright")
    when = datetime.datetime.fromtimestamp(share.epoch(), datetime.UTC)
    changes = CHANGELOG.format(version=version, maintainer=MAINTAINER, date=format_datetime(when))
    share.pack(changes, documents / "changelog.gz")
    overrides = root / "usr/share/lintian/overrides/slipstream"
    overrides.parent.mkdir(parents=True)
    shutil.copyfile(share.LINUX / "lintian-overrides", overrides)
    for path in root.rglob("*"):
        if not path.is_symlink():
            path.chmod(binaries.mode(path))


def _link(source: str, target: str) -> None:
    """A gigabyte need not be written twice, where both are on one disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _size(path: Path) -> int:
    """As Debian counts it: in whole KiB, a folder as one."""
    return -(-path.stat().st_size // 1024) if path.is_file() and not path.is_symlink() else 1


def _control(root: Path, control: str) -> None:
    sums = [
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  "
        f"{path.relative_to(root)}\n"
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    ]
    folder = root / "DEBIAN"
    folder.mkdir()
    for name, text in (("control", control), ("md5sums", "".join(sums))):
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o644)
    for path in (root, folder):
        path.chmod(0o755)


def _ask(*command: str, **environment: str) -> str:
    told = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, env=os.environ | environment
    )
    return told.stdout


if __name__ == "__main__":
    print(build(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
