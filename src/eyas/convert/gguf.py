"""A plan for llama.cpp: the drafter's tensors in GGUF's order, and the target's tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from eyas.checkpoint.gguf_tokenizer import tokenizer_keys
from eyas.convert.plan import Plan, PlannedTensor
from eyas.dialects.gguf_rows import made, stored
from eyas.errors import TargetNeededError
from eyas.spec import Eagle3Spec, VocabMap

if TYPE_CHECKING:
    from collections.abc import Callable

    from eyas.checkpoint import TargetFacts


def as_gguf(plan: Plan, tokenizer: Callable[[], Mapping[str, Any]]) -> Plan:
    """`plan` with its tensors as a GGUF file stores them, and the keys of `tokenizer`.

    Raises ConversionError for a tensor that the format cannot hold.
    """
    spec = plan.spec
    assert isinstance(spec, Eagle3Spec)  # the writer refuses all others
    own = tuple(
        replace(tensor, rows=stored(spec, tensor.role, tensor.rows))
        for tensor in plan.tensors
        if tensor.role is not None
    )
    added = tuple(
        PlannedTensor(role=None, before="made from the RoPE", after=name, rows=rows, trained=rows)
        for name, rows in made(spec).items()
    )
    said = ["the rows of q and k are stored in llama.cpp's order, and vectors as float32"]
    if spec.vocab_map.value is VocabMap.OFFSETS:  # the format holds ids
        spec = replace(spec, vocab_map=spec.vocab_map.map(lambda _: VocabMap.ABSOLUTE))
        said.append("d2t is stored as absolute ids")
    return replace(
        plan,
        spec=spec,
        config={**plan.config, **tokenizer()},
        tensors=own + added,
        changes=(*plan.changes, "; ".join(said)),
    )


def tokenizer_of(target: TargetFacts | None, vocab_size: int) -> Mapping[str, Any]:
    """The keys of the target's tokenizer, without which llama.cpp loads no file.

    Raises TargetNeededError where no target is named, ConversionError where it is not the
    drafter's or its tokenizer is of a kind that eyas does not write.
    """
    if target is None:
        raise TargetNeededError(
            "a GGUF file holds the target's tokenizer, and no target is named",
            hint="name it with --target: its .gguf file, or its directory",
        )
    return tokenizer_keys(target, vocab_size)
