"""The SHA-256 of each file in a folder, as `sha256sum --check` reads them."""

import hashlib
import sys
from pathlib import Path

NAME = "SHA256SUMS"


def write(folder: Path) -> Path:
    """Leave the list in the folder; its path."""
    lines = []
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name != NAME:
            with path.open("rb") as file:
                lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.name}\n")
    listed = folder / NAME
    listed.write_text("".join(lines), encoding="utf-8")
    return listed


if __name__ == "__main__":
    print(write(Path(sys.argv[1])))
