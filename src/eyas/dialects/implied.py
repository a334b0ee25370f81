"""The tensors that a spec implies, by role: what a drafter must have, and may not exceed."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from eyas.dialects.dialect import Maps
from eyas.errors import ConversionError
from eyas.spec import DFlashSpec, Eagle3Spec, Fused, Mha, Mla, Ownership, VocabMap

_LATENT = (
    "q_a_proj",
    "q_a_layernorm",
    "q_b_proj",
    "kv_a_proj_with_mqa",
    "kv_a_layernorm",
    "kv_b_proj",
    "o_proj",
)
# What the heads of DSpark hold depends on their kind, and is told by the checkpoint.
_HEADS = ("markov_head.", "confidence_head.")


def eagle3_roles(spec: Eagle3Spec, *, maps: Maps, output_bias: bool) -> frozenset[str]:
    """The roles of an EAGLE-3 drafter, where a bias on q, k and v is one on o_proj too or not."""
    found = {"norm.weight", *_outer(spec, maps)}
    conditioning = spec.conditioning
    if isinstance(conditioning, Fused):
        found.add("fc.weight")
        found |= {"fc.bias"} if conditioning.bias.value else set()
        found |= {"input_norm.weight"} if conditioning.input_norm.value else set()
        count = conditioning.count.value if conditioning.fc_norm.value else 0
        found |= {f"fc_norm.{i}.weight" for i in range(count)}
    for i in range(spec.num_layers.value):
        later = spec.later_norm.value
        norms = ("input_layernorm", "hidden_norm") if i == 0 else (str(later),)
        found |= {f"layers.{i}.{norm}.weight" for norm in norms}
        found |= set(_layer(f"layers.{i}.", spec.attention, output_bias=output_bias))
    return frozenset(found)


def block_roles(spec: DFlashSpec, *, maps: Maps, output_bias: bool) -> frozenset[str]:
    """The roles of a DFlash or DSpark drafter, without what belongs to DSpark's heads alone."""
    found = {"norm.weight", "hidden_norm.weight", "fc.weight", *_outer(spec, maps)}
    for i in range(spec.num_layers.value):
        found.add(f"layers.{i}.input_layernorm.weight")
        found |= set(_layer(f"layers.{i}.", spec.attention, output_bias=output_bias))
    if spec.markov is not None:
        found |= {"markov_head.markov_w1.weight", "markov_head.markov_w2.weight"}
    if spec.confidence is not None:
        found.add("confidence_head.proj.weight")
    return frozenset(found)


def require_parts(implied: Collection[str], present: Collection[str], dialect: str) -> None:
    """Raises ConversionError where the drafter lacks an implied tensor, or has one beyond them.

    A t2d beyond them is no loss, since d2t tells it.
    """
    missing = sorted(set(implied) - set(present))
    if missing:
        raise ConversionError(
            f"the drafter has no tensor for {missing[0]}, which {dialect}'s code would then"
            " initialise as it likes",
            hint="export the drafter again with all its tensors",
        )
    heads = tuple(head for head in _HEADS if any(role.startswith(head) for role in implied))
    surplus = (role for role in set(present) - set(implied) - {"t2d"})
    strangers = sorted(role for role in surplus if not role.startswith(heads))
    if strangers:
        raise ConversionError(
            f"{dialect} has no place for {strangers[0]}, which this drafter has",
            hint="name a dialect whose code has it",
        )


def _outer(spec: Eagle3Spec | DFlashSpec, maps: Maps) -> Iterator[str]:
    if spec.embedding.value is Ownership.OWN:
        yield "embed_tokens.weight"
    if spec.head.value is Ownership.OWN:
        yield "lm_head.weight"
    if spec.vocab_map.value is VocabMap.OFFSETS and maps != "none":
        yield from maps.split("+")


def _layer(prefix: str, attention: Mha | Mla, *, output_bias: bool) -> Iterator[str]:
    yield f"{prefix}post_attention_layernorm.weight"
    for part in ("gate", "up", "down"):
        yield f"{prefix}mlp.{part}_proj.weight"
    if isinstance(attention, Mla):
        yield from (f"{prefix}self_attn.{part}.weight" for part in _LATENT)
        return
    yield from (f"{prefix}self_attn.{part}_proj.weight" for part in "qkvo")
    if attention.bias.value:
        parts = "qkvo" if output_bias else "qkv"
        yield from (f"{prefix}self_attn.{part}_proj.bias" for part in parts)
    if attention.qk_norm.value:
        yield from (f"{prefix}self_attn.{part}_norm.weight" for part in "qk")
