"""What a pass costs by its rows and the context, and how fast a prompt is read.

    python -m tests.measure.steps MODEL... [--precision int8] [--contexts 256,2048,8192]

Medians over passes, milliseconds. The tokens are arbitrary: no pass costs more for other ones.
"""

import argparse
import statistics
import time
from pathlib import Path

from engine.loading import load
from engine.model import LanguageModel

ROWS = (1, 2, 3, 5, 8, 16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--precision", default="int8")
    parser.add_argument("--contexts", default="256,2048,8192")
    parser.add_argument("--passes", type=int, default=9)
    parser.add_argument("--cache", type=Path, default=Path(".cache"))
    asked = parser.parse_args()
    contexts = [int(text) for text in asked.contexts.split(",")]
    print("| model | context | " + " | ".join(map(str, ROWS)) + " | prefill, tok/s |")
    print("|---" * (len(ROWS) + 3) + "|")
    for path in asked.models:
        loaded = load(path, cache_folder=asked.cache, precision=asked.precision)
        for context in contexts:
            rate = _prefill(loaded.model, context)
            found = [_pass(loaded.model, context, rows, asked.passes) for rows in ROWS]
            times = " | ".join(f"{1e3 * seconds:.0f}" for seconds in found)
            name = loaded.loaded.info.name
            print(f"| {name}, {asked.precision} | {context} | {times} | {rate:.0f} |", flush=True)
        loaded.close()


def _prefill(model: LanguageModel, context: int) -> float:
    """Tokens a second while `context` tokens are read into the empty cache."""
    model.cache.empty()
    began = time.monotonic()
    model.feed(_tokens(model, context))
    return context / (time.monotonic() - began)


def _pass(model: LanguageModel, context: int, rows: int, passes: int) -> float:
    """Median seconds of a pass over `rows` tokens behind `context` others."""
    taken = []
    for _ in range(passes + 1):
        model.cache.crop_to(context)
        began = time.monotonic()
        model.forward(_tokens(model, rows), rows=rows)
        taken.append(time.monotonic() - began)
    # the first finds no room for its keys yet
    return statistics.median(taken[1:])


def _tokens(model: LanguageModel, count: int) -> list[int]:
    return [(7919 * place + 13) % (model.vocab_size // 2) for place in range(count)]


if __name__ == "__main__":
    main()
