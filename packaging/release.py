"""What build.py does once its environment is there: bundle, notice, packages, checksums."""

import argparse
import hashlib
import shutil
import sys
from importlib import metadata
from pathlib import Path

import bundle
import licences


def main() -> None:
    """Fill the folder given, which holds nothing else afterwards."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--feed")
    arguments = parser.parse_args()
    out: Path = arguments.out
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    folder = bundle.build(out, arguments.feed)
    version = metadata.version("slipstream")
    inside = bundle.internal(folder)
    notice = out / f"slipstream-{version}-notice.txt"
    notice.write_text(licences.notice(inside), encoding="utf-8")
    shutil.copy(notice, inside / "notice.txt")
    made = [notice]
    if sys.platform == "linux":
        import deb
        import libraries
        import tarball

        libraries.write(folder)
        made += [deb.build(folder, version, out), tarball.build(folder, version, out)]
    bundle.check(folder)
    (out / "SHA256SUMS").write_text("".join(map(checksum, made)), encoding="utf-8")


def checksum(path: Path) -> str:
    """A line as `sha256sum --check` reads it."""
    with path.open("rb") as file:
        return f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n"


if __name__ == "__main__":
    main()
