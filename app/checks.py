"""What `slipstream --self-test` checks without a window: the engine, files, libraries.

A check returns what it found, in plain words, and raises where something is wrong.
"""

import importlib.util
import json
import platform
import ssl
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import resources
from app import libraries, paths

if TYPE_CHECKING:
    from engine.api import Usage

Check = Callable[[], str]

TOKENS = 32  # of each answer
SEED = 11
QUESTION = "Count from one to ten in words, and then count from one to ten again."
LOCAL = ("127.0.0.1", "::1", "localhost")
# As they are named by pip; what each brings is told by its import elsewhere.
PACKAGES = ("torch", "transformers", "tokenizers", "PySide6-Essentials")
# What keyring loads where it is whole: it finds its backends by its metadata, and those for Linux
# are there without what they speak by.
KEYRINGS = {
    "linux": ("keyring.backends.SecretService", "secretstorage"),
    "darwin": ("keyring.backends.macOS",),
    "win32": ("keyring.backends.Windows",),
}


class CheckFailed(Exception):
    """What is wrong, as a sentence's end."""


def first() -> Iterator[tuple[str, Check]]:
    """What a window needs."""
    yield "system libraries", system_libraries


def every(model: Path | None) -> Iterator[tuple[str, Check]]:
    """Names and checks, in their order; without a `model` those that need none."""
    yield "versions", versions
    yield "torch", torch_build
    yield "data files", data_files
    yield "certificates", certificates
    yield "chats", chats
    yield "keyring", keyring
    yield "graphics card", graphics_card
    yield "formula", formula
    if model is not None:
        yield from Engine(model).every()


def last(missed: list[str]) -> Iterator[tuple[str, Check]]:
    """The check at the end: that the network was left alone."""

    def network() -> str:
        _require(not missed, f"it was asked for {', '.join(missed[:5])}")
        return "this process's Python asked no other computer for anything"

    yield "network", network


def watch_network() -> list[str]:
    """A list that is filled with the addresses that Python's sockets are asked to reach from now
    on, those of this computer left out."""
    asked: list[str] = []

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event == "socket.getaddrinfo":
            host = arguments[0]
        elif event == "socket.connect" and isinstance(arguments[1], tuple):
            host = arguments[1][0]
        else:
            return
        if host and str(host) not in LOCAL:
            asked.append(str(host))

    sys.addaudithook(hook)
    return asked


def _require(met: bool, otherwise: str) -> None:
    if not met:
        raise CheckFailed(otherwise)


def system_libraries() -> str:
    """Qt's plugin for this screen can be loaded."""
    trouble = libraries.trouble()
    _require(trouble is None, trouble[0] if trouble else "")
    lacking = ", ".join(libraries.missing())
    aside = f"; other screens would need {lacking}" if lacking else ""
    return f"Qt's plugin for {' or '.join(libraries.platforms()) or 'this system'} is loaded{aside}"


def versions() -> str:
    """Of the program and of what it is made of."""
    from app.cli import version

    found = [f"{name} {metadata.version(name)}" for name in PACKAGES]
    python = f"Python {platform.python_version()}"
    return ", ".join([f"slipstream {version()}", python, *found])


def torch_build() -> str:
    """Which build it is, and from where."""
    import torch

    from app import cli

    build, place = cli.torch_build(torch), Path(torch.__file__).parent.parent
    _require(float((torch.ones(2) + 1).sum()) == 4.0, "1 + 1 is not 2")
    return f"{torch.__version__}, {build}, from {place}"


def data_files() -> str:
    """Icons, style, languages, catalogue and guidance can be read."""
    found = icons()
    _require(len(found) > 10, f"only {len(found)} icons are there")
    for icon in found:
        ElementTree.fromstring(icon.read_bytes())
    for name in ("catalogue.json", "guidance.json", "i18n/reasons_de.json"):
        _require(bool(json.loads(resources.read_text(name))), f"{name} is empty")
    for name in ("qss/slipstream.qss", "sample.txt", "icons/LICENSE", "i18n/slipstream_de.qm"):
        _require(bool(resources.read(name)), f"{name} is empty")
    return f"{len(found)} icons, style, languages, catalogue and guidance are readable"


