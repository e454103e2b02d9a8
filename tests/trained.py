"""A tiny target that has learned a rule, drafts that have learned from it, in seconds; and how
often they are right."""

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F

from engine.controller import FixedLength
from engine.decode import decode
from engine.heads.opening import open_head
from engine.model import LanguageModel
from engine.sampling import Policy
from tests.assistants import random_network
from tests.heads import (
    BLOCK,
    MASK,
    MTP,
    PLACES,
    changed,
    dflash_reference,
    dflash_tensors,
    info_of,
    joined,
    mtp_tensors,
    reference,
    tensors,
)
from tests.tiny import SHARPEN, language_model, plain, policy

Weights = dict[str, torch.Tensor]

# What the target writes: each token follows from the two before it, by a table.
USED = 16
FIRST = 40


def rule() -> torch.Tensor:
    """The token that follows a and then b, [a, b], counted from FIRST on."""
    return torch.randint(0, USED, (USED, USED), generator=torch.Generator().manual_seed(5))


def learn(
    parameters: Iterable[torch.Tensor], steps: int, loss: Callable[[int], torch.Tensor]
) -> None:
    """Bring down what `loss` gives for each step."""
    optimiser = torch.optim.AdamW(parameters, lr=3e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 1e-2, total_steps=steps)
    for step in range(steps):
        found = loss(step)
        optimiser.zero_grad()
        found.backward()
        optimiser.step()
        schedule.step()


def error(logits: torch.Tensor, said: torch.Tensor) -> torch.Tensor:
    """Of logits [.., tokens] where `said` is right; -1: no token can be."""
    return F.cross_entropy(logits.flatten(0, -2), said.flatten(), ignore_index=-1)


def taught(model: LanguageModel, steps: int = 200) -> LanguageModel:
    """`model`, having learned the rule, so that its states carry what it will say."""
    network, table = model.network, rule()
    generator = torch.Generator().manual_seed(0)
    network.train().requires_grad_(True)

    def loss(_: int) -> torch.Tensor:
        texts = torch.randint(0, USED, (32, 24), generator=generator)
        wanted = table[texts[:, :-1], texts[:, 1:]] + FIRST
        return error(network(texts + FIRST).logits[:, 1:], wanted)

    learn(network.parameters(), steps, loss)
    network.eval().requires_grad_(False)
    return model


def trained_target() -> LanguageModel:
    """A tiny model that has learned the rule."""
    model = language_model()
    with torch.no_grad():
        model.network.get_output_embeddings().weight /= SHARPEN
    return taught(model)


