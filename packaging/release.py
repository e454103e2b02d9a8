"""What build.py does once its environment is there: bundle, notice, packages, checksums."""

import argparse
import shutil
import sys
from importlib import metadata
from pathlib import Path

import bundle
import licences
import sums


def main() -> None:
    """Fill the folder given, anew where something of the kind is in it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--announced", nargs=2)
    arguments = parser.parse_args()
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    for old in out.glob("[sS]lipstream*"):
        shutil.rmtree(old) if old.is_dir() else old.unlink()
    folder = bundle.build(out, arguments.announced)
    version = metadata.version("slipstream")
    inside = bundle.internal(folder)
    notice = out / f"slipstream-{version}-notice.txt"
    notice.write_text(licences.notice(inside), encoding="utf-8")
    shutil.copy(notice, inside / "notice.txt")
    if sys.platform == "linux":
        import deb
        import libraries
        import tarball

        libraries.write(folder)
        bundle.check(folder)
        deb.build(folder, version, out)
        tarball.build(folder, version, out)
    sums.write(out)


if __name__ == "__main__":
    main()
