"""Tiny language models of random weights, built in memory; and what tests ask of a round."""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM

from engine.api import Sampling
from engine.controller import Controller, FixedLength
from engine.decode import decode
from engine.drafters.auto import Auto
from engine.drafters.base import Drafter, NoDrafter
from engine.errors import Reason
from engine.model import LanguageModel
from engine.sampling import Noise, Policy, resolve
from engine.session import Session
from engine.verify import Draft
from tests.folders import tiny_config

SHARPEN = 50.0


def language_model(*, layers: int | None = None, seed: int = 1, **changes: object) -> LanguageModel:
    """F-TINY of the cases; `layers` keeps only the first ones of the same weights."""
    config = AutoConfig.for_model(**tiny_config(**changes))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    with torch.no_grad():
        network.get_output_embeddings().weight *= SHARPEN
    if layers is not None:
        network.model.layers = network.model.layers[:layers]
        network.config.num_hidden_layers = layers
        if getattr(network.config, "layer_types", None):
            network.config.layer_types = network.config.layer_types[:layers]
    return LanguageModel(network, config.max_position_embeddings)


class Adversary:
    """Proposes rubbish: ids that are wrong, unknown to the target, or negative."""

    name = "rubbish"
    default_length = 4
    pause: Reason | None = None

    def prefill(self, tokens: Sequence[int]) -> None:
        pass

    def propose(self, tokens: Sequence[int], limit: int, policy: Policy) -> Draft:
        rubbish = (257, 100_000, -1, 0, 0, 0, 0)
        start = len(tokens) % 3
        return Draft(rubbish[start : start + limit])

    def settle(self, length: int) -> None:
        pass

    def reset(self) -> None:
        pass


def policy(
    *,
    temperature: float = 0.0,
    seed: int = 7,
    answer_start: int = 0,
    verification: str = "coupled",
    **settings: object,
) -> Policy:
    """How to choose, top-k 64 as where the folder says nothing."""
    wanted = Sampling(temperature=temperature, **settings)  # type: ignore[arg-type]
    return Policy(resolve(wanted, Sampling()), Noise(seed), answer_start, verification)


def run(
    target: LanguageModel,
    drafter: Drafter,
    prompt: Sequence[int],
    *,
    tokens: int,
    draft_length: int | Controller,
    choose: Policy,
) -> tuple[list[int], int, int]:
    """The new ids, and how many tokens were drafted and accepted for them."""
    target.cache.empty()
    drafter.reset()
    text = list(prompt)
    if isinstance(drafter, Auto) and isinstance(draft_length, int):
        drafter.begin(draft_length)
        draft_length = drafter
    if isinstance(draft_length, int):
        draft_length = FixedLength(draft_length)
    rounds = list(decode(target, drafter, draft_length, text, choose, limit=len(prompt) + tokens))
    drafted = sum(stats.drafted for _, stats in rounds)
    accepted = sum(stats.accepted for _, stats in rounds)
    return text[len(prompt) :], drafted, accepted


def plain(
    target: LanguageModel, prompt: Sequence[int], *, tokens: int, choose: Policy
) -> list[int]:
    """The ids without a draft."""
    return run(target, NoDrafter(), prompt, tokens=tokens, draft_length=0, choose=choose)[0]


def only_drafter(session: Session) -> Any:
    """What drafts in a session, where it is one alone."""
    (careful,) = session._drafter._drafters.values()
    return careful._drafter
