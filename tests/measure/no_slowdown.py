"""Does a draft that cannot help cost speed? python -m tests.measure.no_slowdown TARGET DRAFT

Two drafts that cannot help, at the automatic length, against plain decoding on the same models:
the draft model with every id made wrong, so that its cost stays, and lookup on text that never
repeats a token. The two ways take turns; what is told of each is the median over the pairs.
Exits with 1 when a median is below its gate.
"""

import argparse
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from app import paths
from engine.api import Drafting, Message, Sampling, Usage
from engine.drafters.base import Drafter, NoDrafter
from engine.drafters.ngram import NGramDrafter
from engine.drafters.small_model import SmallModelDrafter
from engine.errors import Reason
from engine.sampling import Policy
from engine.session import Session
from engine.verify import Draft

PROMPT = [Message("user", "Tell a long story about a lighthouse keeper and the sea.")]
# Taken from the logit of tokens that are not to come: the end, and those the answer has already.
NEVER = 100.0


class WrongIds:
    """A draft model that computes as always and says another id than the one it found."""

    name = "wrong ids"

    def __init__(self, inner: SmallModelDrafter, vocab_size: int) -> None:
        self._inner, self._vocab_size = inner, vocab_size
        self.default_length = inner.default_length

    @property
    def pause(self) -> Reason | None:
        return self._inner.pause

    def prefill(self, tokens: Sequence[int]) -> None:
        self._inner.prefill(tokens)

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        found = self._inner.propose(tokens, limit, policy)
        return Draft(tuple((token + 1) % self._vocab_size for token in found.tokens))

    def settle(self, length: int) -> None:
        self._inner.settle(length)

    def reset(self) -> None:
        self._inner.reset()


@dataclass(frozen=True)
class Gate:
    """A drafter that cannot help, the text it is put to, and the share of the rate it may keep."""

    drafter: Drafter
    sampling: Sampling
    least: float


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure both gates and print their medians; 0 when both hold."""
    asked = _parser().parse_args(arguments)
    session = Session(paths.ensure(paths.cache_folder()))
    session.load_target(asked.target, precision=asked.precision)
    session.choose_draft(asked.draft, precision=asked.precision)
    held = [_holds(session, gate, asked.pairs) for gate in _gates(session, asked.tokens)]
    session.close()
    return 0 if all(held) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("target", type=Path)
    parser.add_argument("draft", type=Path)
    parser.add_argument("--precision", default="int8", help="of both models (default: int8)")
    parser.add_argument("--tokens", type=int, default=512, help="an answer (default: 512)")
    parser.add_argument("--pairs", type=int, default=5, help="of answers (default: 5)")
    return parser


def _gates(session: Session, tokens: int) -> Iterator[Gate]:
    ends = dict.fromkeys(session.target.tokenizer.eos_ids, -NEVER)
    endless = Sampling(temperature=0.0, seed=1, max_tokens=tokens, logit_bias=ends)
    if session.draft is not None:
        model = SmallModelDrafter(session.draft.model)
        yield Gate(WrongIds(model, session.target.model.vocab_size), endless, 0.95)
    yield Gate(NGramDrafter(), replace(endless, presence_penalty=NEVER), 0.97)


def _holds(session: Session, gate: Gate, pairs: int) -> bool:
    """Whether the median of rate over plain rate, pair by pair, reaches the gate."""
    plain: list[float] = []
    drafted: list[float] = []
    usage = Usage()
    for drafter in (gate.drafter, NoDrafter()):
        _answer(session, drafter, replace(gate.sampling, max_tokens=16))
    for pair in range(pairs):
        # each goes first in turn, so that a machine that grows slower favours neither
        for way in ("plain", "drafted") if pair % 2 else ("drafted", "plain"):
            if way == "plain":
                plain.append(_rate(_answer(session, NoDrafter(), gate.sampling)))
            else:
                usage = _answer(session, gate.drafter, gate.sampling)
                drafted.append(_rate(usage))
    ratio = statistics.median(d / p for d, p in zip(drafted, plain, strict=True))
    print(
        f"{gate.drafter.name}: {ratio:.3f} x plain (gate {gate.least}), median of {pairs} pairs; "
        f"{statistics.median(drafted):.2f} tok/s against {statistics.median(plain):.2f}; in the "
        f"last {usage.accepted} of {usage.drafted} drafted tokens accepted, "
        f"{usage.draft_seconds:.2f} s drafting",
        flush=True,
    )
    return ratio >= gate.least


def _answer(session: Session, drafter: Drafter, sampling: Sampling) -> Usage:
    session.use(drafter)
    session.forget()
    usage = Usage()
    for chunk in session.reply(PROMPT, sampling, Drafting()):
        usage = chunk.usage
    return usage


def _rate(usage: Usage) -> float:
    """Tokens per second, the prefill left out."""
    return usage.tokens_per_second or 0.0


if __name__ == "__main__":
    sys.exit(main())
