"""What a bench is to measure, and how to tell one plan from another."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from engine.api import Precision, Sampling, Verification
from engine.bench.prompts import Conversation
from engine.devices import pick


@dataclass(frozen=True)
class Plan:
    """What to measure: a row for each precision, each draft and each of its lengths.

    `kinds` are those of the prompts, in their order, or empty. `drafts`: names of
    `drafters.BUILT_IN`, "auto", "mtp" or paths; plain decoding is always measured. `auto_draft` is
    the model that "auto" holds. Of `precisions` None is what the engine takes for the target;
    `draft_precision` None is the target's in that row. Of `draft_lengths` None is automatic.
    """

    model: Path
    cache_folder: Path
    drafts: Sequence[str | Path]
    prompts: Sequence[Conversation]
    max_tokens: int
    kinds: Sequence[str] = ()
    precisions: Sequence[Precision | None] = (None,)
    draft_precision: Precision | None = None
    draft_lengths: Sequence[int | None] = (None,)
    repeat: int = 1
    device: str = "auto"
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=0.0, seed=0))
    verification: Verification = "coupled"
    against_transformers: bool = False
    auto_draft: Path | None = None


def identity(plan: Plan) -> dict[str, Any]:
    """All that the runs of a plan depend on, as plain data for a JSON file.

    Runs of two plans may be put together only where these agree.
    """
    said = {
        "model": _files(plan.model),
        "drafts": [_files(d) if isinstance(d, Path) else d for d in plan.drafts],
        "precisions": list(plan.precisions),
        "draft_precision": plan.draft_precision,
        "draft_lengths": list(plan.draft_lengths),
        "prompts": hashlib.sha256(json.dumps(plan.prompts).encode()).hexdigest(),
        "max_tokens": plan.max_tokens,
        "repeat": plan.repeat,
        "device": pick(plan.device),
        "threads": torch.get_num_threads(),
        "sampling": asdict(plan.sampling),
        "verification": plan.verification,
        "against_transformers": plan.against_transformers,
        "versions": {name: metadata.version(name) for name in ("torch", "transformers")},
    }
    if plan.auto_draft is not None:
        said["auto_draft"] = _files(plan.auto_draft)
    plain: dict[str, Any] = json.loads(json.dumps(said))
    return plain


def _files(path: Path) -> dict[str, Any]:
    """A model as its files are now, without reading them: bytes and time of the last change."""
    files = [f.stat() for f in path.iterdir() if f.is_file()] if path.is_dir() else [path.stat()]
    return {
        "path": str(path.resolve()),
        "bytes": sum(f.st_size for f in files),
        "modified": max((f.st_mtime_ns for f in files), default=0),
    }
