"""The tensors of a tiny drafter, by role: their sizes, and numbers that are not all zero."""

from __future__ import annotations

import struct

from eyas.checkpoint.header import tensor_nbytes
from eyas.checkpoint.rows import Made
from eyas.dialects import Maps
from eyas.dialects.implied import block_roles, eagle3_roles
from eyas.spec import DFlashSpec, DraftSpec, Eagle3Spec, Fact, Mla, PEagleSpec, VocabOrder

HIDDEN, INNER, HEADS, KV_HEADS, HEAD_DIM, VOCAB, DRAFTED, LAYERS = 8, 12, 2, 1, 4, 32, 16, 12
Q_RANK, KV_RANK, NOPE, ROTARY, VALUE, MARKOV = 6, 4, 4, 2, 4, 2


def tensors_of(spec: DraftSpec, maps: Maps, *, output_bias: bool) -> dict[str, Made]:
    """Every tensor of `spec` by role; half of each matrix's numbers are not zero."""
    if isinstance(spec, PEagleSpec):
        found = tensors_of(spec.drafter, maps, output_bias=output_bias)
        return found | {"mask_hidden": _made((1, 1, 3 * HIDDEN))}
    if isinstance(spec, DFlashSpec):
        roles = set(block_roles(spec, maps=maps, output_bias=output_bias))
        roles |= {"confidence_head.proj.bias"} if spec.confidence is not None else set()
    else:
        assert isinstance(spec, Eagle3Spec)
        roles = set(eagle3_roles(spec, maps=maps, output_bias=output_bias))
    ids = list(range(0, VOCAB, VOCAB // DRAFTED))
    if spec.vocab_order.value is VocabOrder.UNSORTED:
        ids.reverse()
    offsets = struct.pack(f"<{DRAFTED}q", *(token - i for i, token in enumerate(ids)))
    mask = bytes(token in ids for token in range(VOCAB))
    given = {"d2t": Made("I64", (DRAFTED,), offsets), "t2d": Made("BOOL", (VOCAB,), mask)}
    return {role: given.get(role) or _made(_shape(spec, role)) for role in sorted(roles)}


def _made(shape: tuple[int, ...]) -> Made:
    nbytes = tensor_nbytes("BF16", shape)
    return Made("BF16", shape, (b"\0\x3e\0\0" * nbytes)[:nbytes])


def _shape(spec: Eagle3Spec | DFlashSpec, role: str) -> tuple[int, ...]:
    """The sizes of the matrix, norm or bias with `role`."""
    part = role.removesuffix(".weight")
    states = spec.count if isinstance(spec, DFlashSpec) else getattr(spec.conditioning, "count", 0)
    count = states.value if isinstance(states, Fact) else 0
    q, kv, drafted = HEADS * HEAD_DIM, KV_HEADS * HEAD_DIM, spec.draft_vocab_size.value
    block = isinstance(spec, DFlashSpec)
    outer: dict[str, tuple[int, ...]] = {
        "fc": (HIDDEN, count * HIDDEN),
        "input_norm": (count * HIDDEN,),
        "embed_tokens": (VOCAB, HIDDEN),
        "lm_head": (drafted, HIDDEN),
        "markov_head.markov_w1": (VOCAB, MARKOV),
        "markov_head.markov_w2": (drafted, MARKOV),
        "confidence_head.proj": (1, HIDDEN),
        "confidence_head.proj.bias": (1,),
    }
    if part in outer:
        return outer[part]
    taken = HIDDEN if block or part.startswith("layers.1.") else 2 * HIDDEN
    inner: dict[str, tuple[int, ...]] = {
        "q_proj": (q, taken),
        "k_proj": (kv, taken),
        "v_proj": (kv, taken),
        "o_proj": (HIDDEN, HEADS * (VALUE if isinstance(spec.attention, Mla) else HEAD_DIM)),
        "q_proj.bias": (q,),
        "k_proj.bias": (kv,),
        "v_proj.bias": (kv,),
        "q_norm": (HEAD_DIM,),
        "k_norm": (HEAD_DIM,),
        "gate_proj": (INNER, HIDDEN),
        "up_proj": (INNER, HIDDEN),
        "down_proj": (HIDDEN, INNER),
        "q_a_proj": (Q_RANK, taken),
        "q_a_layernorm": (Q_RANK,),
        "q_b_proj": (HEADS * (NOPE + ROTARY), Q_RANK),
        "kv_a_proj_with_mqa": (KV_RANK + ROTARY, taken),
        "kv_a_layernorm": (KV_RANK,),
        "kv_b_proj": (HEADS * (NOPE + VALUE), KV_RANK),
    }
    # What is left is a norm or a bias over a state.
    return next((s for name, s in inner.items() if part.endswith(f".{name}")), (HIDDEN,))
