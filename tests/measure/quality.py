"""What int8 costs: perplexity and agreement with bf16, on the prompts of a file.

    python -m tests.measure.quality PROMPTS.jsonl MODEL... [--tokens 16000] [--precision int8]

The texts are the first turns of the categories "summarization" and "rag", in pieces. bf16 are the
stored weights rounded to bfloat16, in float32 arithmetic.
"""

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from engine.checkpoint import FolderWeights, skeleton
from engine.gguf import config as gguf_config
from engine.gguf import weights as gguf_weights
from engine.kernels.network import release, settle
from engine.kernels.packing import Weights, pack
from engine.library.folder import weight_files
from engine.library.gguf import read_header
from engine.library.inspect import inspect
from engine.loading import load
from engine.quality import AT_ONCE

PIECE = 1000
CATEGORIES = ("summarization", "rag")


def pieces(prompts: Path, encode: Any, tokens: int) -> list[list[int]]:
    """Token ids of the texts, in pieces, `tokens` in all."""
    entries = [json.loads(line) for line in prompts.read_text(encoding="utf-8").splitlines()]
    by_category = [
        [e["turns"][0] for e in entries if e.get("category") == category] for category in CATEGORIES
    ]
    texts = [text for pair in zip(*by_category, strict=True) for text in pair]
    found: list[list[int]] = []
    left = tokens
    for text in texts:
        ids = encode(text)[: min(PIECE, left)]
        if len(ids) > 100:
            found.append(ids)
            left -= len(ids)
        if left <= 100:
            break
    return found


def measured(path: Path, precision: Any, texts: Sequence[Sequence[int]]) -> list[Any]:
    """What `run` finds of each text, with the weights in `precision`."""
    weights: Weights
    if inspect(path).format == "gguf":
        header = read_header(path)
        config = gguf_config.config_of(header)
        network = skeleton(config)
        weights = gguf_weights.Reader(header, config, network)
    else:
        from transformers import AutoConfig

        network = skeleton(AutoConfig.from_pretrained(path, local_files_only=True))
        weights = FolderWeights(weight_files(path))
    pack(network, weights, precision)
    network.requires_grad_(False).eval()
    settle(network)
    found = [run(network, ids) for ids in texts]
    release(network)
    return found


@torch.inference_mode()
def run(network: Any, ids: Sequence[int]) -> tuple[float, torch.Tensor]:
    """Sum of negative log-likelihoods of ids[1:], and the likeliest token at each place."""
    x = torch.tensor([list(ids)])
    hidden = network.base_model(input_ids=x, use_cache=False).last_hidden_state[0, :-1]
    total, best = 0.0, []
    for start in range(0, len(hidden), AT_ONCE):
        logits = network.get_output_embeddings()(hidden[start : start + AT_ONCE])
        wanted = x[0, start + 1 : start + 1 + len(logits)]
        total += float(F.cross_entropy(logits, wanted, reduction="sum"))
        best.append(logits.argmax(-1))
    return total, torch.cat(best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("prompts", type=Path)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--tokens", type=int, default=16_000)
    parser.add_argument("--precision", default="int8")
    parser.add_argument("--cache", type=Path, default=Path(".cache"))
    arguments = parser.parse_args()
    print("| model | tokens | bf16 | " + arguments.precision + " | rise | same likeliest token |")
    print("|---|---|---|---|---|---|")
    for path in arguments.models:
        encode = load(path, cache_folder=arguments.cache, precision="int8").tokenizer.encode
        texts = pieces(arguments.prompts, encode, arguments.tokens)
        ours, theirs = (measured(path, form, texts) for form in (arguments.precision, "bf16"))
        count = sum(len(ids) - 1 for ids in texts)
        low, high = (math.exp(sum(loss for loss, _ in r) / count) for r in (theirs, ours))
        same = sum(int((a[1] == b[1]).sum()) for a, b in zip(ours, theirs, strict=True)) / count
        print(
            f"| {path.name} | {count} | {low:.3f} | {high:.3f} | {100 * (high / low - 1):+.2f} % "
            f"| {100 * same:.2f} % |",
            flush=True,
        )


if __name__ == "__main__":
    main()
