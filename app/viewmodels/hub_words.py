"""What the hub offers in words: addresses and names, downloads, sizes, room on the disk."""

from PySide6.QtCore import QCoreApplication

from app import resources
from app.viewmodels import words
from app.viewmodels.rows import Row
from engine.library import formats, hub, plan
from engine.library.download import Space
from engine.library.hub import Contents, Found
from engine.library.plan import Plan


def _tr(text: str) -> str:
    return QCoreApplication.translate("hub_words", text)


def plain(text: str) -> str:
    """`text` without what belongs to the address of a page."""
    name = " ".join(text.split())
    for start in (hub.endpoint(), "https://huggingface.co", "huggingface.co", "hf.co"):
        name = name.removeprefix(f"{start}/")
    return "/".join(name.split("/")[:2])


def about(found: Found) -> str:
    """ "12 thousand downloads, apache-2.0, given on request", as far as the hub says."""
    parts = [_downloads(found.downloads)]
    if found.licence:
        parts.append(found.licence)
    if found.gated:
        parts.append(_tr("given on request"))
    return ", ".join(parts)


def refusal(found: Found) -> str:
    """Why its weights cannot run here, where the hub says of what kind they are; else nothing."""
    reason = formats.refusal(found.quantisation)
    return resources.translate(reason).rstrip(".") if reason is not None else ""


def _downloads(count: int) -> str:
    """ "1.2 million downloads", "12 thousand downloads", "7 downloads"."""
    if count >= 1e6:
        return _tr("{count} million downloads").format(count=f"{count / 1e6:.1f}")
    if count >= 1e4:
        return _tr("{count} thousand downloads").format(count=f"{count / 1e3:.0f}")
    return words.counted(count, _tr("{count} download"), _tr("{count} downloads"))


def choice_rows(held: Contents) -> tuple[Row, ...]:
    """The models of a repository that has several, with their sizes."""
    return tuple(
        Row(choice.file, choice.file, aside=words.megabytes(choice.size))
        for choice in plan.choices(held)
    )


def size(wanted: Plan) -> str:
    """ "3.1 GB in 7 files"."""
    files = words.counted(len(wanted.files), _tr("{count} file"), _tr("{count} files"))
    return _tr("{size} in {files}").format(size=words.megabytes(wanted.size), files=files)


def room(space: Space) -> str:
    """Whether what is to come still fits on the disk, with the numbers."""
    free, needed = words.megabytes(space.free), words.megabytes(space.needed)
    if space.needed <= 0:
        return _tr("All of it is here already; getting it checks every file.")
    if space.fits:
        return _tr("Fits: {free} are free on the disk").format(free=free)
    return _tr("Does not fit: {needed} are needed, {free} are free on the disk").format(
        needed=needed, free=free
    )
