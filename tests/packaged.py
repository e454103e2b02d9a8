"""A packaged program, played: its folder with a torch that only says who it is."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from app import torch_addon
from engine.library import addon, pins

TOP = Path(__file__).parents[1]
START = """
import sys
sys.frozen, sys._MEIPASS = True, {bundle!r}
from app import torch_build
torch_build.choose()
del sys.frozen  # children are Python's here
"""


def bundle(folder: Path, version: str = "2.13.0+cpu") -> Path:
    """The packaged files below `folder`."""
    made = folder / "bundle"
    put_torch(made / "torch-cpu", "packaged")
    (made / "torch-cpu" / f"torch-{version}.dist-info").mkdir()
    return made


def put_torch(site: Path, name: str, code: str = "") -> None:
    """A torch that has `name`, and runs `code` when it is imported."""
    (site / "torch").mkdir(parents=True)
    source = f"name = {name!r}\n{code}\nfrom torch import part\n"
    (site / "torch" / "__init__.py").write_text(source)
    (site / "torch" / "part.py").write_text(f"name = {name!r}\n")


def put_addon(code: str = "", torch: str = "2.13.0", tag: str | None = None) -> Path:
    """An add-on in the user's folder; its torch runs `code`. The folder that it lies in."""
    home = torch_addon.home()
    home.mkdir(parents=True, exist_ok=True, mode=0o700)
    half = home / addon.HALF
    put_torch(half, "added", code)
    (half / "torch" / "large.so").write_bytes(b"x" * addon.LARGE)
    made = addon.write(home, half, torch, "13.0")
    if tag is not None:
        text = (home / addon.NOTE).read_text()
        (home / addon.NOTE).write_text(text.replace(pins.tag(), tag))
    return home / made.site


def start(bundle: Path, code: str) -> subprocess.CompletedProcess[str]:
    """A start of the packaged program that then runs `code`."""
    source = START.format(bundle=str(bundle)) + code
    return subprocess.run(
        [sys.executable, "-c", source], cwd=TOP, capture_output=True, text=True, check=False
    )


def tell(connection: Any) -> None:
    """In a child: which torch it imports."""
    import torch

    connection.send(torch.name)
