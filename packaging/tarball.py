"""An archive of a finished bundle for any Linux, with a script that installs it for one user.

The same bundle makes the same archive, to the bit.
"""

import gzip
import platform
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import binaries
import libraries
import share

LEVEL = 6


def build(bundle: Path, version: str, out: Path) -> Path:
    """The archive of the folder `bundle`, left in the folder `out`; its path."""
    name = f"slipstream-{version}-linux-{platform.machine()}"
    path = out / f"{name}.tar.gz"
    with tempfile.TemporaryDirectory(dir=out, prefix="tarball.") as made:
        beside = Path(made)
        share.spread(beside / "share", version)
        shutil.copyfile(share.TOP / "LICENSE", beside / "LICENSE")
        (beside / "install.sh").write_text(_script(bundle), encoding="utf-8")
        with (
            path.open("wb") as file,
            gzip.GzipFile("", "wb", LEVEL, file, mtime=0) as packed,
            tarfile.open(mode="w", fileobj=packed, format=tarfile.PAX_FORMAT) as archive,
        ):
            _add(archive, beside, name)
            _add(archive, bundle, f"{name}/slipstream")
    return path


def _script(bundle: Path) -> str:
    script = (share.LINUX / "install.sh").read_text(encoding="utf-8")
    script = script.replace("@GLIBC@", libraries.glibc(bundle))
    return script.replace("@MACHINE@", platform.machine())


def _add(archive: tarfile.TarFile, folder: Path, name: str) -> None:
    """`folder` with all that is in it, under the name `name`."""
    when = share.epoch()
    for path in [folder, *sorted(folder.rglob("*"))]:
        entry = archive.gettarinfo(path, str(Path(name) / path.relative_to(folder)))
        entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        entry.mtime = when
        if not entry.issym():
            entry.mode = 0o755 if path.name == "install.sh" else binaries.mode(path)
        if entry.isreg():
            with path.open("rb") as content:
                archive.addfile(entry, content)
        else:
            archive.addfile(entry)


if __name__ == "__main__":
    print(build(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])))
