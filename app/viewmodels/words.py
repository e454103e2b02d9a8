"""Numbers in words: amounts, counts, rates and times as the window shows them."""

from PySide6.QtCore import QCoreApplication

from app.resources import LANGUAGES, figures, language_now
from engine.api import Progress

DASH = "–"


def _tr(text: str) -> str:
    return QCoreApplication.translate("words", text)


def grouped(number: int) -> str:
    """8192 as "8,192"."""
    return figures(f"{number:,}")


def counted(number: int, one: str, many: str) -> str:
    """The template for one or for many, filled with `count`."""
    return (one if number == 1 else many).format(count=grouped(number))


def tokens(number: int) -> str:
    """ "1 token" or "185 tokens"."""
    return counted(number, _tr("{count} token"), _tr("{count} tokens"))


def megabytes(number: int) -> str:
    """Bytes of a download or file: "98 MB", "3.1 GB" (powers of ten)."""
    if number >= 1e9:
        return figures(f"{number / 1e9:.1f} GB")
    return figures(f"{number / 1e6:.0f} MB")


def gigabytes(number: int) -> str:
    """Bytes of a download whose size is a guess: "3.1 GB", "0.3 GB" (powers of ten)."""
    return figures(f"{max(number / 1e9, 0.1):.1f} GB")


def gibibytes(number: int) -> str:
    """Bytes of memory: "1.6 GiB", "0.18 GiB" (powers of two)."""
    amount = number / 2**30
    return figures(f"{amount:.1f} GiB" if amount >= 1 else f"{amount:.2f} GiB")


def speed(rate: float | None) -> str:
    """Tokens per second: "14 tok/s", "2.6 tok/s"; a dash for what was never tried."""
    if rate is None:
        return DASH
    return figures(f"{rate:.0f} tok/s" if rate >= 10 else f"{rate:.1f} tok/s")


def parameters(number: int) -> str:
    """ "7.6 billion parameters", "135 million parameters"."""
    if number >= 1e9:
        return _tr("{count} billion parameters").format(count=figures(f"{number / 1e9:.1f}"))
    return _tr("{count} million parameters").format(count=f"{number / 1e6:.0f}")


def context(number: int) -> str:
    """Tokens of a context: "32k context", "512 context"."""
    short = f"{number // 1024}k" if number >= 1024 else str(number)
    return _tr("{count} context").format(count=short)


def percent(rate: float | None) -> str:
    """ "73 %", or a dash where there is no rate."""
    return DASH if rate is None else f"{100 * rate:.0f} %"


def decimals(number: float | None, places: int = 1) -> str:
    """A fixed number of decimals, or a dash."""
    return DASH if number is None else figures(f"{number:.{places}f}")


def duration(seconds: float) -> str:
    """ "6 s", "2 min"."""
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min"


def pace(seconds: float) -> str:
    """Time of a round: "45 ms", "1.2 s"."""
    return figures(f"{1000 * seconds:.0f} ms" if seconds < 1 else f"{seconds:.1f} s")


def coming(progress: Progress, rate: float) -> str:
    """ "45 of 98 MB, 3.2 MB a second, 17 s left", with `rate` in bytes a second."""
    text = amount(progress)
    if rate <= 0 or not 0 < progress.done < progress.total:
        return text
    left = duration((progress.total - progress.done) / rate)
    return _tr("{amount}, {rate} a second, {left} left").format(
        amount=text, rate=figures(f"{rate / 1e6:.1f} MB"), left=left
    )


def waiting(progress: Progress) -> str:
    """What is said while the hub wants to be left alone."""
    left = duration(progress.total - progress.done)
    return _tr("The hub asks to wait, {left} left").format(left=left)


def amount(progress: Progress) -> str:
    """ "45 of 98 MB", "120 of 290 tensors"; empty while the total is not known."""
    if progress.total <= 0:
        return ""
    if progress.unit == "bytes":
        large = progress.total >= 1e9
        scale, unit = (1e9, "GB") if large else (1e6, "MB")
        places = 1 if large else 0
        done, total = progress.done / scale, progress.total / scale
        return _tr("{done} of {total} {unit}").format(
            done=figures(f"{done:.{places}f}"), total=figures(f"{total:.{places}f}"), unit=unit
        )
    return _tr("{done} of {total} {unit}").format(
        done=grouped(progress.done), total=grouped(progress.total), unit=progress.unit
    )


def ordinal(number: int) -> str:
    """ "1st", "2nd", "3rd", "4th" ... of the draft positions, at most 16; "1." in German."""
    if language_now() != LANGUAGES[0]:
        return f"{number}."
    return f"{number}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(number, 'th') }"
