"""The parameters of the classes that vLLM builds for a drafter."""

from __future__ import annotations

from dataclasses import replace

from eyas.engines.decoder import Block, LayerTraits, decoder_layer, feed_forward, layer_norms
from eyas.engines.latent import latent_attention
from eyas.engines.parameter import Parameter, norm, vocabulary, whole
from eyas.engines.vllm.architecture import DraftClass
from eyas.engines.vllm.drafter import Drafter
from eyas.spec import Initialisation, LaterNorm, Mla

MAP = "draft_id_to_target_id"
EMBEDDING = "model.embed_tokens.weight"
HEAD = "lm_head.weight"


def parameters_of(drafter: Drafter) -> list[Parameter]:
    """Every parameter of an EAGLE-3 class, in the order of the model."""
    sizes = drafter.sizes
    hidden = sizes.hidden_size.value
    found: list[Parameter] = []
    if drafter.maps_ids:
        shape = (sizes.draft_vocab_size.value,)
        found.append(whole(MAP, shape, "d2t", initialisation=Initialisation.ZEROS))
    found.append(vocabulary(EMBEDDING, sizes.vocab_size.value, hidden, "embed_tokens.weight"))
    for index in range(sizes.num_layers.value):
        found.extend(_layer(drafter, index))
    found.extend(_fusion(drafter))
    found.append(norm("model.norm.weight", hidden, "norm.weight"))
    found.append(vocabulary(HEAD, sizes.draft_vocab_size.value, hidden, "lm_head.weight"))
    return found


def _layer(drafter: Drafter, index: int) -> list[Parameter]:
    prefix = f"model.layers.{index}"
    if drafter.latent is not None:
        return _latent_layer(drafter, drafter.latent, prefix, index)
    return decoder_layer(prefix, index, drafter.sizes, _traits(drafter))


def _traits(drafter: Drafter) -> LayerTraits:
    return LayerTraits(
        qkv_bias=drafter.qkv_bias.value,
        out_bias=Initialisation.MEMORY if drafter.out_bias else None,
        mlp_bias=drafter.mlp_bias,
        used_norm=LaterNorm.INPUT_LAYERNORM,
        zero_pads=False,
        qk_norm=drafter.built in (DraftClass.QWEN3, DraftClass.DFLASH),
    )


def _latent_layer(drafter: Drafter, latent: Mla, prefix: str, index: int) -> list[Parameter]:
    hidden = drafter.sizes.hidden_size.value
    block = Block(prefix=prefix, role=f"layers.{index}", pads=False)
    width = hidden if index else 2 * hidden
    return [
        *latent_attention(block, "fused_qkv_a_proj", latent, hidden, width),
        *feed_forward(block, hidden, drafter.sizes.intermediate_size.value, bias=False),
        *layer_norms(block, hidden, LaterNorm.INPUT_LAYERNORM if index else None),
    ]


def _fusion(drafter: Drafter) -> list[Parameter]:
    """The norms before fc, and fc."""
    if not drafter.has_fc.value:
        return []
    width, count = drafter.sizes.target_hidden_size.value, drafter.count.value
    found = []
    if drafter.input_norm.value:
        found.append(norm("model.input_norm.weight", count * width, "input_norm.weight"))
    if drafter.fc_norm.value:
        names = [f"fc_norm.{i}.weight" for i in range(count)]
        found.extend(norm(f"model.{name}", width, name) for name in names)
    shape = (drafter.sizes.hidden_size.value, count * width)
    return [*found, whole("model.fc.weight", shape, "fc.weight")]


def eagle1_parameters_of(drafter: Drafter) -> list[Parameter]:
    """Every parameter of the EAGLE-1 class, whose head is the target's and is no parameter."""
    sizes = drafter.sizes
    hidden = sizes.hidden_size.value
    found = [vocabulary(EMBEDDING, sizes.vocab_size.value, hidden, "embed_tokens.weight")]
    for index in range(sizes.num_layers.value):
        # The first layer has no norm before its attention.
        dropped = "" if index else "model.layers.0.input_layernorm.weight"
        found += [p for p in _plain_layer(drafter, index) if p.name != dropped]
    return [*found, whole("model.fc.weight", (hidden, 2 * hidden), "fc.weight")]


def dflash_parameters_of(drafter: Drafter) -> list[Parameter]:
    """Every parameter of the DFlash class, in the order of the model."""
    sizes = drafter.sizes
    hidden = sizes.hidden_size.value
    found = []
    if drafter.maps_ids:
        shape = (sizes.draft_vocab_size.value,)
        found.append(whole(MAP, shape, "d2t", initialisation=Initialisation.ZEROS))
    mask = whole("model.mask_embedding", (hidden,), None, initialisation=Initialisation.ZEROS)
    found += [vocabulary(EMBEDDING, sizes.vocab_size.value, hidden, "embed_tokens.weight"), mask]
    for index in range(sizes.num_layers.value):
        found += _plain_layer(drafter, index)
    width = drafter.count.value * sizes.target_hidden_size.value
    return [
        *found,
        whole("model.fc.weight", (hidden, width), "fc.weight"),
        norm("model.hidden_norm.weight", hidden, "hidden_norm.weight"),
        norm("model.norm.weight", hidden, "norm.weight"),
        vocabulary(HEAD, sizes.draft_vocab_size.value, hidden, "lm_head.weight"),
    ]


def _plain_layer(drafter: Drafter, index: int) -> list[Parameter]:
    """A decoder layer whose attention takes one width, whatever its place."""
    prefix, hidden = f"model.layers.{index}", drafter.sizes.hidden_size.value
    return [
        replace(parameter, width=(hidden,)) if "qkv_proj.weight" in parameter.name else parameter
        for parameter in decoder_layer(prefix, index, drafter.sizes, _traits(drafter))
        if parameter.name != f"{prefix}.hidden_norm.weight"
    ]
