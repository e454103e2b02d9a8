"""The third-party notice: what the program is made of, by whom, and under which licences.

Made from what packages say of themselves where they are installed; the packaged program carries
it as a file. Imports none of the packages.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from importlib import metadata
from importlib.metadata import Distribution
from pathlib import PurePosixPath

import resources
from app import bundle, report
from engine.library.starter import STARTER

FILE = "notice.txt"
LINE = "=" * 72
_LEGAL = re.compile(r"(LICEN[CS]E|NOTICE|COPYING|AUTHORS)[^/]*$", re.IGNORECASE)
HEAD = """Slipstream is made of the packages below, each under its own licence. The texts
are those that the packages bring; one that several bring stands here once.

Qt and PySide6 are used under the GNU Lesser General Public License, version 3.
Their source is at https://code.qt.io and https://download.qt.io. They are
libraries of their own in the folder PySide6 of the program, and can be replaced
there by other builds of the same version.
"""


def text() -> str:
    """The packaged one, or one of what is installed. Reads files: not for the window's thread."""
    own = bundle.folder()
    if own is not None and (own / FILE).is_file():
        return (own / FILE).read_text(encoding="utf-8", errors="replace")
    return collect(runtime())


def collect(distributions: Iterable[Distribution]) -> str:
    """The notice for these packages, the program's icons and its starter model."""
    seen: dict[str, str] = {}
    parts = [_part(found, seen) for found in distributions]
    icons = (
        f"Lucide icons\nLicence: ISC\nhttps://lucide.dev\n\n{resources.read_text('icons/LICENSE')}"
    )
    model = (
        f"{STARTER.name}, a language model\nLicence: {STARTER.licence}\n"
        "https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct\n"
    )
    return f"\n{LINE}\n".join([HEAD, *parts, icons, model])


def runtime(name: str = "slipstream") -> list[Distribution]:
    """The packages that `name` needs to run, and those that they need, by name."""
    found: dict[str, Distribution] = {}
    waiting = _needs(name)
    if not waiting:  # run from a checkout
        waiting = list(report.PACKAGES[1:])
    while waiting:
        needed = waiting.pop()
        key = re.sub(r"[-_.]+", "-", needed).lower()
        if key in found:
            continue
        try:
            found[key] = metadata.distribution(needed)
        except metadata.PackageNotFoundError:
            continue  # for other systems, or left out of this one
        waiting += _needs(needed)
    return [found[key] for key in sorted(found)]


def _needs(name: str) -> list[str]:
    """The packages that this one needs here, without extras."""
    from packaging.requirements import Requirement

    try:
        asked = map(Requirement, metadata.requires(name) or ())
        return [r.name for r in asked if r.marker is None or r.marker.evaluate({"extra": ""})]
    except metadata.PackageNotFoundError:
        return []


def _part(found: Distribution, seen: dict[str, str]) -> str:
    """What one package says of itself; `seen` has where each text stands already."""
    title = f"{found.metadata['Name']} {found.version}"
    lines = [title, f"Licence: {_licence(found)}", *_home(found)]
    texts = []
    for name, said in _texts(found):
        key = hashlib.sha256(" ".join(said.split()).encode()).hexdigest()
        if key in seen:
            texts.append(f"{name}: as {seen[key]}")
        else:
            seen[key] = f"{name} of {found.metadata['Name']}"
            texts.append(f"--- {name}\n\n{said.strip()}\n")
    return "\n".join([*lines, "", *(texts or ["The package brings no licence text."])]) + "\n"


def _licence(found: Distribution) -> str:
    """Its SPDX expression, else what it is classified as."""
    if expression := _fields(found, "License-Expression"):
        return expression[0]
    classified = [c for c in _fields(found, "Classifier") if c.startswith("License ::")]
    names = [c.rpartition(" :: ")[2] for c in classified]
    told = [line for line in _fields(found, "License") if line and "\n" not in line]
    return next(iter(told), ", ".join(names)) or "not stated"


def _home(found: Distribution) -> list[str]:
    """Its home page, where it names one."""
    urls = (url.partition(",") for url in _fields(found, "Project-URL"))
    named = {name.strip().lower(): url.strip() for name, _, url in urls}
    wanted = ("homepage", "home", "home page", "repository", "source", "source code")
    return [*_fields(found, "Home-page"), *(named[w] for w in wanted if w in named)][:1]


def _fields(found: Distribution, name: str) -> list[str]:
    return [str(value).strip() for value in found.metadata.get_all(name) or ()]


def _texts(found: Distribution) -> Iterator[tuple[str, str]]:
    """Names and contents of the licence files that came with it."""
    for file in sorted(found.files or (), key=str):
        place = PurePosixPath(file)
        if not place.parent.parts or not place.parts[0].endswith(".dist-info"):
            continue
        if not ("licenses" in place.parts or _LEGAL.match(place.name)):
            continue
        try:
            said = found.read_text(str(PurePosixPath(*place.parts[1:])))
        except (OSError, ValueError):
            continue
        if said:
            yield "/".join(p for p in place.parts[1:] if p != "licenses"), said
