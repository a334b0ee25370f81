"""What an eagle3 GGUF can state of a drafter: its keys and its tensors' names.

Read in llama.cpp at 0c1e57098: src/models/eagle3.cpp (1-340) has the keys, the tensors and the
arithmetic, src/llama-model.cpp (1321-1470) the keys that all classes have.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from eyas.checkpoint.float32 import shortest
from eyas.checkpoint.gguf_rope import own_keys, stored_rope
from eyas.dialects.stating import require_eagle3, require_stored
from eyas.errors import ConversionError, TargetNeededError
from eyas.spec import (
    DefaultBoundaries,
    DraftSpec,
    Eagle3Spec,
    Fact,
    Feedback,
    Fused,
    Mha,
    Ownership,
    VocabMap,
)

PREFIX = "eagle3."
OUTER = {
    "fc.weight": "fc.weight",
    "input_norm.weight": "enc.output_norm.weight",
    "norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
    "embed_tokens.weight": "token_embd.weight",
    "d2t": "d2t",
}
INNER = {
    "input_layernorm": "attn_norm",
    "hidden_norm": "attn_norm_2",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_LEFT_OUT = "t2d"  # training's mask of the kept ids, which no engine reads
_NAMES = {
    **OUTER,
    **{f"layers.0.{role}.weight": f"blk.0.{name}.weight" for role, name in INNER.items()},
}
_FILE_TYPES = {"float32": 0, "float16": 1, "bfloat16": 32}  # llama_ftype (include/llama.h)


def write(
    spec: DraftSpec,
    roles_present: Collection[str],
    *,
    dtype: str | None = None,
    target_layers: int | None = None,
) -> tuple[dict[str, Any], dict[str, str]]:
    """The keys of a GGUF file for `spec`, and role → tensor name; t2d is left out.

    `target_layers`, the depth of the target, tells the default boundaries, which the format has no
    word for; `dtype` is torch's name of the weights' type. The tokenizer's keys come from the
    target (`checkpoint.gguf_tokenizer`), the tensors that no role has from `gguf_rows.made`. Raises
    ConversionError for a fact that llama.cpp's eagle3 does not compute.
    """
    spec = require_eagle3(spec, "gguf")
    _require_storable(spec, roles_present)
    attention, conditioning = _attention(spec), _conditioning(spec)
    strange = sorted(set(roles_present) - _NAMES.keys() - {_LEFT_OUT})
    if strange:
        raise ConversionError(f"llama.cpp's eagle3 has no tensor for {strange[0]}")
    positions = spec.max_position_embeddings.value
    if positions is None:
        raise ConversionError(
            "the drafter states no max_position_embeddings, and llama.cpp loads no file without"
            " context_length",
            hint="add max_position_embeddings to its config",
        )
    head_dim, rope = attention.head_dim.value, spec.rope.value
    stored = stored_rope(rope, head_dim=head_dim, max_positions=positions)
    own = {
        "context_length": positions,
        "embedding_length": spec.hidden_size.value,
        "block_count": 1,
        "feed_forward_length": spec.intermediate_size.value,
        "attention.head_count": attention.num_heads.value,
        "attention.head_count_kv": attention.num_kv_heads.value,
        "attention.key_length": head_dim,
        "attention.value_length": head_dim,
        "attention.layer_norm_rms_epsilon": _epsilon(spec.rms_norm_eps.value),
        "rope.dimension_count": head_dim,
        **stored.keys,
        "vocab_size": spec.vocab_size.value,
        "target_layers": _boundaries(conditioning, target_layers),
        "target_hidden_size": spec.target_hidden_size.value,
        "norm_before_residual": spec.norm_before_residual.value,
        "norm_before_fc": conditioning.input_norm.value,
    }
    keys: dict[str, Any] = {"general.architecture": "eagle3", "general.type": "model"}
    if dtype in _FILE_TYPES:
        keys["general.file_type"] = _FILE_TYPES[dtype]
    keys |= {PREFIX + key: value for key, value in own.items()} | own_keys(rope, stored)
    return keys, {role: _NAMES[role] for role in roles_present if role != _LEFT_OUT}


def _require_storable(spec: Eagle3Spec, roles_present: Collection[str]) -> None:
    # The format holds ids whatever the drafter's own files hold.
    form: Fact[VocabMap] = spec.vocab_map
    if form.value is VocabMap.ABSOLUTE:
        form = form.map(lambda _: VocabMap.OFFSETS)
    require_stored(replace(spec, vocab_map=form), roles_present, "gguf")
    if form.value is VocabMap.PREFIX:
        raise ConversionError(
            f"the drafter has {spec.draft_vocab_size.value} of the target's"
            f" {spec.vocab_size.value} tokens and no map of them, and llama.cpp's eagle3 takes a"
            " head without d2t for that of all tokens",
            hint="export the drafter again with its d2t",
        )
    if spec.head.value is Ownership.TIED:
        raise ConversionError("llama.cpp's eagle3 has no head that is the drafter's embedding")
    if spec.head.value is Ownership.TARGET and form.value is not VocabMap.IDENTITY:
        raise ConversionError(
            "llama.cpp takes the target's head with all its rows, and this drafter has d2t"
        )
    widths = spec.hidden_size.value, spec.target_hidden_size.value
    borrowed = [
        name
        for name, whose in (("embedding", spec.embedding), ("head", spec.head))
        if whose.value is Ownership.TARGET
    ]
    if borrowed and widths[0] != widths[1]:
        raise ConversionError(
            f"llama.cpp uses the target's {borrowed[0]} as it is, {widths[1]} wide, and this"
            f" drafter is {widths[0]} wide"
        )
    if spec.num_layers.value != 1:
        raise ConversionError(
            f"llama.cpp's eagle3 has one decoder layer, and this drafter {spec.num_layers.value}",
        )
    if spec.activation.value != "silu":
        raise ConversionError(
            f"llama.cpp's eagle3 computes silu, and this drafter {spec.activation.value}",
        )
    if spec.feedback.value is Feedback.POST_NORM:
        raise ConversionError(
            "llama.cpp's eagle3 feeds back the state before the final norm, and this drafter was"
            " trained on the one after it (norm_output)",
        )


def _attention(spec: Eagle3Spec) -> Mha:
    attention = spec.attention
    if not isinstance(attention, Mha):
        raise ConversionError(
            "llama.cpp's eagle3 has no latent attention (MLA), which this drafter has",
        )
    for fact, what in (
        (attention.bias, "bias on q, k and v"),
        (attention.qk_norm, "norms on q and k"),
    ):
        if fact.value:
            raise ConversionError(f"llama.cpp's eagle3 has no {what}, which this drafter has")
    return attention


def _conditioning(spec: Eagle3Spec) -> Fused:
    conditioning = spec.conditioning
    if not isinstance(conditioning, Fused):
        raise ConversionError(
            "llama.cpp's eagle3 always fuses three captured states with fc, and this drafter does"
            " not",
        )
    if conditioning.count.value != 3:
        raise ConversionError(
            f"llama.cpp's eagle3 captures three states, and this drafter"
            f" {conditioning.count.value}",
        )
    norms = "norm for each captured state before fc"
    lacking = ((conditioning.fc_norm, norms), (conditioning.bias, "bias on fc"))
    for fact, what in lacking:
        if fact.value:
            raise ConversionError(
                f"llama.cpp's eagle3 has no {what}, which this drafter has",
            )
    return conditioning


def _boundaries(conditioning: Fused, target_layers: int | None) -> list[int]:
    boundaries = conditioning.boundaries.value
    if not isinstance(boundaries, DefaultBoundaries):
        if len(boundaries) != 3:
            raise ConversionError(
                f"llama.cpp's eagle3 needs three layer ids, and this drafter has {len(boundaries)}",
            )
        return list(boundaries)
    if target_layers is None:
        raise TargetNeededError(
            "the drafter states no layer ids, and llama.cpp's eagle3 needs the three, which depend"
            " on the depth of the target",
            hint="name the target: --target MODEL",
        )
    return list(boundaries.of(target_layers))


def _epsilon(value: float) -> float:
    if shortest(value) != value:
        raise ConversionError(
            f"rms_norm_eps is {value!r}, which a GGUF file gives back as {shortest(value)!r}",
            hint=f"write {shortest(value)!r} into its config: float32 holds both alike",
        )
    return value