def trained_head(
    target: LanguageModel, config: dict[str, Any], steps: int = 250, *, masks: bool = False
) -> Weights:
    """Weights of a head that has learned what `target` says; with `masks` one stands behind each
    text, and tells the token behind the next one."""
    weights = tensors(config)
    learned = [n for n, t in weights.items() if t.is_floating_point() and "embed" not in n]
    embedding = target.network.get_input_embeddings().weight.detach().clone()
    # what a mask is, its state alone tells
    embedding[MASK] = 0
    if "embed_tokens.weight" in weights:
        weights["embed_tokens.weight"] = embedding
    own = torch.full((262,), -1)
    for i in range(config["draft_vocab_size"]):
        own[i + int(weights["d2t"][i]) if "d2t" in weights else i] = i
    generator = torch.Generator().manual_seed(1)
    # where normed states go on, large ones, so that it shows if others do
    large = 3 if config.get("norm_before_residual") else 0.3
    for name in learned:
        scale = 1 if weights[name].dim() == 1 else large if name == "fc.weight" else 0.3
        if name.endswith("hidden_norm.weight"):
            # and others have little in common with them
            weights[name] *= torch.randn(weights[name].shape, generator=generator).sign()
        weights[name] = (weights[name] * scale).requires_grad_()
        if name.endswith("v_proj.weight") and not masks:
            # attention brings the token, so that the state has to go on by itself
            token = torch.arange(weights[name].shape[1]) < embedding.shape[1]
            weights[name].data *= token
            weights[name].register_hook(token.mul)
    places = (
        config.get("eagle_aux_hidden_state_layer_ids")
        or config["eagle_config"]["eagle_aux_hidden_state_layer_ids"]
    )

    def loss(step: int) -> torch.Tensor:
        length = 4 + step % 8 if masks else 24
        texts = torch.randint(0, USED, (768 // length, length), generator=generator)
        if masks:
            # by the rule, since nobody will have told it
            texts[:, -1] = rule()[texts[:, -3], texts[:, -2]]
        texts += FIRST
        with torch.no_grad():
            out = target.network(texts, output_hidden_states=True)
            states = torch.cat([out.hidden_states[i] for i in places], -1)
            said = own[out.logits.argmax(-1)]
        # the state of t with the token at t + 1 tells the token at t + 2
        x, embedded = joined(weights, config, states[:, :-1]), embedding[texts[:, 1:]]
        if masks:
            x[:, -1] = joined(weights, config, weights["mask_hidden"][0])
            embedded[:, -1] = embedding[MASK]
        logits = reference(weights, config, x, embedded)[0]
        found = error(logits, said[:, 1:])
        # one row of many is a mask
        return found + error(logits[:, -1], said[:, -1]) if masks else found

    learn([weights[name] for name in learned], steps, loss)
    return {name: tensor.detach().contiguous() for name, tensor in weights.items()}


def trained_mtp(target: LanguageModel, steps: int = 400) -> Weights:
    """Tensors of a head, named as Qwen's, that has learned what `target` says."""
    network: Any = target.network
    _, parts = mtp_tensors(network, "qwen")
    one, *rest = parts
    rest = [tensor.detach().clone().requires_grad_() for tensor in rest]
    layer, last = one.model.layers[0].requires_grad_(True), one.model.norm.requires_grad_(True)
    # without attention the state alone can tell what came before
    layer.self_attn.o_proj.weight.requires_grad_(False).zero_()
    generator = torch.Generator().manual_seed(1)

    def normed(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * weight

    def loss(_: int) -> torch.Tensor:
        texts = torch.randint(0, USED, (32, 24), generator=generator) + FIRST
        with torch.no_grad():
            out = network(texts, output_hidden_states=True)
            embedded = network.get_input_embeddings()(texts[:, 1:])
        both = [normed(embedded, rest[0]), normed(out.hidden_states[-1][:, :-1], rest[1])]
        x = torch.cat(both, -1) @ rest[2].T
        found = one.model(inputs_embeds=x, use_cache=False).last_hidden_state
        return error(network.get_output_embeddings()(found), out.logits.argmax(-1)[:, 1:])

    learn([*layer.parameters(), *last.parameters(), *rest], steps, loss)
    names = [f"{part}.weight" for part in (*MTP["qwen"][:3], MTP["qwen"][4])]
    found = dict(zip(names, (*rest, last.weight), strict=True))
    found |= {MTP["qwen"][3] + name: tensor for name, tensor in layer.state_dict().items()}
    return {name: tensor.detach().clone().contiguous() for name, tensor in found.items()}


def trained_dflash(target: LanguageModel, config: dict[str, Any], steps: int = 600) -> Weights:
    """Weights of a head whose first guess is what `target` says."""
    network: Any = target.network
    weights = {n: t.clone().requires_grad_() for n, t in dflash_tensors(config).items()}
    generator = torch.Generator().manual_seed(1)
    masks = torch.full((64, BLOCK - 1), MASK)

    def loss(step: int) -> torch.Tensor:
        length = 4 + step % 12
        texts = torch.randint(0, USED, (64, length), generator=generator) + FIRST
        with torch.no_grad():
            out = network(texts, output_hidden_states=True)
            states = torch.cat([out.hidden_states[i] for i in PLACES], -1)[:, :-1]
            embedded = network.get_input_embeddings()(torch.cat([texts[:, -1:], masks], 1))
        found = dflash_reference(weights, config, states, embedded)
        return error(network.get_output_embeddings()(found[:, 1]), out.logits[:, -1].argmax(-1))

    learn(weights.values(), steps, loss)
    return {name: tensor.detach().contiguous() for name, tensor in weights.items()}


def trained_assistant(
    target: LanguageModel, config: dict[str, Any], *, by: str, steps: int = 120
) -> Weights:
    """Tensors of a Gemma 4 assistant that has learned what `target` says, through the library's own
    layers: by its "states" alone, or by its "keys" and values alone."""
    network: Any = target.network
    assistant = random_network(config, 3).requires_grad_(True)
    assistant.lm_head.weight.data.copy_(network.get_output_embeddings().weight)
    join = assistant.pre_projection.weight
    if by == "keys":
        token = torch.arange(join.shape[1]) < join.shape[1] // 2
        join.data *= token
        join.register_hook(token.mul)
    else:
        for layer in assistant.model.layers:
            layer.self_attn.o_proj.weight.requires_grad_(False).zero_()
    generator = torch.Generator().manual_seed(1)
    places = torch.arange(24)
    # what the target held before it was fed the token of a row
    seen = (places < places[1:, None])[None, None]

    def loss(_: int) -> torch.Tensor:
        texts = torch.randint(0, USED, (32, 24), generator=generator) + FIRST
        with torch.no_grad():
            out = network(texts, output_hidden_states=True, return_shared_kv_states=True)
            embedded = network.get_input_embeddings()(texts[:, 1:])
        # the state of t with the token at t + 1 tells the token at t + 2
        both = torch.cat([embedded, out.hidden_states[-1][:, :-1]], -1)
        found = assistant.model(
            inputs_embeds=assistant.pre_projection(both),
            attention_mask={"full_attention": seen, "sliding_attention": seen},
            position_ids=places[None, 1:],
            shared_kv_states=out.shared_kv_states,
            use_cache=False,
            # or the library computes the last row alone
            output_hidden_states=True,
        )
        logits = assistant.lm_head(found.last_hidden_state)
        return error(logits, out.logits.argmax(-1)[:, 1:])

    learn([p for p in assistant.parameters() if p.requires_grad], steps, loss)
    return {name: tensor.detach() for name, tensor in assistant.state_dict().items()}


def late(kind: type[Any]) -> type[Any]:
    """Drafts as `kind` does, but takes for each state that of the position before."""

    class Late(kind):
        def hear(self, start: int, states: torch.Tensor) -> None:
            rows = {start + i: row for i, row in enumerate(states)}
            self.rows = {**getattr(self, "rows", {}), **rows}
            before = [self.rows.get(start + i - 1, states[0] * 0) for i in range(len(states))]
            super().hear(start, torch.stack(before))

    return Late


@functools.cache
def answered(target: LanguageModel, seed: int) -> tuple[list[int], Policy, list[int]]:
    """A prompt that follows no rule, how to choose, and what is answered without a draft."""
    generator = torch.Generator().manual_seed(seed)
    prompt = (torch.randint(0, USED, (12,), generator=generator) + FIRST).tolist()
    choose = policy(temperature=1.0, seed=seed, answer_start=len(prompt))
    return prompt, choose, plain(target, prompt, tokens=24, choose=choose)


def acceptance(target: LanguageModel, drafter: Any, length: int = 1) -> list[float]:
    """How often each guess of a round is right where those before it were; no token of the answer
    is changed."""
    judged, right = [0] * length, [0] * length
    for seed in range(6):
        prompt, choose, expected = answered(target, seed)
        target.tell(drafter)
        target.cache.empty()
        drafter.reset()
        text, limit = list(prompt), len(prompt) + 24
        for _, one in decode(target, drafter, FixedLength(length), text, choose, limit=limit):
            for place in range(one.drafted):
                judged[place] += one.accepted >= place
                right[place] += one.accepted > place
        target.tell()
        assert text[len(prompt) :] == expected
    return [found / max(1, asked) for found, asked in zip(right, judged, strict=True)]


def rates(
    folder: Path,
    target: LanguageModel,
    kind: Callable[..., Any],
    change: Callable[[Weights], Weights] = lambda weights: weights,
    length: int = 1,
    **config: Any,
) -> list[float]:
    """The same of the head in `folder`, drafting as `kind`, with a change to its weights or
    `config`."""
    path = changed(folder, change, **config)
    head = open_head(path, target, info_of(target), "fp32")
    return acceptance(target, kind(head, target.device), length)
