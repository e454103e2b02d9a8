"""Logits to probabilities to a token. Greedy is a one-hot distribution, made here and only here.

Knows penalties, temperature and truncation and the noise that makes a choice repeatable. Knows
neither models nor drafts' fate; `verify` decides that.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray

from engine.api import NEUTRAL, RANGES, Sampling, Verification
from engine.errors import EngineError

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]

# Below this temperature float64 probabilities are one-hot anyway, up to exact ties.
GREEDY_BELOW = 1e-4
SUREST = 40.0  # the largest logit of a probability that is told apart from 1


def resolve(wanted: Sampling, folder: Sampling) -> Sampling:
    """`wanted` without a None: the folder's defaults, then the neutral ones.

    A temperature of 0 asked for by the user is plain argmax, so none of the folder's sampling
    defaults apply to it. Raises EngineError for a value out of its range.
    """
    greedy = wanted.temperature is not None and wanted.temperature < GREEDY_BELOW
    settings = (wanted if greedy else wanted.over(folder)).over(NEUTRAL)
    for name, (least, most) in RANGES.items():
        value = getattr(settings, name)
        if not least <= value <= most:
            raise EngineError(
                "bad_setting",
                "{name} must lie between {least:g} and {most:g}; it is {value:g}.",
                name=name.replace("_", " "),
                least=least,
                most=most,
                value=value,
            )
    return settings


@dataclass(frozen=True)
class Distribution:
    """A distribution over token ids: only those of probability above 0, most probable first."""

    ids: Ids
    probs: Floats

    def of(self, token: int) -> float:
        """The probability of `token`."""
        return float(self.probs[self.ids == token].sum())

    def dense(self, size: int) -> Floats:
        """Probabilities of all ids, [size]."""
        out = np.zeros(size)
        out[self.ids] = self.probs
        return out


def one_hot(token: int) -> Distribution:
    """The distribution of a token that was not drawn."""
    return Distribution(np.array([token], dtype=np.int64), np.ones(1))


class Stream:
    """Names of independent noise at one position."""

    TOKEN = 0
    ACCEPT = 1
    RESIDUAL = 2


class Noise:
    """Noise without a state: a function of seed, absolute position, stream and token id.

    So a token's noise is the same whoever asks for it, target or draft, in whatever round
    (coupled noise, methods for drafting section 3). The hash is SplitMix64's finaliser (Steele,
    Lea, Flood 2014), applied to position and id in turn.
    """

    def __init__(self, seed: int) -> None:
        self._key = _mix_int(seed & _MASK)

    def gumbel(self, position: int, ids: Ids, stream: int = Stream.TOKEN) -> Floats:
        """Standard Gumbel noise, one number per id."""
        key = np.uint64(self._at(position, stream))
        hashed = _mix(_mix(ids.astype(np.uint64) * _GOLDEN + key) + _GOLDEN)
        uniform = ((hashed >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
        noise: Floats = -np.log(-np.log(uniform))
        return noise

    def uniform(self, position: int, stream: int = Stream.ACCEPT) -> float:
        """A number in (0, 1)."""
        return ((_mix_int(self._at(position, stream)) >> 11) + 0.5) * 2.0**-53

    def _at(self, position: int, stream: int) -> int:
        return _mix_int((self._key + (position * 4 + stream + 1) * int(_GOLDEN)) & _MASK)


_MASK = (1 << 64) - 1
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _mix_int(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


def choose(p: Distribution, noise: Noise, position: int, stream: int = Stream.TOKEN) -> int:
    """A token drawn from `p`: argmax(log p + Gumbel noise); the lowest index wins a tie."""
    if len(p.ids) == 1:
        return int(p.ids[0])
    return int(p.ids[np.argmax(np.log(p.probs) + noise.gumbel(position, p.ids, stream))])


@dataclass(frozen=True)
class Policy:
    """How the tokens of one answer are chosen: settings without a None, and the noise.

    `answer_start` is the position of the answer's first token: presence and frequency penalties
    look no further back. `ends` are the ids that end the answer: nothing is drafted behind one.
    `pace` says how long a draft may become, from how sure the drafter is of a token that it has
    not drawn yet; None: as long as it was asked for.
    """

    sampling: Sampling
    noise: Noise
    answer_start: int = 0
    verification: Verification = "coupled"
    ends: frozenset[int] = frozenset()
    pace: Callable[[float], int] | None = None

    def distributions(
        self, logits: torch.Tensor, tokens: Sequence[int], draft: Sequence[int] = ()
    ) -> list[Distribution]:
        """One distribution per row of `logits` [rows, vocab]; row i follows tokens + draft[:i].

        Order: penalties, bias, temperature, top-k, top-p, min-p. Raises EngineError when a row
        holds no number to choose by.
        """
        rows = logits.float()
        if self._penalises:
            rows = self._penalised(rows, tokens, draft)
        if not bool(torch.isfinite(rows.amax(dim=-1)).all()):
            raise EngineError(
                "not_a_number",
                "The model computed no valid probabilities (not a number). Its weights may be "
                "damaged, or the precision too low for it.",
            )
        if self._temperature < GREEDY_BELOW:
            return [one_hot(token) for token in rows.argmax(dim=-1).tolist()]
        kept = _survivors(rows, self.sampling.top_k or 0)
        return [self._truncated(ids, values) for ids, values in kept]

    def paced(self, limit: int, logits: torch.Tensor) -> int:
        """`limit`, or how long a draft may become whose next token is drawn from `logits` [vocab]:
        by the logit of their largest probability, at the temperature, or at 1 where that is 0.

        The drawn token is not looked at (methods for drafting, section 11).
        """
        if self.pace is None:
            return limit
        warm = self._temperature if self._temperature >= GREEDY_BELOW else 1.0
        z = logits.float() / warm
        first = int(z.argmax())
        others = z - z[first]
        others[first] = -torch.inf
        sure = -float(torch.logsumexp(others, dim=-1))
        return min(limit, self.pace(max(-SUREST, min(SUREST, sure))))

    @property
    def _temperature(self) -> float:
        return self.sampling.temperature or 0.0

    @cached_property
    def _penalises(self) -> bool:
        s = self.sampling
        neutral = s.repetition_penalty in (None, 1.0)
        return not neutral or bool(s.presence_penalty or s.frequency_penalty or s.logit_bias)

    def _penalised(
        self, rows: torch.Tensor, tokens: Sequence[int], draft: Sequence[int]
    ) -> torch.Tensor:
        """Repetition divides positive logits and multiplies negative ones (Keskar et al. 2019,
        CTRL, 4.1); presence and frequency are subtracted as OpenAI's API defines them.
        """
        s, vocab = self.sampling, rows.shape[-1]
        if s.repetition_penalty not in (None, 1.0):
            seen = _counts(tokens, draft, vocab).to(rows) > 0
            lower = torch.where(rows > 0, rows / s.repetition_penalty, rows * s.repetition_penalty)
            rows = torch.where(seen, lower, rows)
        if s.presence_penalty or s.frequency_penalty:
            counts = _counts(tokens[self.answer_start :], draft, vocab).to(rows)
            rows = rows - s.presence_penalty * (counts > 0) - s.frequency_penalty * counts
        bias = {t: b for t, b in s.logit_bias.items() if 0 <= t < vocab}
        if bias:
            rows = rows.clone()
            rows[:, list(bias)] += torch.tensor(list(bias.values())).to(rows)
        return rows

    def _truncated(self, ids: Ids, logits: Floats) -> Distribution:
        s = self.sampling
        order = np.lexsort((ids, -logits))
        ids, logits = ids[order], logits[order]
        probs = _softmax(logits / self._temperature)
        if s.top_p is not None and s.top_p < 1.0:
            # the smallest set that reaches top_p: all whose predecessors do not
            keep = int(np.searchsorted(np.cumsum(probs), s.top_p) + 1)
            ids, probs = ids[:keep], probs[:keep]
        if s.min_p:
            keep = int((probs >= s.min_p * probs[0]).sum())
            ids, probs = ids[:keep], probs[:keep]
        alive = probs > 0
        ids, probs = ids[alive], probs[alive]
        return Distribution(ids, probs / probs.sum())


def _counts(tokens: Sequence[int], draft: Sequence[int], vocab: int) -> torch.Tensor:
    """How often each id stands before row i, in `tokens` + draft[:i]; [len(draft) + 1, vocab]."""
    known = np.array([t for t in tokens if t < vocab], dtype=np.int64)
    counts = np.tile(np.bincount(known, minlength=vocab), (len(draft) + 1, 1))
    for i, token in enumerate(draft):
        counts[i + 1 :, token] += 1
    return torch.from_numpy(counts)


def _survivors(rows: torch.Tensor, top_k: int) -> list[tuple[Ids, Floats]]:
    """Ids and logits of each row's `top_k` largest (0: of all); equals of the last one stay too."""
    if 0 < top_k < rows.shape[-1]:
        least = torch.topk(rows, top_k, dim=-1).values[:, -1:]
        kept = rows >= least
    else:
        kept = torch.isfinite(rows)
    found = []
    for row, mask in zip(rows, kept, strict=True):
        ids = mask.nonzero().squeeze(-1)
        found.append((ids.cpu().numpy(), row[ids].double().cpu().numpy()))
    return found


def _softmax(x: Floats) -> Floats:
    e = np.exp(x - x.max())
    p: Floats = e / e.sum()
    return p
