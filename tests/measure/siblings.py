"""Would a tree pay? python -m tests.measure.siblings PROMPTS TARGET DRAFT [--count 13]

A chain of guesses is wrong from its first wrong guess on. The smallest tree has one row more: the
draft's second choice for the first place. This counts how often that one is right, replays plain
greedy answers with chains of each length, with and without it, and takes the seconds of a pass
over so many rows and of a step of the draft from this machine.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import torch

from app import paths
from engine.api import Drafting, Message, Sampling
from engine.bench.prompts import read_prompts
from engine.loading import LoadedModel, load
from engine.session import Session
from tests.measure.steps import _pass

ROWS, CONTEXT, PASSES = (1, 2, 3, 4, 5, 6, 7, 8, 9), 600, 15


@dataclass(frozen=True)
class Guesses:
    """For each place of an answer, whether the draft's first choice is right, and its second."""

    first: list[bool]
    second: list[bool]


@dataclass(frozen=True)
class Costs:
    """Seconds of the target's pass by its rows, and of a step of the draft."""

    rows: dict[int, float]
    step: float


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("prompts", "target", "draft"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--count", type=int, default=13, help="of prompts (default: 13)")
    parser.add_argument("--tokens", type=int, default=64, help="an answer (default: 64)")
    parser.add_argument("--precision", default="int8", help="of the models (default: int8)")
    asked = parser.parse_args()
    cache = paths.ensure(paths.cache_folder())
    target, draft = (
        load(path, cache_folder=cache, precision=asked.precision)
        for path in (asked.target, asked.draft)
    )
    session = Session(cache, target)
    prompts = read_prompts(asked.prompts, asked.count).asked
    found = [_guesses(session, draft, prompt[0], asked.tokens) for prompt in prompts]
    costs = Costs(
        {rows: _pass(target.model, CONTEXT, rows, PASSES) for rows in ROWS},
        _pass(draft.model, CONTEXT, 1, PASSES),
    )
    _say(found, costs)


def _guesses(session: Session, draft: LoadedModel, prompt: str, tokens: int) -> Guesses:
    chat = [Message("user", prompt)]
    session.forget()
    wanted = Sampling(temperature=0.0, seed=0, max_tokens=tokens)
    chunks = session.reply(chat, wanted, Drafting())
    ids = [token for chunk in chunks for token in chunk.token_ids]
    start = draft.tokenizer.prompt(chat).ids
    draft.model.cache.empty()
    draft.model.feed(start[:-1])
    logits = draft.model.forward([start[-1], *ids[:-1]], rows=len(ids))
    chosen = logits.topk(2).indices
    right = chosen == torch.tensor(ids)[:, None]
    return Guesses(right[:, 0].tolist(), right[:, 1].tolist())


def _say(found: Sequence[Guesses], costs: Costs) -> None:
    places = [pair for one in found for pair in zip(one.first, one.second, strict=True)]
    wrong = [second for first, second in places if not first]
    share = 1 - len(wrong) / len(places)
    print(
        f"{len(places)} places: first choice right at {share:.2f}, "
        f"second at {sum(wrong) / len(wrong):.2f} of the others"
    )
    rows = " ".join(f"{1e3 * seconds:.0f}" for seconds in costs.rows.values())
    each = [after - before for before, after in pairwise(costs.rows.values())]
    print(
        f"ms of a pass over {ROWS[0]} to {ROWS[-1]} rows: {rows}; of a step: {1e3 * costs.step:.0f}"
    )
    print(f"a row more takes {sum(each) / len(each) / costs.rows[1]:.2f} of a pass over one\n")
    print("| length of the chain | chain, tok/s | with the second choice |")
    print("|---|---|---|")
    for length in range(ROWS[-1] - 1):
        with_it = f"{_rate(found, length, costs, True):.2f}" if length else "-"
        print(f"| {length} | {_rate(found, length, costs, False):.2f} | {with_it} |")


def _rate(found: Sequence[Guesses], length: int, costs: Costs, second: bool) -> float:
    """Tokens a second of all answers, replayed."""
    seconds = sum(_replayed(one, length, costs, second) for one in found)
    return sum(len(one.first) for one in found) / seconds


def _replayed(guesses: Guesses, length: int, costs: Costs, second: bool) -> float:
    place, end, seconds = 0, len(guesses.first), 0.0
    while place < end:
        most = min(length, end - place - 1)
        right = 0
        while right < most and guesses.first[place + right]:
            right += 1
        if second and most and not right:
            right = int(guesses.second[place])
        seconds += most * costs.step + costs.rows[1 + most + (second and most > 0)]
        place += right + 1
    return seconds


if __name__ == "__main__":
    main()
