"""What a model takes in memory, as `slipstream fit` says it and as it is really held.

    python -m tests.measure.memory MODEL... [--precision int8,bf16,fp32] [--context 2048,8192]

Loads each model on the processor and fills its cache to each length, without a forward pass.
"""

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch

from engine.loading import load
from engine.roles import PREFILL_CHUNK

MIB = 2**20


def fit(*options: object) -> Any:
    """What the terminal says, on a processor."""
    command = [sys.executable, "-m", "app", "fit", "--json", "--device", "cpu", *map(str, options)]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def hold(network: Any, context: int) -> int:
    """Fill a model's cache as passes do, without one; the bytes held then."""
    network.cache.free()
    network.limit(context)
    config = network.network.config.get_text_config(decoder=True)
    for start in range(0, context, PREFILL_CHUNK):
        tokens = min(PREFILL_CHUNK, context - start)
        shape = (1, config.num_key_value_heads, tokens, config.head_dim)
        for layer in network.cache.opened().layers:
            layer.update(torch.zeros(shape), torch.zeros(shape))
        network.cache.grew(tokens)
    return int(network.cache.nbytes)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--precision", default="int8,bf16,fp32")
    parser.add_argument("--context", default="2048,8192")
    asked = parser.parse_args()
    print("| model | precision | context | weights said | held | off | cache said | held | off |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as cache:
        for path in asked.models:
            for precision in asked.precision.split(","):
                rows(path, precision, [int(c) for c in asked.context.split(",")], Path(cache))


def rows(path: Path, precision: Any, contexts: list[int], cache: Path) -> None:
    """The rows of one model in one precision."""
    with contextlib.closing(load(path, cache_folder=cache, precision=precision)) as one:
        for context in contexts:
            said = fit(path, "--precision", precision, "--context", context)["parts"]
            pairs = (
                (said["target_weights"], one.model.memory_bytes),
                (said["target_kv"], hold(one.model, context)),
            )
            cells = [f"{s / MIB:,.1f} | {h / MIB:,.1f} | {h / s - 1:+.2%}" for s, h in pairs]
            print(f"| {path.stem} | {precision} | {context:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
