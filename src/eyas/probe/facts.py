"""The facts that an engine derives from a config, beside those that a contract derives."""

from __future__ import annotations

from collections.abc import Iterator

from eyas.probe.observed import Observed
from eyas.spec import Eagle3Spec, Feedback, Fused, LastState, Mha, Served, Unfused


def fact_disagreements(served: Served, observed: Observed) -> Iterator[tuple[str, object, object]]:
    """Each fact that both know and that differs: its name, the engine's value, the contract's."""
    if not isinstance(served.spec, Eagle3Spec):
        return
    told = dict(_facts(served.spec))
    for name, ours in told.items():
        theirs = observed.facts.get(name)
        if theirs is not None and ours is not None and not _equal(theirs, ours):
            yield name, theirs, ours


def _equal(theirs: object, ours: object) -> bool:
    if isinstance(theirs, float) and isinstance(ours, float):
        return abs(theirs - ours) <= 1e-9 * max(abs(theirs), abs(ours))
    return theirs == ours


def _facts(spec: Eagle3Spec) -> Iterator[tuple[str, object]]:
    """The contract's facts, by the names that probes use."""
    yield "hidden_size", spec.hidden_size.value
    yield "intermediate_size", spec.intermediate_size.value
    yield "num_hidden_layers", spec.num_layers.value
    yield "vocab_size", spec.vocab_size.value
    yield "draft_vocab_size", spec.draft_vocab_size.value
    yield "rms_norm_eps", float(spec.rms_norm_eps.value)
    yield "hidden_act", spec.activation.value
    yield "norm_before_residual", spec.norm_before_residual.value
    yield "norm_output", spec.feedback.value is Feedback.POST_NORM
    yield "rope_theta", float(spec.rope.value.theta)
    if isinstance(spec.attention, Mha):
        yield "num_attention_heads", spec.attention.num_heads.value
        yield "num_key_value_heads", spec.attention.num_kv_heads.value
        yield "head_dim", spec.attention.head_dim.value
    conditioning = spec.conditioning
    if isinstance(conditioning, Fused):
        yield "norm_before_fc", conditioning.input_norm.value
        yield "fc_norm", conditioning.fc_norm.value
    if isinstance(conditioning, LastState):
        yield "captures", False
    if isinstance(conditioning, Fused | Unfused):
        ids = conditioning.boundaries.value
        yield "boundaries", list(ids) if isinstance(ids, tuple) else None
