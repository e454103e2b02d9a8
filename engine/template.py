"""A model folder's chat template, rendered where it can do no harm.

The template is untrusted: Jinja's sandbox keeps it from code and attributes, and a child process
of its own bounds what a sandbox cannot: time and memory. Knows no tokens.
"""

import contextlib
import datetime
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any, NoReturn

from engine.child import Child
from engine.errors import Cancelled, TemplateError, heed

SECONDS = 2.0
CHARACTERS = 4_000_000
MEMORY_BYTES = 1 << 30
# A new process imports Jinja before it answers; a busy machine needs more than the template does.
START_SECONDS = 20.0
LOOK_SECONDS = 0.05  # between two looks whether to stop


class Template:
    """A chat template. One child process renders it, started when first needed. While it renders
    `stopped` is asked."""

    def __init__(self, source: str, *, seconds: float = SECONDS) -> None:
        self.source = source
        self.stopped: Callable[[], bool] = lambda: False
        self._seconds = seconds
        self._child: Child | None = None
        self._ready = False

    def render(self, messages: Sequence[Mapping[str, str]], **values: Any) -> str:
        """The prompt's text for `messages` ({"role", "content"}), ready for an answer.

        `values` are further names the template may read, such as `bos_token`. Raises
        TemplateError when the template raises, runs longer than its time or writes too much, and
        Cancelled when `stopped` says so.
        """
        context = {"messages": list(messages), "add_generation_prompt": True, **values}
        try:
            child = self._await_child()
            child.send((self.source, context))
            outcome, text = self._receive(child, self._seconds)
        except Cancelled:
            self.close()
            raise
        except TimeoutError:
            self.close()
            raise TemplateError(
                "template_slow",
                "The model's chat template ran longer than {seconds:g} s and was stopped.",
                seconds=self._seconds,
            ) from None
        except (EOFError, OSError) as error:
            self.close()
            raise TemplateError(
                "template_crashed",
                "The model's chat template needed too much memory and was stopped.",
            ) from error
        if outcome == "ok":
            return str(text)
        if outcome == "long":
            raise TemplateError(
                "template_long",
                "The model's chat template wrote more than {characters} characters.",
                characters=CHARACTERS,
            )
        raise TemplateError(
            "template_refused", "The model's chat template refused: {message}", message=text
        )

    def start(self) -> None:
        """Start the child process now; it gets ready while other things are done."""
        if self._child is None or not self._child.alive:
            self.close()
            self._child = Child(_serve)

    def close(self) -> None:
        """End the child process."""
        if self._child is not None:
            self._child.close()
        self._child, self._ready = None, False

    def _await_child(self) -> Child:
        self.start()
        child = self._child
        assert child is not None
        if not self._ready:
            self._receive(child, START_SECONDS)
            self._ready = True
        return child

    def _receive(self, child: Child, seconds: float) -> Any:
        """What the process sends next. Raises TimeoutError after so long."""
        deadline = time.monotonic() + seconds
        while True:
            heed(self.stopped)
            left = deadline - time.monotonic()
            try:
                return child.receive(min(LOOK_SECONDS, max(left, 0.0)))
            except TimeoutError:
                if left <= 0:
                    raise


def _serve(connection: Connection) -> None:
    """Render what comes through `connection` until it closes. Runs in the child process."""
    environment = _environment()
    _limit_memory()
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        connection.send("ready")
        while True:
            source, context = connection.recv()
            connection.send(_render(environment, source, context))


def _render(environment: Any, source: str, context: Mapping[str, Any]) -> tuple[str, str]:
    pieces: list[str] = []
    size = 0
    try:
        for piece in environment.from_string(source).generate(**context):
            pieces.append(piece)
            size += len(piece)
            if size > CHARACTERS:
                return "long", ""
    except Exception as error:
        return "error", str(error)[:500] or type(error).__name__
    return "ok", "".join(pieces)


def _environment() -> Any:
    """Jinja as chat templates expect it, the set-up that transformers documents for them."""
    from jinja2.exceptions import TemplateError as JinjaError
    from jinja2.ext import Extension, loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message: str) -> NoReturn:
        raise JinjaError(message)

    def tojson(value: Any, ensure_ascii: bool = False, **options: Any) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, **options)

    class Generation(Extension):
        """{% generation %} marks an answer's part for training; here it is only its content."""

        tags = {"generation"}  # noqa: RUF012 (as Jinja reads it)

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols, Generation]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return environment


def _limit_memory() -> None:
    """Bound the child's memory where the system can; elsewhere only time bounds it."""
    if sys.platform != "win32":
        import resource

        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