def icons() -> list[Path]:
    """The files of all icons."""
    return sorted(resources.path("icons").glob("*.svg"))


def certificates() -> str:
    """With them a server's name is checked, once one is asked."""
    import certifi

    plain = ssl.create_default_context(cafile=certifi.where())
    count = len(plain.get_ca_certs())
    _require(count > 50, f"only {count} in {certifi.where()}")
    system = ""
    if importlib.util.find_spec("truststore"):
        import truststore

        truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        system = ", and the system's"
    return f"{count}{system}; {ssl.OPENSSL_VERSION}"


def chats() -> str:
    """A chat is written, closed, read, found by its words, and exported."""
    from app.chats.conversation import ChatRecord, Entry
    from app.chats.store import Store

    file = paths.data_folder() / "self-test.db"
    store = Store(file)
    store.put_chat(ChatRecord("self-test", "Grüße"))
    store.put(Entry("question", "self-test", None, "user", "Wie heißt der Fluss 龘?"))
    store.put(Entry("answer", "self-test", "question", "assistant", "It is called Danube."))
    store.close()
    store = Store(file)
    try:
        _require([e.text for e in store.entries("self-test")][1:] == ["It is called Danube."],
                 "what was written is not what is read")  # fmt: skip
        for words in ("danub", "heißt fluss"):
            _require(bool(store.search(words)), f"a search for “{words}” finds nothing")
        out = paths.ensure(paths.data_folder()) / "self-test.md"
        _require(store.export(["self-test"], out, "markdown") == 1, "the export is empty")
        _require("Danube" in out.read_text(encoding="utf-8"), "the export lacks the answer")
    finally:
        store.close()
    return "one was written, read, found and exported"


def keyring() -> str:
    """Which one would keep a token; it is not asked for any. That of this system came with the
    program, whether it answers here or not."""
    import keyring as library
    from keyring import backend

    backend.get_all_keyring()
    own = KEYRINGS.get(sys.platform, ())
    lacking = [name for name in own if sys.modules.get(name) is None]
    _require(not lacking, f"{', '.join(lacking)} cannot be loaded")
    return f"{type(library.get_keyring()).__module__}"


def graphics_card() -> str:
    """What NVIDIA's library answers, or why it does not."""
    from engine import nvml

    found, problem = nvml.gpus()
    _require(problem is None or problem.code != "nvml_missing", problem.text if problem else "")
    if problem is not None:
        return problem.text
    return ", ".join(gpu.name for gpu in found) or "NVIDIA's library knows none"


def formula() -> str:
    """One is set by the process that sets them."""
    from app import latex

    child = latex.start()
    try:
        child.receive(60.0)
        child.send(latex.Formula(r"\frac{a}{b} = \sqrt{2}", True))
        picture = child.receive(20.0)
    finally:
        child.close()
    _require(picture is not None, "it cannot be set")
    return f"set, {picture.width:.0f} units wide"


