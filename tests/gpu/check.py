"""What the engine does on a GPU: speed, memory, the same ids. python -m tests.gpu.check

Random weights in the shapes of an 8B Llama with drafts of 1B and 0.6B, made on the device; no
file and no network is needed. Prints Markdown for docs/performance.md. A part that fails says why
and the others still run. Exits with 1 when ids or bits differ, or when that could not be tried.
`--device cpu --tiny` runs the same lines in seconds, with nothing captured.
"""

import argparse
import gc
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from engine import exactness, quantised
from engine.api import ModelInfo, RoundStats, Sampling
from engine.controller import FixedLength
from engine.decode import decode
from engine.devices import gpus, release
from engine.drafters.base import Drafter, NoDrafter
from engine.drafters.small_model import SmallModelDrafter
from engine.errors import Reason
from engine.library import caches, sizes
from engine.library.formats import installed
from engine.memory import estimate
from engine.model import LanguageModel
from engine.sampling import Noise, Policy, resolve
from engine.verify import Draft

# Rates of planted errors, and how many tokens are drafted at each (methods.md 10).
ERRORS = ((0.4, 3), (0.2, 5), (0.1, 7))
SEED = 7


@dataclass(frozen=True)
class Scale:
    """How much is measured. `prompt`, `tokens` and `context` in tokens, `copied` in bytes."""

    target: dict[str, int]
    drafts: dict[str, dict[str, int]]
    prompt: int
    tokens: int
    context: int
    repeats: int
    copied: int


def shape(hidden: int, inner: int, layers: int, heads: int, key_heads: int, size: int) -> Any:
    """A configuration's numbers."""
    return {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": key_heads,
        "head_dim": size,
    }


FULL = Scale(
    # Llama 3.1 8B, Llama 3.2 1B and Qwen 3 0.6B, all with the first one's vocabulary
    target=shape(4096, 14336, 32, 32, 8, 128) | {"vocab_size": 128_256},
    drafts={
        "1B": shape(2048, 8192, 16, 32, 8, 64) | {"vocab_size": 128_256},
        "0.6B": shape(1024, 3072, 28, 16, 8, 128) | {"vocab_size": 128_256},
    },
    prompt=300,
    tokens=512,
    context=8192,
    repeats=20,
    copied=2 << 30,
)
TINY = Scale(
    target=shape(64, 128, 2, 4, 2, 16) | {"vocab_size": 512},
    drafts={
        "1B": shape(32, 64, 2, 4, 2, 8) | {"vocab_size": 512},
        "0.6B": shape(32, 64, 1, 4, 2, 8) | {"vocab_size": 512},
    },
    prompt=490,
    tokens=48,
    context=2048,
    repeats=2,
    copied=1 << 20,
)


class Oracle:
    """Drafts what is known to come, each token wrong with probability `error`.

    With a `model` it is that model which drafts, and costs what it costs; its ids are replaced.
    """

    name = "oracle"
    default_length = 4
    pause: Reason | None = None

    def __init__(self, known: Sequence[int], error: float, model: LanguageModel | None) -> None:
        self._known, self._error = known, error
        self._inner = SmallModelDrafter(model) if model is not None else NoDrafter()
        self._choose = random.Random(SEED)

    def prefill(self, tokens: Sequence[int]) -> None:
        self._inner.prefill(tokens)

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        self._inner.propose(tokens, limit, policy)
        right = self._known[len(tokens) : len(tokens) + limit]
        return Draft(tuple(t ^ (self._choose.random() < self._error) for t in right))

    def settle(self, length: int) -> None:
        self._inner.settle(length)

    def reset(self) -> None:
        self._inner.reset()


