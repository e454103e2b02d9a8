"""Does Auto choose well? python -m tests.measure.choosing OUT PROMPTS TARGET DRAFT OTHER

Plain decoding, lookup, suffix, the draft, one of another vocabulary, and Auto, which holds all but
the last, take turns on each prompt after a warm-up on other prompts. OUT keeps a line for each
answer with its rounds, and for each text what every drafter would have drafted at each of its
places; a run that was stopped goes on from there. The tables are made of these lines: rates by
kind of prompt, the chosen lengths against the best fixed ones in hindsight, and what was predicted.
Exits with 1 where a limit is not kept.
"""

import argparse
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from app import paths
from engine import prediction
from engine.api import Drafting, Message, Sampling
from engine.bench.prompts import Conversation, Prompts, read_prompts
from engine.costs import VERIFY
from engine.drafters import built_in
from engine.drafters.auto import Auto
from engine.drafters.base import Drafter, Lookup
from engine.loading import LoadedModel, load
from engine.sampling import Noise, Policy
from engine.session import Session, check_pair, drafter_of

GREEDY = Sampling(temperature=0.0, seed=0)
AUTOMATIC = Drafting()
NONE, NGRAM, SUFFIX, DRAFT, OTHER, AUTO = "none", "ngram", "suffix", "draft", "other", "auto"
SINGLE = (NGRAM, SUFFIX, DRAFT, OTHER)
# Of the best single choice, over all prompts and in each kind; of plain decoding in each kind; of
# the best lengths in hindsight; of what was measured.
OVERALL, KIND, PLAIN, HINDSIGHT, PREDICTED = 0.97, 0.92, 0.97, 1.03, 0.15
Line = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure what OUT lacks, and print the tables; 0 when every limit is kept."""
    asked = _parser().parse_args(arguments)
    lines = Lines(asked.out)
    prompts = read_prompts(asked.prompts, asked.count + asked.warm_up)
    if not asked.only_tables:
        _measure(asked, prompts, lines)
    return Tables(lines.all, prompts.kinds).say()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    for name in ("out", "prompts", "target", "draft", "other"):
        parser.add_argument(name, type=Path)
    parser.add_argument("--count", type=int, default=26, help="of prompts (default: 26)")
    parser.add_argument("--warm-up", type=int, default=13, help="other prompts (default: 13)")
    parser.add_argument("--tokens", type=int, default=64, help="an answer (default: 64)")
    parser.add_argument("--repeat", type=int, default=3, help="(default: 3)")
    parser.add_argument("--precision", default="int8", help="of the models (default: int8)")
    parser.add_argument("--only", nargs="*", help="kinds of prompts to measure (default: all)")
    parser.add_argument("--only-tables", action="store_true", help="measure nothing")
    return parser


class Lines:
    """A file of JSON lines that only grows."""

    def __init__(self, file: Path) -> None:
        self._file = file
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        self.all: list[Line] = [json.loads(line) for line in text.splitlines()]

    def of(self, kind: str) -> list[Line]:
        return [line for line in self.all if line["kind"] == kind]

    def add(self, kind: str, **line: Any) -> None:
        self.all.append({"kind": kind, **line})
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(self.all[-1]) + "\n")


def _measure(asked: argparse.Namespace, read: Prompts, lines: Lines) -> None:
    cache = paths.ensure(paths.cache_folder())
    target, draft, other = (
        load(path, cache_folder=cache, precision=asked.precision)
        for path in (asked.target, asked.draft, asked.other)
    )
    race = Race(Session(cache, target), target, draft, other)
    done = {(run["way"], run["prompt"], run["again"]) for run in lines.of("run")}
    traced = {trace["prompt"] for trace in lines.of("trace")}
    for prompt in read.asked[asked.count :]:
        race.begin()
        for way in race.ways:
            race.answer(way, prompt, asked.tokens)
    if not lines.of("predicted"):
        lines.add("predicted", times=race.predictions())
    for i, prompt in enumerate(read.asked[: asked.count]):
        if asked.only and read.kinds[i] not in asked.only:
            continue
        race.begin()
        for again in range(asked.repeat):
            for way in race.turn(i + again):
                if (way, i, again) not in done:
                    made = race.answer(way, prompt, asked.tokens)
                    lines.add("run", way=way, prompt=i, again=again, **made)
        if i not in traced:
            plain = next(r for r in lines.of("run") if (r["way"], r["prompt"]) == (NONE, i))
            lines.add("trace", prompt=i, drafts=race.traces(prompt, plain["ids"]))
        print(f"prompt {i + 1} of {asked.count}", file=sys.stderr, flush=True)


class Race:
    """The ways of decoding, which share one session, so that a prompt is read once."""

    def __init__(
        self, session: Session, target: LoadedModel, draft: LoadedModel, other: LoadedModel
    ) -> None:
        self._session, self._target = session, target
        self._models = {DRAFT: _drafter(target, draft), OTHER: _drafter(target, other)}
        held: dict[str, list[Drafter]] = {
            NONE: [],
            NGRAM: built_in(NGRAM),
            SUFFIX: built_in(SUFFIX),
            **{name: [drafter] for name, drafter in self._models.items()},
            AUTO: [*built_in(AUTO), self._models[DRAFT]],
        }
        self.ways = {name: Auto(drafters) for name, drafters in held.items()}

    def begin(self) -> None:
        """Another prompt: every cache and table is empty."""
        self._session.forget()
        for way in self.ways.values():
            way.reset()

    def turn(self, number: int) -> list[str]:
        """The ways, in an order that moves on."""
        names = list(self.ways)
        return [names[(i + number) % len(names)] for i in range(len(names))]

    def answer(self, name: str, prompt: Conversation, tokens: int) -> Line:
        """One answer: its ids, tokens per second without the prefill, and its rounds."""
        self._session.use(self.ways[name])
        chat = [Message("user", prompt[0])]
        wanted = replace(GREEDY, max_tokens=tokens)
        chunks = list(self._session.reply(chat, wanted, AUTOMATIC))
        rounds = [asdict(chunk.round) for chunk in chunks if chunk.round is not None]
        ids = [token for chunk in chunks for token in chunk.token_ids]
        return {"ids": ids, "rate": chunks[-1].usage.tokens_per_second or 0.0, "rounds": rounds}

    def predictions(self) -> dict[str, float | None]:
        """Times plain for each drafter, from what the answers so far have taught."""
        found: dict[str, float | None] = {}
        for name in SINGLE:
            learnt = self.ways[name].automatic.learnt()
            (pair,) = (state for of, state in learnt.items() if of != VERIFY)
            if name in self._models:
                found[name] = prediction.times_plain(learnt[VERIFY], pair, {})
            else:
                found[name] = prediction.looked_up(pair)
        found[AUTO] = prediction.best(found[name] for name in (NGRAM, SUFFIX, DRAFT))
        return found

    def traces(self, prompt: Conversation, ids: Sequence[int]) -> dict[str, list[Line]]:
        """What each drafter would draft at each place of the answer `ids`: of a lookup, how many
        tokens, and how many of them are right; of a model, whether its next token is."""
        start = self._target.tokenizer.prompt([Message("user", prompt[0])]).ids
        text = [*start, *ids]
        found: dict[str, list[Line]] = {}
        for name, drafter in ({d.name: d for d in built_in(AUTO)} | self._models).items():
            drafter.reset()
            drafter.prefill(start[:-1])
            found[name] = [self._trace(drafter, text, i) for i in range(len(start), len(text))]
            drafter.reset()
        return found

    def _trace(self, drafter: Drafter, text: Sequence[int], place: int) -> Line:
        sure: list[float] = []

        def pace(value: float) -> int:
            sure.append(value)
            return drafter.default_length

        ends = self._target.tokenizer.eos_ids
        policy = Policy(GREEDY, Noise(0), place, "coupled", ends, pace)
        most = drafter.default_length if isinstance(drafter, Lookup) else 1
        draft = drafter.propose(text[:place], most, policy)
        drafter.settle(place - 1)
        came = text[place : place + len(draft.tokens)]
        pairs = zip(draft.tokens, came, strict=False)
        right = next((i for i, (a, b) in enumerate(pairs) if a != b), len(came))
        return {
            "drafted": len(draft.tokens),
            "right": right,
            "match": draft.match,
            "sure": sure[0] if sure else None,
        }


def _drafter(target: LoadedModel, draft: LoadedModel) -> Drafter:
    return drafter_of(target, draft, *check_pair(target.loaded.info, draft.loaded.info))


class Costs:
    """Median seconds of a pass of the target by its rows, and of a step of each model."""

    def __init__(self, runs: Iterable[Line]) -> None:
        passes: dict[int, list[float]] = defaultdict(list)
        steps: dict[str, list[float]] = defaultdict(list)
        for run in runs:
            for made in run["rounds"]:
                passes[made["drafted"] + 1].append(made["verify_seconds"])
                if name := model_of(run["way"], made):
                    steps[name].append(made["draft_seconds"] / made["drafted"])
        self._passes = {rows: statistics.median(seconds) for rows, seconds in passes.items()}
        self._steps = {name: statistics.median(seconds) for name, seconds in steps.items()}

    def round(self, model: str | None, drafted: int, steps: int | None = None) -> float:
        """Seconds of a round."""
        step = self._steps.get(model, 0.0) if model else 0.0
        return (drafted if steps is None else steps) * step + self.verify(drafted + 1)

    def verify(self, rows: int) -> float:
        return self._passes[min(self._passes, key=lambda known: abs(known - rows))]

    def steps(self, model: str, made: Line) -> int:
        """How many steps a draft took: one more where its last token was not drawn."""
        taken = round(made["draft_seconds"] / self._steps[model])
        return int(min(max(taken, made["drafted"]), made["drafted"] + 1))


def model_of(way: str, made: Line) -> str | None:
    """Which model drafted in a round, if one did."""
    if made["drafter"] != "model":
        return None
    return OTHER if way == OTHER else DRAFT


class Tables:
    """What the lines come to."""

    def __init__(self, lines: Sequence[Line], kinds: Sequence[str]) -> None:
        self._runs = [line for line in lines if line["kind"] == "run"]
        self._traces = {x["prompt"]: x["drafts"] for x in lines if x["kind"] == "trace"}
        self._traced = list(next(iter(self._traces.values()), {}))
        self._predicted: dict[str, float | None] = next(
            (x["times"] for x in lines if x["kind"] == "predicted"), {}
        )
        self._kinds, self._costs = kinds, Costs(self._runs)
        made = {run["way"] for run in self._runs}
        self._ways = [way for way in (NONE, *SINGLE, AUTO) if way in made]
        self._ok = True

    def say(self) -> int:
        """Print them; 1 where a limit is not kept."""
        self._same()
        self._rates()
        self._at_one_cost()
        self._hindsight()
        self._predictions()
        return 0 if self._ok else 1

    def _held(self, holds: bool) -> str:
        self._ok = self._ok and holds
        return "" if holds else " (missed)"

    def _same(self) -> None:
        plain = {run["prompt"]: run["ids"] for run in reversed(self._runs) if run["way"] == NONE}
        differing = sum(
            sum(a != b for a, b in zip(run["ids"], plain[run["prompt"]], strict=False))
            + abs(len(run["ids"]) - len(plain[run["prompt"]]))
            for run in self._runs
        )
        print(f"{len(self._runs)} answers, differing ids: {differing}{self._held(not differing)}\n")

    def _rate(self, way: str, kind: str | None = None, again: int | None = None) -> float:
        """The median over prompts of the median over repetitions."""
        rates: dict[int, list[float]] = defaultdict(list)
        for run in self._runs:
            asked = kind is None or self._kinds[run["prompt"]] == kind
            if run["way"] == way and asked and again in (None, run["again"]):
                rates[run["prompt"]].append(run["rate"])
        return statistics.median(map(statistics.median, rates.values()))

    def _whole(self, way: str) -> float:
        """All tokens over all seconds, of each prompt the median repetition."""
        found: dict[int, list[Line]] = defaultdict(list)
        for run in self._runs:
            if run["way"] == way:
                found[run["prompt"]].append(run)
        tokens = {prompt: len(runs[0]["ids"]) for prompt, runs in found.items()}
        rates = {p: statistics.median(run["rate"] for run in runs) for p, runs in found.items()}
        return sum(tokens.values()) / sum(tokens[p] / rates[p] for p in tokens)

    def _rates(self) -> None:
        print("tokens a second; medians, and in the second line all tokens over all seconds\n")
        print("| text | " + " | ".join(self._ways) + " |")
        print("|---" * (len(self._ways) + 1) + "|")
        kinds = list(dict.fromkeys(self._kinds[run["prompt"]] for run in self._runs))
        for kind in (None, *kinds):
            rates = {way: self._rate(way, kind) for way in self._ways}
            cells = [f"{rate:.2f}" for rate in rates.values()]
            of_best = rates[AUTO] / max(rates[way] for way in (NONE, *SINGLE))
            least = min(self._rate(NONE, kind, again) for again in self._again())
            good = of_best >= (OVERALL if kind is None else KIND) and (
                rates[AUTO] >= min(PLAIN * rates[NONE], least)
            )
            cells[-1] += f", {of_best:.2f} of the best{self._held(good)}"
            print(f"| {kind or 'all'} | " + " | ".join(cells) + " |")
            if kind is None:
                print("| all, whole | " + " | ".join(f"{self._whole(w):.2f}" for w in rates) + " |")
        print()

    def _at_one_cost(self) -> None:
        """What the choices come to where every round costs what its kind does in the median: two
        prompts of a kind are few against a machine that is now faster, now slower."""
        kinds = list(dict.fromkeys(self._kinds[run["prompt"]] for run in self._runs))
        print("Auto, of the best of the others, by the median cost of each kind of round: ", end="")
        shares = {kind: self._share(kind) for kind in kinds}
        print(", ".join(f"{kind} {share:.2f}" for kind, share in shares.items()), end="\n\n")

    def _share(self, kind: str) -> float:
        rates = {way: self._steady(way, kind) for way in self._ways}
        return rates.pop(AUTO) / max(rates.values())

    def _steady(self, way: str, kind: str) -> float:
        """As `_rate`, of the seconds that the rounds should have taken."""
        rates: dict[int, list[float]] = defaultdict(list)
        for run in self._runs:
            if run["way"] == way and self._kinds[run["prompt"]] == kind:
                seconds = sum(self._spent(way, made) for made in run["rounds"])
                rates[run["prompt"]].append(len(run["ids"]) / seconds)
        return statistics.median(map(statistics.median, rates.values()))

    def _again(self) -> list[int]:
        return sorted({run["again"] for run in self._runs})

    def _hindsight(self) -> None:
        for way in (*SINGLE, AUTO):
            runs = [r for r in self._runs if r["way"] == way and r["prompt"] in self._traces]
            chosen = sum(self._spent(way, made) for run in runs for made in run["rounds"])
            names = [way] if way != AUTO else [n for n in self._traced if n != OTHER]
            fixed = {
                (n, k): sum(self._replay(n, k, r) for r in runs) for n in names for k in range(17)
            }
            (name, length), best = min(fixed.items(), key=lambda item: item[1])
            print(
                f"{way}: its lengths cost {chosen / best - 1:+.1%} against the best in hindsight, "
                f"{name} {length}{self._held(chosen <= HINDSIGHT * best)}"
            )
        print()

    def _spent(self, way: str, made: Line) -> float:
        model = model_of(way, made)
        steps = self._costs.steps(model, made) if model else 0
        return self._costs.round(model, made["drafted"], steps)

    def _replay(self, name: str, length: int, run: Line) -> float:
        """Seconds for the answer of `run` with a drafter always at this length."""
        trace = self._traces[run["prompt"]][name]
        # the first token of an answer comes by a round too
        place, end, seconds = 0, len(run["ids"]), 0.0
        while place < end:
            most = min(length, end - place - 1)
            if name in (DRAFT, OTHER):
                drafted, right = most, 0
                while right < most and trace[place + right]["right"]:
                    right += 1
                seconds += self._costs.round(name, drafted)
            else:
                drafted = min(most, trace[place]["drafted"])
                right = min(drafted, trace[place]["right"])
                seconds += self._costs.round(None, drafted)
            place += right + 1
        return seconds

    def _predictions(self) -> None:
        plain = self._whole(NONE)
        for way, times in self._predicted.items():
            measured = self._whole(way) / plain
            if times is None:
                print(f"{way}: nothing predicted{self._held(False)}")
                continue
            off = times / measured - 1
            print(
                f"{way}: {times:.2f} times plain predicted, {measured:.2f} measured, {off:+.0%}"
                f"{self._held(abs(off) <= PREDICTED)}"
            )


if __name__ == "__main__":
    sys.exit(main())