class Engine:
    """The checks of a model's answers, which share the loaded model."""

    def __init__(self, model: Path) -> None:
        from engine.session import Session

        self._model = model
        self._session = Session(paths.ensure(paths.cache_folder()), sample=_sample())
        self._plain: dict[float, tuple[int, ...]] = {}

    def every(self) -> Iterator[tuple[str, Check]]:
        """In this order: later ones need what earlier ones loaded."""
        yield "model", self.load
        yield "exactness", self.exact
        yield "chat template", self.template
        yield "plain answers", self.plain
        yield "answers with n-grams", lambda: self.drafted("ngram")
        yield (
            "answers with the other ways to draft",
            lambda: self.drafted("suffix", "chain", "auto"),
        )
        yield "answers with a draft model", lambda: self.drafted(self._model)
        yield "counting", self.count

    def load(self) -> str:
        """The starter model is loaded once more, as the terminal does it."""
        began = time.monotonic()
        loaded = self._session.load_target(self._model)
        took = time.monotonic() - began
        return f"{loaded.info.name}, {loaded.precision} on {loaded.device}, after {took:.1f} s"

    def exact(self) -> str:
        """What the self-check of model and precision says."""
        _require(self._session.target.loaded.bit_exact, "the same up to rounding, not bit-exact")
        return "bit-exact with any draft"

    def template(self) -> str:
        """It is rendered by the process that renders them."""
        template = self._session.target.tokenizer.template
        if template is None:
            raise CheckFailed("the model has none")
        text = template.render([{"role": "user", "content": "Hello"}], bos_token="", eos_token="")
        _require("Hello" in text, "the question is not in the prompt")
        return f"a prompt of {len(text)} characters"

    def plain(self) -> str:
        """The likeliest tokens, and drawn ones."""
        self._session.choose_draft("none")
        told = []
        for temperature in (0.0, 0.8):
            ids, usage = self._answer(temperature)
            self._plain[temperature] = ids
            told.append(f"{len(ids)} tokens at {usage.tokens_per_second or 0:.0f} a second")
        _require(all(self._plain.values()), "an answer is empty")
        return " and ".join(told)

    def drafted(self, *drafts: str | Path) -> str:
        """The same tokens as without a draft, and counters that add up."""
        drafted = accepted = 0
        for draft in drafts:
            self._session.choose_draft(draft)
            for temperature in self._plain:
                usage = self._compared(temperature)
                drafted, accepted = drafted + usage.drafted, accepted + usage.accepted
        _require(accepted > 0, f"of {drafted} drafted tokens none was accepted")
        return f"equal to plain; {accepted} of {drafted} drafted tokens accepted"

    def _compared(self, temperature: float) -> "Usage":
        """The counters of an answer that is the same as without a draft, else CheckFailed."""
        ids, usage = self._answer(temperature)
        plain = self._plain[temperature]
        same = next((i for i, (a, b) in enumerate(zip(ids, plain, strict=False)) if a != b), -1)
        _require(ids == plain, f"other tokens at temperature {temperature:g}, from {same} on")
        return usage

    def _answer(self, temperature: float) -> "tuple[tuple[int, ...], Usage]":
        """Its tokens and counters. Raises CheckFailed where those do not add up."""
        from engine.api import Message, Sampling

        self._session.forget()
        sampling = Sampling(temperature=temperature, seed=SEED, max_tokens=TOKENS)
        chunks = list(self._session.reply([Message("user", QUESTION)], sampling))
        usage, rounds = chunks[-1].usage, [c.round for c in chunks if c.round is not None]
        ids = tuple(token for chunk in chunks for token in chunk.token_ids)
        marked = sum(flag for chunk in chunks for flag in chunk.drafted)
        told = [sum(getattr(r, name) for r in rounds) for name in COUNTS]
        _require(told == [getattr(usage, name) for name in COUNTS], "the sums are not the rounds'")
        _require(usage.drafted == usage.accepted + usage.rejected + usage.ignored, "lost tokens")
        _require(usage.rejected >= 0 and marked == usage.accepted, "accepted is miscounted")
        _require(len(ids) == usage.tokens, f"{usage.tokens} tokens counted, {len(ids)} given")
        return ids, usage

    def count(self) -> str:
        """Text is counted by the process that counts it; then the model is let go."""
        from engine.counting import Counter, tokenizer_file

        fingerprint = self._session.target.loaded.vocabulary
        counter = Counter(tokenizer_file(self._model, fingerprint, paths.cache_folder()))
        try:
            counted = counter.count("One, two, three.")
        finally:
            counter.close()
            self._session.close()
        _require(2 <= counted.tokens <= 12, f"{counted.tokens} tokens in “One, two, three.”")
        return f"{counted.tokens} tokens in “One, two, three.”"


COUNTS = ("drafted", "accepted", "rejected", "ignored")


def _sample() -> str:
    return resources.read_text("sample.txt")