@dataclass
class Bench:
    """The models, made when first asked for, and the rows of the report."""

    device: torch.device
    scale: Scale
    rows: list[tuple[str, str]] = field(default_factory=list)
    unequal: list[str] = field(default_factory=list)
    bits: str = "bf16"
    began: float = field(default_factory=time.perf_counter)

    def tell(self, what: str, result: str) -> None:
        """A row of the report."""
        self.rows.append((what, result))

    def judge(self, what: str, equal: bool, said: str = "equal") -> None:
        """A row on whether something is equal; if not, the run has failed."""
        self.tell(what, said if equal else "**differs**")
        if not equal:
            self.unequal.append(what)

    def wait(self) -> None:
        """Until the device has done all it was asked."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def seconds(self, work: Callable[[], object], before: Callable[[], object] = int) -> float:
        """The median time of `work`, with `before` run before each, untimed."""
        times = []
        for i in range(self.scale.repeats + 2):
            before()
            self.wait()
            began = time.perf_counter()
            work()
            self.wait()
            if i >= 2:
                times.append(time.perf_counter() - began)
        return statistics.median(times)

    @cached_property
    def target(self) -> LanguageModel:
        return self.made(self.scale.target, tied=False)

    @cached_property
    def drafts(self) -> dict[str, LanguageModel]:
        return {name: self.made(s, tied=True) for name, s in self.scale.drafts.items()}

    def made(self, numbers: dict[str, int], *, tied: bool) -> LanguageModel:
        """A model of random weights that computes answers in blocks."""
        config = AutoConfig.for_model(
            "llama",
            **numbers,
            max_position_embeddings=self.scale.context,
            rope_theta=500_000.0,
            tie_word_embeddings=tied,
        )
        torch.manual_seed(SEED)
        with torch.device(self.device):
            network = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
        network.requires_grad_(False).eval()
        model = LanguageModel(network, self.scale.context)
        if not exactness.take_blocks(model):
            raise RuntimeError("blocks say something else than ordinary passes")
        for note in model.notes:
            self.tell("note", note.text)
        return model

    @cached_property
    def prompt(self) -> list[int]:
        choose = random.Random(SEED)
        return [choose.randrange(self.target.vocab_size) for _ in range(self.scale.prompt)]

    @cached_property
    def bandwidth(self) -> float:
        """Bytes per second of a copy on the device, those read and those written."""
        source = torch.ones(self.scale.copied, dtype=torch.uint8, device=self.device)
        copied = torch.empty_like(source)
        return 2 * self.scale.copied / self.seconds(lambda: copied.copy_(source))

    def run(
        self, drafter: Drafter, length: int, temperature: float, tokens: int
    ) -> tuple[list[int], float, list[RoundStats]]:
        """All ids of a run, its tokens per second without the prompt, and its rounds."""
        self.target.cache.empty()
        drafter.reset()
        text = list(self.prompt)
        self.target.feed(text[:-1])
        drafter.prefill(text[:-1])
        sampling = resolve(Sampling(temperature=temperature, top_k=64), Sampling())
        policy = Policy(sampling, Noise(SEED), len(text))
        limit = len(text) + tokens
        self.wait()
        began = time.perf_counter()
        rounds = decode(self.target, drafter, FixedLength(length), text, policy, limit=limit)
        stats = [stats for _, stats in rounds]
        self.wait()
        return text, tokens / (time.perf_counter() - began), stats

    @cached_property
    def plain(self) -> dict[float, tuple[list[int], float]]:
        """Ids and rate without a draft, by temperature; the first run captures the graphs."""
        runs = [(t, self.run(NoDrafter(), 0, t, self.scale.tokens)) for t in (0.0, 0.0, 0.8)]
        return {t: (ids, rate) for t, (ids, rate, _) in runs}


def nvml(bench: Bench) -> None:
    """NVML's view of the cards."""
    cards, reason = gpus()
    for card in cards:
        bench.tell("NVML", f"{card.name}, {gib(card.total)} in all, {gib(card.free)} free")
    if reason is not None:
        bench.tell("NVML", reason.text)


def versions(bench: Bench) -> None:
    """What this ran on."""
    on_card = bench.device.type == "cuda"
    card = torch.cuda.get_device_name(bench.device) if on_card else "CPU"
    bench.tell("device", f"{card}, torch {torch.__version__}, CUDA {torch.version.cuda}")
    bench.tell("copy bandwidth", f"{bench.bandwidth / 1e9:.0f} GB/s")


def speed(bench: Bench) -> None:
    """Plain decoding against the time that reading the weights takes."""
    read = bench.target.memory_bytes - table_bytes(bench.target)
    floor = bench.bandwidth / read
    for temperature, (_, rate) in bench.plain.items():
        bench.tell(
            f"{bench.bits} plain, temperature {temperature}",
            f"{rate:.1f} tok/s, {100 * rate / floor:.0f} % of the {floor:.1f} tok/s at which "
            f"{read / 1e9:.2f} GB of weights can be read",
        )


