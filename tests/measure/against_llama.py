"""Slipstream and llama.cpp at equal bits, on the same prompts as token ids, interleaved.

    python -m tests.measure.against_llama LLAMA_SERVER PROMPTS.jsonl --ours TARGET --our-draft DRAFT
        --q8 TARGET.gguf --q8-draft DRAFT.gguf [--bf16 ... --bf16-draft ...] [--q4 ...]

Each llama.cpp row is a server of its own, all started before and idle while others answer.
Greedy; prompts of all categories in turn; rates of decoding alone. For measuring only.
"""

import argparse
import json
import socket
import statistics
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

from engine.api import Drafting, Message, Precision, Sampling, Usage
from engine.bench.prompts import read_prompts
from engine.drafters import BUILT_IN
from engine.drafters.small_model import SmallModelDrafter
from engine.loading import load
from engine.session import Session


class Server:
    """A llama-server that answers one request at a time."""

    def __init__(self, binary: Path, model: Path, *options: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        threads = ("-t", "2", "-td", "2", "-np", "1", "-c", "4096")
        self.process = subprocess.Popen(
            [binary, "-m", model, "--port", str(self.port), *threads, *options],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def wait(self) -> None:
        while True:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health") as answer:
                    if answer.status == 200:
                        return
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit("llama-server ended") from None
                time.sleep(0.5)

    def answer(self, ids: list[int], tokens: int) -> tuple[float, str]:
        body = {
            "prompt": ids,
            "n_predict": tokens,
            "temperature": 0,
            "cache_prompt": False,
            "stream": False,
        }
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/completion",
            json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request) as answer:
            timings = json.load(answer)["timings"]
        drafted = timings.get("draft_n", 0)
        accepted = f"{timings['draft_n_accepted'] / drafted:.0%}" if drafted else "-"
        return timings["predicted_per_second"], accepted


class Ours:
    """Our engine at one precision; its rows share the models and differ in what drafts."""

    def __init__(self, cache: Path, target: Path, draft: Path, precision: Precision) -> None:
        self.session = Session(cache)
        self.session.load_target(target, precision=precision)
        self._draft = load(draft, cache_folder=cache, precision=precision)

    def answer(self, kind: str, length: int | None, prompt: str, tokens: int) -> tuple[float, str]:
        model = SmallModelDrafter(self._draft.model) if kind == "draft" else BUILT_IN[kind]()
        self.session.use(model)
        self.session.forget()
        usage = Usage()
        sampling = Sampling(temperature=0, seed=0, max_tokens=tokens, repetition_penalty=1.0)
        drafting = Drafting(length=length)
        for chunk in self.session.reply([Message("user", prompt)], sampling, drafting):
            usage = chunk.usage
        rate = usage.acceptance_rate
        return usage.tokens_per_second or 0.0, "-" if rate is None else f"{rate:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server", type=Path)
    parser.add_argument("prompts", type=Path)
    parser.add_argument("--ours", type=Path, required=True)
    parser.add_argument("--our-draft", type=Path, required=True)
    parser.add_argument("--lengths", default="2,4")
    parser.add_argument("--precisions", default="int8")
    parser.add_argument("--limit", type=int, default=13)
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--cache", type=Path, default=Path(".cache"))
    for name in ("q8", "bf16", "q4"):
        parser.add_argument(f"--{name}", type=Path)
        parser.add_argument(f"--{name}-draft", type=Path)
    a = parser.parse_args()
    rows: dict[str, Callable[[str, list[int]], tuple[float, str]]] = {}
    servers: list[Server] = []

    def theirs(name: str, model: Path, *options: str) -> None:
        server = Server(a.server, model, *options)
        servers.append(server)
        rows[f"llama.cpp {name}"] = lambda _, ids: server.answer(ids, a.tokens)

    def ours(engine: Ours, name: str, kind: str, length: int | None) -> None:
        rows[f"slipstream {name}"] = lambda p, _: engine.answer(kind, length, p, a.tokens)

    try:
        for name in ("q8", "bf16", "q4"):
            model, draft = getattr(a, name), getattr(a, f"{name}_draft")
            if model is None:
                continue
            theirs(f"{name} plain", model)
            for length in a.lengths.split(","):
                if draft is not None:
                    options = ("--spec-type", "draft-simple", "--spec-draft-n-max", length)
                    theirs(f"{name} draft {length}", model, "-md", str(draft), *options)
            if name != "q4":
                short = ("--spec-ngram-simple-size-n", "3", "--spec-ngram-simple-size-m", "8")
                theirs(f"{name} ngram 8", model, "--spec-type", "ngram-simple", *short)
        engines = [Ours(a.cache, a.ours, a.our_draft, p) for p in a.precisions.split(",")]
        for engine, precision in zip(engines, a.precisions.split(","), strict=True):
            ours(engine, f"{precision} plain", "none", 0)
            for length in a.lengths.split(","):
                ours(engine, f"{precision} draft {length}", "draft", int(length))
            ours(engine, f"{precision} draft auto", "draft", None)
            ours(engine, f"{precision} ngram auto", "ngram", None)
        for server in servers:
            server.wait()
        results: dict[str, list[float]] = {name: [] for name in rows}
        prompts = [turns[0] for turns in read_prompts(a.prompts, a.limit).asked]
        for n, prompt in enumerate(prompts):
            ids = list(engines[0].session.target.tokenizer.prompt([Message("user", prompt)]).ids)
            for i in range(len(rows)):
                name = list(rows)[(i + n) % len(rows)]
                rate, accepted = rows[name](prompt, ids)
                results[name].append(rate)
                print(f"prompt {n + 1}, {name}: {rate:.2f} tok/s, {accepted}", flush=True)
        print("| row | tok/s | lowest | highest |\n|---|---|---|---|")
        for name, rates in results.items():
            low, middle, high = min(rates), statistics.median(rates), max(rates)
            print(f"| {name} | {middle:.2f} | {low:.2f} | {high:.2f} |")
    finally:
        for server in servers:
            server.process.kill()


if __name__ == "__main__":
    main()
