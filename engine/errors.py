"""Every failure, refusal and verdict the engine hands out: a code, named values, an English text.

    EngineError
    ├── LoadError          a model could not be loaded
    │   ├── Incomplete     a file is missing, cut off or not what its header says
    │   ├── Unsafe         the folder asks for code to be run: pickles, auto_map
    │   └── Unsupported    this engine has no way to run it
    ├── DraftRefused       this draft cannot serve this target
    ├── TemplateError      the model's chat template failed, took too long or wrote too much
    ├── ContextFull        the conversation no longer fits the model's context
    ├── OutOfMemory        the device's memory ran out
    ├── DownloadError      a file could not be fetched, or is not the right one
    └── Cancelled          the user stopped it; not an error, no text is shown

The app translates by code; `Reason.text` is the English it falls back to. Knows nothing of what
is done about a failure.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Reason:
    """Something the engine says: `code` is what a translation is looked up by."""

    code: str
    template: str
    values: Mapping[str, str | int | float] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The English sentence, with the values filled in."""
        return self.template.format_map(self.values)


class EngineError(Exception):
    """A failure with a code and values. Subclasses say of what kind it is."""

    def __init__(self, code: str, template: str, /, **values: str | int | float) -> None:
        self.reason = Reason(code, template, values)
        super().__init__(self.reason.text)

    @property
    def code(self) -> str:
        return self.reason.code


class LoadError(EngineError):
    """A model could not be loaded."""


class Incomplete(LoadError):
    """A file of the model is missing, cut off or damaged."""


class Unsafe(LoadError):
    """The model's folder asks for code to be run."""


class Unsupported(LoadError):
    """The engine has no way to run this model here."""


class DraftRefused(EngineError):
    """This draft cannot serve this target."""


class TemplateError(EngineError):
    """The chat template failed, took too long or wrote too much."""


class ContextFull(EngineError):
    """The conversation no longer fits the model's context."""


class OutOfMemory(EngineError):
    """The device's memory ran out."""


class DownloadError(EngineError):
    """A file could not be fetched, or is not the right one."""


class Cancelled(EngineError):
    """The user stopped it."""

    def __init__(self) -> None:
        super().__init__("cancelled", "Stopped.")


def heed(stopped: Callable[[], bool]) -> None:
    """Raises Cancelled when `stopped` says so: between steps that ask nothing themselves."""
    if stopped():
        raise Cancelled()


def first_line(error: BaseException) -> str:
    """What `error` says, in a line: of a library's, the rest is advice to programmers."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
