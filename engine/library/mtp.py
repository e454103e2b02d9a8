"""The head that some models bring in their own files, for several tokens at once (MTP).

transformers leaves these tensors in the file. Knows how families name them (methods for drafting,
section 7), not what is in them.
"""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Mtp:
    """Names of a head's tensors: the norms of token and state, the matrix that joins them, the
    prefix of a decoder layer of the target's own kind, the last norm.

    `hidden_first`: the state comes before the token. `zeroed`: at position 0 there is no token.
    `unread`: tensors that are the target's own once more.
    """

    token_norm: str
    state_norm: str
    join: str
    layer: str
    last_norm: str
    hidden_first: bool = False
    zeroed: bool = False
    unread: tuple[str, ...] = ()

    @property
    def beside(self) -> frozenset[str]:
        """What lies under the layer's prefix, too, and is no part of the layer."""
        return frozenset({self.token_norm, self.state_norm, self.join, self.last_norm})


def find(names: Iterable[str], layers: int) -> Mtp | None:
    """The head among the tensors `names` of a model of `layers` layers; None: it has none."""
    here = frozenset(names)
    return next((kind for kind in _kinds(layers) if kind.join in here), None)


def _kinds(layers: int) -> Iterable[Mtp]:
    # Qwen3-Next, Qwen3.5 and 3.6
    yield Mtp(
        "mtp.pre_fc_norm_embedding.weight",
        "mtp.pre_fc_norm_hidden.weight",
        "mtp.fc.weight",
        "mtp.layers.0.",
        "mtp.norm.weight",
    )
    # DeepSeek-V3, GLM-4.5 to 4.7: one more layer than the model says it has
    layer = f"model.layers.{layers}."
    yield Mtp(
        f"{layer}enorm.weight",
        f"{layer}hnorm.weight",
        f"{layer}eh_proj.weight",
        layer,
        f"{layer}shared_head.norm.weight",
        zeroed=True,
        unread=(f"{layer}embed_tokens.weight", f"{layer}shared_head.head.weight"),
    )
    # MiMo-7B
    layer = "model.mtp_layers.0."
    yield Mtp(
        f"{layer}token_layernorm.weight",
        f"{layer}hidden_layernorm.weight",
        f"{layer}input_proj.weight",
        layer,
        f"{layer}final_layernorm.weight",
        hidden_first=True,
        zeroed=True,
    )
