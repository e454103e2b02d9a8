"""A real session whose tiny random model says what a test wants, and the program that shows it."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from PySide6.QtCore import Qt

from app import paths
from app.start import Program
from app.viewmodels.shelf import Shelf, guidance_table
from app.widgets.turn import AnswerTurn
from engine.api import Drafting, Loaded, Message, Sampling
from engine.drafters.base import NoDrafter
from engine.library.index import Index
from engine.sampling import Policy
from engine.session import Session
from engine.tokenizer import Prompt
from engine.verify import Draft
from tests.folders import CHATML, IM_END, tiny_config, tokenizer_config, write_json, write_model

LONGEST = 200  # tokens of a round
Runs = Sequence[Sequence[int]]


def spoken(*pieces: str) -> Runs:
    """An answer of these pieces, a round each, in the byte tokens of F-BYTE; then its end."""
    return [*(list(piece.encode()) for piece in pieces), [IM_END]]


def cut(text: str, length: int) -> Runs:
    """The bytes of `text` in rounds of so many, then its end."""
    data = text.encode()
    return [*(list(data[i : i + length]) for i in range(0, len(data), length)), [IM_END]]


def write_speaker(folder: Path, template: str | None = CHATML) -> Path:
    """F-TINY alone in a folder; what it says ends with <|im_end|>."""
    write_model(folder / "Tiny", config=tiny_config(eos_token_id=IM_END), template=template)
    write_json(folder / "Tiny" / "tokenizer_config.json", tokenizer_config(eos_token="<|im_end|>"))
    return folder


class Speaker(Session):
    """Prompts, passes, caches, drafts and texts are real; only the model's scores are bent so that
    each of `answers` is said, one for each question.

    All but the last token of a round were drafted. With `gate`, each round waits there.
    """

    def __init__(self, *answers: Runs) -> None:
        super().__init__(paths.ensure(paths.cache_folder()))
        self.answers = list(answers)
        self.prompts: list[Prompt] = []
        self.gate: threading.Semaphore | None = None
        self.passes = 0
        self.ids: list[int] = []
        self.ends: list[int] = []

    @property
    def start(self) -> int:
        """Where the answer begins, in tokens."""
        return len(self.prompts[-1].ids)

    def load_target(self, path: Path, **options: Any) -> Loaded:
        loaded = super().load_target(path, **options)
        model, tokenizer = self.target.model, self.target.tokenizer
        forward, prompt = model.forward, tokenizer.prompt
        if tokenizer.template is not None:
            tokenizer.template._seconds = 30.0  # a busy machine needs more than the template does

        def bent(tokens: Sequence[int], rows: int = 1) -> torch.Tensor:
            if self.gate is not None:
                self.gate.acquire(timeout=20)
            self.passes += 1
            scores = forward(tokens, rows).clone()
            first = model.cache.length - rows + 1 - self.start
            for row, token in enumerate(self.ids[first : first + rows]):
                scores[row, token] = 1e6
            return scores

        def noted(messages: Sequence[Message]) -> Prompt:
            self.prompts.append(prompt(messages))
            return self.prompts[-1]

        # of these two alone: their classes serve other models too
        vars(model)["forward"], vars(tokenizer)["prompt"] = bent, noted
        return loaded

    def reply(
        self, messages: Sequence[Message], sampling: Sampling, _: Drafting, **options: Any
    ) -> Any:
        runs = self.answers.pop(0)
        self.ids = [token for run in runs for token in run]
        self.ends = [sum(map(len, runs[: i + 1])) for i in range(len(runs))]
        self.use(_Knowing(self))
        return super().reply(messages, sampling, Drafting(LONGEST), **options)

    def told(self, number: int = -1) -> str:
        """A prompt as the model was given it."""
        ids = self.prompts[number].ids
        return str(self.target.tokenizer.backend.decode(ids, skip_special_tokens=False))


class _Knowing(NoDrafter):
    """Drafts what the speaker will say, to the end of the round."""

    name, default_length = "knowing", LONGEST

    def __init__(self, speaker: Speaker) -> None:
        self._speaker = speaker

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        speaker = self._speaker
        at = len(tokens) - speaker.start
        end = next((end for end in speaker.ends if end > at), at + 1)
        return Draft(tuple(speaker.ids[at : min(end - 1, at + limit)]))


def open_real(
    qtbot: Any, open_program: Callable[..., Program], session: Session, folder: Path
) -> Program:
    """The program over the models in `folder`, ready to be asked."""
    shelf = Shelf([folder], folder, guidance_table(), Index(paths.index_file()))
    program = open_program(session, shelf, wait=False)
    qtbot.waitUntil(lambda: program.chat.can_send and not program.models.choosing, timeout=60_000)
    return program


def write(qtbot: Any, program: Program, text: str) -> None:
    """Type a message, and Enter."""
    edit = program.window.composer.edit
    edit.setFocus()
    edit.insertPlainText(text)
    qtbot.keyClick(edit, Qt.Key.Key_Return)


def ask(qtbot: Any, program: Program, text: str = "hi") -> None:
    """Type a message, and wait until it is answered."""
    with qtbot.waitSignal(program.chat.answered, timeout=30_000):
        write(qtbot, program, text)


def last(program: Program) -> AnswerTurn:
    """The last answer, as it is shown."""
    return program.window.transcript._answers()[-1]
