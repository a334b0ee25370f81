"""What the dialects need before they write, and the keys that several write alike."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any

from eyas.dialects.dialect import Maps
from eyas.dialects.names import FUSED
from eyas.dialects.rope import rope_keys
from eyas.errors import ConversionError
from eyas.spec import (
    Boundaries,
    DefaultBoundaries,
    DFlashSpec,
    DraftSpec,
    Eagle3Spec,
    Mha,
    Mla,
    Ownership,
    VocabMap,
)

Lack = tuple[str, str]  # a fact of the drafter, and what the code lacks for it


def require_eagle3(spec: DraftSpec, dialect: str) -> Eagle3Spec:
    """`spec` as EAGLE-3; raises ConversionError for a drafter of another kind."""
    if not isinstance(spec, Eagle3Spec):
        raise ConversionError(f"a {spec.name} drafter cannot be written as {dialect}")
    return spec


def require_stored(
    spec: Eagle3Spec | DFlashSpec, roles_present: Collection[str], dialect: str
) -> None:
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


def layer_keys(spec: Eagle3Spec | DFlashSpec) -> dict[str, Any]:
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


def latent_keys(attention: Mla) -> dict[str, Any]:
    """The keys that MLA has; num_key_value_heads is its number of heads, as its recipes have it."""
    return {
        "num_attention_heads": attention.num_heads.value,
        "num_key_value_heads": attention.num_heads.value,
        "q_lora_rank": attention.q_lora_rank.value,
        "kv_lora_rank": attention.kv_lora_rank.value,
        "qk_nope_head_dim": attention.qk_nope_head_dim.value,
        "qk_rope_head_dim": attention.qk_rope_head_dim.value,
        "v_head_dim": attention.v_head_dim.value,
    }


def dtype_key(dtype: str | None) -> dict[str, Any]:
    """The key of the weights' type; without it where they have several."""
    return {} if dtype is None else {"torch_dtype": dtype}


def after_layers(boundaries: Boundaries | None) -> list[int] | None:
    """`boundaries`, of which none is 0, as states after a layer; None for the default ones."""
    if boundaries is None or isinstance(boundaries, DefaultBoundaries):
        return None
    return [k - 1 for k in boundaries]


def tensor_names(
    roles_present: Collection[str], maps: Maps, rename: Callable[[str], str]
) -> dict[str, str]:
    """Role → tensor name, without a t2d that `maps` does not have."""
    return {role: rename(role) for role in roles_present if role != "t2d" or "t2d" in maps}


def require_known(dialect: str, code: str, lacks: Iterable[Lack]) -> None:
    """Raises ConversionError with every fact of `lacks`, and what `code` lacks for it."""
    found: dict[str, str] = {}
    for fact, lack in lacks:
        found.setdefault(fact, lack)
    told = [f"{fact}: {'it' if i else code} {found[fact]}" for i, fact in enumerate(found)]
    if told:
        raise ConversionError(f"{dialect} cannot state {'; nor '.join(told)}", facts=len(told))
