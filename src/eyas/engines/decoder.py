"""The parameters of a Llama decoder layer of a drafter, as both engines build them."""

from __future__ import annotations

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


def decoder_layer(prefix: str, index: int, sizes: Sizes, traits: LayerTraits) -> list[Parameter]:
    """The parameters of layer `index`, named from `prefix` (``model.layers.0``)."""
    hidden, inner = sizes.hidden_size.value, sizes.intermediate_size.value
    heads = sizes.num_heads.value * sizes.head_dim.value
    kv_heads = sizes.num_kv_heads.value * sizes.head_dim.value
    attention_input = 2 * hidden if index == 0 else hidden
    role = f"layers.{index}"
    pads = traits.zero_pads

    def fused(name: str, parts: dict[str, int], width: int | None, pads: bool) -> Parameter:
        kind = "bias" if width is None else "weight"
        block, _, fused_name = name.partition(".")
        return Parameter(
            name=f"{prefix}.{block}.{fused_name}.{kind}",
            parts=tuple(
                Part(rows=rows, key=key, role=f"{role}.{block}.{key}_proj.{kind}", pads=pads)
                for key, rows in parts.items()
            ),
            width=() if width is None else (width,),
            fit=Fit.ROWS,
            initialisation=Initialisation.MEMORY,
        )

    def linear(name: str, rows: int, columns: int) -> Parameter:
        full, meaning = f"{prefix}.{name}.weight", f"{role}.{name}.weight"
        return whole(full, (rows, columns), meaning, fit=Fit.COLUMNS, pads=pads)

    def bias(name: str, rows: int, initialisation: Initialisation) -> Parameter:
        full, meaning = f"{prefix}.{name}.bias", f"{role}.{name}.bias"
        return whole(full, (rows,), meaning, initialisation=initialisation)

    qkv = {"q": heads, "k": kv_heads, "v": kv_heads}
    gate_up = {"gate": inner, "up": inner}
    parameters = [
        fused("self_attn.qkv_proj", qkv, attention_input, pads=False),
        linear("self_attn.o_proj", hidden, heads),
        fused("mlp.gate_up_proj", gate_up, hidden, pads=pads),
        linear("mlp.down_proj", hidden, inner),
    ]
    if traits.qkv_bias:
        parameters.append(fused("self_attn.qkv_proj", qkv, None, pads=False))
    if traits.out_bias is not None:
        parameters.append(bias("self_attn.o_proj", hidden, traits.out_bias))
    if traits.mlp_bias:
        parameters.append(fused("mlp.gate_up_proj", gate_up, None, pads=False))
        parameters.append(bias("mlp.down_proj", hidden, Initialisation.MEMORY))
    for name in ("input_layernorm", "hidden_norm", "post_attention_layernorm"):
        # Later layers hold both norms before attention, and their forward calls only one.
        used = index == 0 or name in (traits.used_norm, "post_attention_layernorm")
        parameters.append(
            norm(f"{prefix}.{name}.weight", hidden, f"{role}.{name}.weight" if used else None)
        )
    return parameters


STACKED = {
    ".q_proj": (".qkv_proj", "q"),
    ".k_proj": (".qkv_proj", "k"),
    ".v_proj": (".qkv_proj", "v"),
    ".gate_proj": (".gate_up_proj", "gate"),
    ".up_proj": (".gate_up_proj", "up"),
}


def fused_name(name: str) -> tuple[str, str | None]:
    """The fused parameter that `name` is a part of, and which part; itself and None otherwise."""
    for part, (fused, key) in STACKED.items():
        if part in name:
            return name.replace(part, fused), key
    return name, None