def prefill(bench: Bench) -> None:
    """How fast a prompt is taken in."""
    tokens = bench.prompt * 2
    took = bench.seconds(lambda: bench.target.feed(tokens), bench.target.cache.empty)
    bench.tell(f"{bench.bits} prompt of {len(tokens)}", f"{len(tokens) / took:.0f} tok/s")


def verify(bench: Bench) -> None:
    """The time of 1 to 16 rows, and of a draft's step."""
    target, start = bench.target, len(bench.prompt)
    target.cache.empty()
    target.feed(bench.prompt)
    times = [
        bench.seconds(
            lambda rows=rows: target.forward(bench.prompt[:rows], rows),
            lambda: target.cache.crop_to(start),
        )
        for rows in range(1, 17)
    ]
    bench.tell(
        f"{bench.bits} ms to verify 1, 2, ... 16 rows",
        " ".join(f"{1000 * t:.2f}" for t in times),
    )


def draft_steps(bench: Bench) -> None:
    """The time of one step of each draft."""
    for name, draft in bench.drafts.items():
        draft.cache.empty()
        draft.feed(bench.prompt)
        took = bench.seconds(
            lambda draft=draft: draft.forward(bench.prompt[:1]),
            lambda draft=draft: draft.cache.crop_to(len(bench.prompt)),
        )
        bench.tell(f"ms of a step of the {name} draft", f"{1000 * took:.2f}")


def graph(bench: Bench) -> None:
    """A block played from its graph against the same block step by step."""
    target: Any = bench.target
    start = len(bench.prompt)
    target.cache.empty()
    target.feed(bench.prompt)
    played = target.runner._graphs
    if not played.captures:
        bench.tell(f"{bench.bits} graph against eager", "nothing is captured here")
        return
    found = {}
    for captures in (True, False):
        played.captures = captures
        target.cache.crop_to(start)
        logits = target.forward(bench.prompt[:8], 8)
        took = bench.seconds(
            lambda: target.forward(bench.prompt[:8], 8), lambda: target.cache.crop_to(start)
        )
        found[captures] = logits, took
    played.captures = True
    (a, fast), (b, slow) = found[True], found[False]
    same = "the same bits" if torch.equal(a, b) else "other bits"
    bench.tell(
        f"{bench.bits} block of 8 from a graph, eager",
        f"{1000 * fast:.2f} ms, {1000 * slow:.2f} ms, {same}",
    )


def exact(bench: Bench) -> None:
    """The engine's own check: rows alone, in blocks, fed again."""
    bench.judge(f"{bench.bits} rows alone, in blocks and fed again", exactness.check(bench.target))


def speed_up(bench: Bench) -> None:
    """Rates with drafts that are right as often as planned; and whether the ids stay the same."""
    for temperature, (ids, rate) in bench.plain.items():
        for name, model in drafting(bench, temperature):
            if model is not None:
                bench.run(Oracle(ids, 0.4, model), 3, temperature, bench.scale.tokens)
            for error, length in ERRORS:
                oracle = Oracle(ids, error, model)
                found, drafted, stats = bench.run(oracle, length, temperature, bench.scale.tokens)
                rounds = [s for s in stats if s.drafted]
                what = f"{bench.bits}, {name}, {error} wrong, {length} drafted, at {temperature}"
                bench.tell(
                    what,
                    f"{drafted:.1f} tok/s, {drafted / rate:.2f} x plain, "
                    f"{sum(s.emitted for s in rounds) / max(1, len(rounds)):.2f} tokens a round",
                )
                bench.judge(f"ids, {what}", found == ids, f"all {bench.scale.tokens} as in plain")


def drafting(bench: Bench, temperature: float) -> list[tuple[str, LanguageModel | None]]:
    """What is drafted with: all when greedy, the draft that costs nothing otherwise."""
    named = [(f"at the cost of {name}", model) for name, model in bench.drafts.items()]
    return [("at no cost", None), *(named if temperature == 0 else [])]


def memory(bench: Bench) -> None:
    """The estimate against what torch counted."""
    context = bench.target.cache.room  # type: ignore[attr-defined]
    expected = estimate(facts(bench), "bf16", "cuda", context)
    assert expected.weights is not None
    assert expected.cache is not None
    held = bench.target.cache.nbytes
    bench.tell(
        "weights, estimate and real",
        f"{gib(expected.weights)}, {gib(bench.target.memory_bytes)}",
    )
    bench.tell(
        f"cache of {context} tokens, estimate and real", f"{gib(expected.cache)}, {gib(held)}"
    )
    if bench.device.type == "cuda":
        everything = [bench.target, *bench.drafts.values()]
        sum_of_all = sum(m.memory_bytes + m.cache.nbytes for m in everything)
        peak = torch.cuda.max_memory_allocated()
        bench.tell("weights and caches of all models", gib(sum_of_all))
        bench.tell("max_memory_allocated", f"{gib(peak)}, {gib(peak - sum_of_all)} more")


