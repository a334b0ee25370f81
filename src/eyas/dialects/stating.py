"""What both EAGLE-3 dialects need before they write, and the keys that both write alike."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from eyas.dialects.names import FUSED
from eyas.dialects.rope import rope_keys
from eyas.errors import ConversionError
from eyas.spec import DraftSpec, Eagle3Spec, Mha, Ownership, VocabMap


def require_eagle3(spec: DraftSpec, dialect: str) -> Eagle3Spec:
    """`spec` as EAGLE-3; raises ConversionError for a drafter of another kind."""
    if not isinstance(spec, Eagle3Spec):
        raise ConversionError(f"a {spec.name} drafter cannot be written as {dialect}")
    return spec


def require_stored(spec: Eagle3Spec, roles_present: Collection[str], dialect: str) -> None:
    """Raises ConversionError when the tensors cannot carry what `spec` says of them."""
    owned = (
        ("embed_tokens.weight", spec.embedding.value is Ownership.OWN),
        ("lm_head.weight", spec.head.value is Ownership.OWN),
        ("d2t", spec.vocab_map.value in (VocabMap.OFFSETS, VocabMap.ABSOLUTE)),
    )
    for role, expected in owned:
        if expected and role not in roles_present:
            raise ConversionError(
                f"the drafter has no tensor for {role}, without which {dialect} would mean"
                " another drafter",
                hint="export the drafter again with all its tensors",
            )
    if spec.vocab_map.value is VocabMap.ABSOLUTE:
        raise ConversionError(
            f"d2t holds absolute ids, and {dialect} reads offsets",
            hint="rewrite d2t as offsets, d2t[i] - i",
        )
    if spec.vocab_map.value is VocabMap.PREFIX and {"d2t", "t2d"} & set(roles_present):
        raise ConversionError("the drafter has a vocabulary map, yet its ids are used without one")
    fused = [role for role in roles_present if role.endswith(FUSED)]
    if fused:
        raise ConversionError(
            f"{fused[0]} is stored fused, and {dialect} stores its parts apart",
            hint="split it into its parts first",
        )


def layer_keys(spec: Eagle3Spec) -> dict[str, Any]:
    """The keys of the decoder layer, without those that MLA has instead of Mha's."""
    keys: dict[str, Any] = {
        "hidden_size": spec.hidden_size.value,
        "intermediate_size": spec.intermediate_size.value,
        "num_hidden_layers": spec.num_layers.value,
        "vocab_size": spec.vocab_size.value,
        "hidden_act": spec.activation.value,
        "rms_norm_eps": spec.rms_norm_eps.value,
        "tie_word_embeddings": spec.head.value is Ownership.TIED,
        **rope_keys(spec.rope.value),
    }
    if spec.max_position_embeddings.value is not None:
        keys["max_position_embeddings"] = spec.max_position_embeddings.value
    attention = spec.attention
    if isinstance(attention, Mha):
        keys["num_attention_heads"] = attention.num_heads.value
        keys["num_key_value_heads"] = attention.num_kv_heads.value
        keys["head_dim"] = attention.head_dim.value
        keys["attention_bias"] = attention.bias.value
        keys["mlp_bias"] = False
    return keys
