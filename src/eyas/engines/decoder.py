"""The parameters of a Llama decoder layer of a drafter, as both engines build them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eyas.engines.parameter import Fit, Parameter, Part, norm, whole
from eyas.engines.sizes import Sizes
from eyas.spec import Initialisation, LaterNorm


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTraits:
    """Where the engines differ in the decoder layer.

    `used_norm` is the norm that runs before attention in the second layer and later ones.
    `zero_pads` says whether short gate, up, o and down tensors are completed with zeros.
    """

    qkv_bias: bool
    out_bias: Initialisation | None
    mlp_bias: bool
    used_norm: LaterNorm
    zero_pads: bool
    qk_norm: bool = False


def decoder_layer(prefix: str, index: int, sizes: Sizes, traits: LayerTraits) -> list[Parameter]:
    """The parameters of layer `index`, named from `prefix` (``model.layers.0``)."""
    hidden, inner = sizes.hidden_size.value, sizes.intermediate_size.value
    block = Block(prefix=prefix, role=f"layers.{index}", pads=traits.zero_pads)
    heads = sizes.num_heads.value * sizes.head_dim.value
    kv_heads = sizes.num_kv_heads.value * sizes.head_dim.value
    qkv = {"q": heads, "k": kv_heads, "v": kv_heads}
    attention_input = 2 * hidden if index == 0 else hidden
    parameters = [
        block.fused("self_attn.qkv_proj", qkv, attention_input, pads=False),
        block.linear("self_attn.o_proj", hidden, heads),
    ]
    if traits.qkv_bias:
        parameters.append(block.fused("self_attn.qkv_proj", qkv, None, pads=False))
    if traits.out_bias is not None:
        parameters.append(block.bias("self_attn.o_proj", hidden, traits.out_bias))
    if traits.qk_norm:
        size = sizes.head_dim.value
        parameters += [block.gain(f"self_attn.{key}_norm", size) for key in ("q", "k")]
    parameters += feed_forward(block, hidden, inner, bias=traits.mlp_bias)
    return parameters + layer_norms(block, hidden, traits.used_norm if index else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Makes the parameters of one decoder layer: what the engine and the drafter call it.

    Without `role` the layer is no drafter's. `pads` says whether short tensors of its linear layers
    are completed with zeros.
    """

    prefix: str
    role: str | None
    pads: bool

    def fused(
        self,
        name: str,
        parts: dict[str, int],
        width: int | None,
        *,
        pads: bool | None = None,
        holds: Initialisation = Initialisation.MEMORY,
    ) -> Parameter:
        """A linear layer (its bias where `width` is None) of which each part is a tensor."""
        kind = "bias" if width is None else "weight"
        inside = name.partition(".")[0]
        return Parameter(
            name=f"{self.prefix}.{name}.{kind}",
            parts=tuple(
                Part(
                    rows=rows,
                    key=key,
                    role=self._role(f"{inside}.{_PROJECTIONS.get(key, f'{key}_proj')}.{kind}"),
                    pads=self.pads if pads is None else pads,
                )
                for key, rows in parts.items()
            ),
            width=() if width is None else (width,),
            fit=Fit.ROWS,
            initialisation=holds,
        )

    def linear(self, name: str, rows: int, columns: int, fit: Fit = Fit.COLUMNS) -> Parameter:
        """A linear layer that one tensor fills; one that is split over its rows never pads."""
        full, meaning = f"{self.prefix}.{name}.weight", self._role(f"{name}.weight")
        pads = self.pads and fit is Fit.COLUMNS
        return whole(full, (rows, columns), meaning, fit=fit, pads=pads)

    def bias(self, name: str, rows: int, initialisation: Initialisation) -> Parameter:
        """The bias of a linear layer."""
        full, meaning = f"{self.prefix}.{name}.bias", self._role(f"{name}.bias")
        return whole(full, (rows,), meaning, initialisation=initialisation)

    def gain(self, name: str, size: int, *, used: bool = True) -> Parameter:
        """A norm; one that the forward never calls has no role."""
        role = self._role(f"{name}.weight") if used else None
        return norm(f"{self.prefix}.{name}.weight", size, role)

    def _role(self, name: str) -> str | None:
        return None if self.role is None else f"{self.role}.{name}"


_PROJECTIONS = {"kv_a": "kv_a_proj_with_mqa"}


def feed_forward(block: Block, hidden: int, inner: int, *, bias: bool) -> list[Parameter]:
    """The gated feed-forward part of a layer."""
    gate_up = {"gate": inner, "up": inner}
    parameters = [
        block.fused("mlp.gate_up_proj", gate_up, hidden),
        block.linear("mlp.down_proj", hidden, inner),
    ]
    if bias:
        parameters.append(block.fused("mlp.gate_up_proj", gate_up, None, pads=False))
        parameters.append(block.bias("mlp.down_proj", hidden, Initialisation.MEMORY))
    return parameters


def layer_norms(block: Block, hidden: int, only: LaterNorm | None) -> list[Parameter]:
    """The norms of a layer; of the two before attention a later layer calls `only` one."""
    names = (LaterNorm.INPUT_LAYERNORM, LaterNorm.HIDDEN_NORM)
    before = [block.gain(name, hidden, used=only in (None, name)) for name in names]
    return [*before, block.gain("post_attention_layernorm", hidden)]


STACKED = {
    ".q_proj": (".qkv_proj", "q"),
    ".k_proj": (".qkv_proj", "k"),
    ".v_proj": (".qkv_proj", "v"),
    ".gate_proj": (".gate_up_proj", "gate"),
    ".up_proj": (".gate_up_proj", "up"),
}


def fused_name(
    name: str, stacked: Mapping[str, tuple[str, str]] = STACKED
) -> tuple[str, str | None]:
    """The fused parameter that `name` is a part of, and which part; itself and None otherwise."""
    for part, (fused, key) in stacked.items():
        if part in name:
            return name.replace(part, fused), key
    return name, None