def facts(bench: Bench) -> ModelInfo:
    """What the target's files would say."""
    network = bench.target.network
    shapes = {name: tuple(p.shape) for name, p in network.named_parameters()}
    config = network.config.to_dict()
    return ModelInfo(
        "target",
        Path("target"),
        "safetensors",
        "llama",
        **sizes.weights(shapes, "model.embed_tokens.weight", "lm_head.weight", False),
        **caches.of_config(config, "llama"),
    )


def four_bits(bench: Bench) -> None:
    """The same target in 4 bits, in its own place; what follows is measured with it."""
    if bench.device.type == "cuda" and installed("torchao"):
        from torchao.quantization import quantize_

        quantize_(bench.target.network.model, quantised.int4())
        bench.bits = "int4 (torchao)"
    elif bench.device.type == "cuda" and installed("bitsandbytes"):
        with_bitsandbytes(bench.target.network.model)
        bench.bits = "int4 (bitsandbytes)"
    else:
        bench.tell("4-bit weights", "not tried: neither torchao nor bitsandbytes is here")
        return
    bench.target.runner.free()
    release()
    del bench.plain
    for part in (speed, prefill, verify, graph, exact, speed_up):
        attempt(bench, part)


def with_bitsandbytes(network: torch.nn.Module) -> None:
    """Every linear layer in NF4."""
    import bitsandbytes

    for module in list(network.modules()):
        for name, linear in list(module.named_children()):
            if type(linear) is torch.nn.Linear:
                new = bitsandbytes.nn.Linear4bit(
                    linear.in_features,
                    linear.out_features,
                    bias=False,
                    compute_dtype=torch.bfloat16,
                    quant_type="nf4",
                    device="meta",
                )
                new.weight = bitsandbytes.nn.Params4bit(
                    linear.weight.data, requires_grad=False, quant_type="nf4"
                ).to(linear.weight.device)
                setattr(module, name, new)


def table_bytes(model: LanguageModel) -> int:
    """Bytes of the table of tokens where only rows of it are read: where it is not the head."""
    network: Any = model.network
    table = network.get_input_embeddings().weight
    tied = table is network.get_output_embeddings().weight
    return 0 if tied else table.numel() * table.element_size()


def gib(size: float) -> str:
    return f"{size / 2**30:.2f} GiB"


PARTS = (
    nvml,
    versions,
    speed,
    prefill,
    verify,
    draft_steps,
    graph,
    exact,
    speed_up,
    memory,
    nvml,
    four_bits,
)
# Without these the run proves nothing.
NEEDED = (exact, speed_up)
# Seconds after which no part is begun any more.
LIMIT = 400


def attempt(bench: Bench, part: Callable[[Bench], None]) -> None:
    """Run a part; one that fails says why."""
    began = time.perf_counter()
    try:
        if began - bench.began > LIMIT:
            raise TimeoutError("no time was left")
        part(bench)
    except Exception as error:
        said = (str(error).strip().splitlines() or [""])[0][:200]
        bench.tell(part.__name__, f"**failed**: {type(error).__name__}: {said}")
        if part in NEEDED:
            bench.unequal.append(part.__name__)
        del error
    gc.collect()
    release()
    print(f"{part.__name__}: {time.perf_counter() - began:.1f} s", file=sys.stderr, flush=True)


def check(device: str, scale: Scale) -> Bench:
    """Run every part."""
    bench = Bench(torch.device(device), scale)
    for part in PARTS:
        attempt(bench, part)
    return bench


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="models of no size, to try the script")
    chosen = parser.parse_args(arguments)
    bench = check(chosen.device, TINY if chosen.tiny else FULL)
    print("| what | result |\n|---|---|")
    for row in bench.rows:
        print("| {} | {} |".format(*row))
    for what in bench.unequal:
        print(f"not equal or not tried: {what}", file=sys.stderr)
    return 1 if bench.unequal else 0


if __name__ == "__main__":
    sys.exit(main())
