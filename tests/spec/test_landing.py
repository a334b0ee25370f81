"""A landing adds up, or says what does not."""

from __future__ import annotations

from dataclasses import replace

from eyas.spec import (
    Fate,
    FromTarget,
    FromTensor,
    Initialisation,
    Landing,
    Padding,
    ParameterLanding,
    Segment,
    TensorLanding,
    Unfilled,
)

Q, K = "midlayer.self_attn.q_proj.weight", "midlayer.self_attn.k_proj.weight"
QKV = "model.midlayer.self_attn.qkv_proj.weight"


def tensor(name: str, *parameters: str, fate: Fate = Fate.LANDED) -> TensorLanding:
    return TensorLanding(name=name, shape=(4, 8), dtype="BF16", fate=fate, parameters=parameters)


def segment(start: int, stop: int, source: object) -> Segment:
    return Segment(start=start, stop=stop, source=source, role=None)  # type: ignore[arg-type]


QKV_FROM_Q_AND_K = ParameterLanding(
    name=QKV,
    shape=(9, 8),
    segments=(
        segment(0, 4, FromTensor(tensor=Q)),
        segment(4, 8, FromTensor(tensor=K)),
        segment(8, 9, Padding()),
    ),
)


def test_a_sound_landing_adds_up() -> None:
    landing = Landing(tensors=(tensor(Q, QKV), tensor(K, QKV)), parameters=(QKV_FROM_Q_AND_K,))
    assert landing.imbalance() == ()
    assert landing.lost == ()
    assert landing.unfilled == ()
    assert QKV_FROM_Q_AND_K.tensors == (Q, K)


def test_a_lost_tensor_leaves_rows_that_nothing_fills() -> None:
    memory = Unfilled(initialisation=Initialisation.MEMORY)
    parameter = replace(
        QKV_FROM_Q_AND_K,
        segments=(segment(0, 4, FromTensor(tensor=Q)), segment(4, 9, memory)),
    )
    landing = Landing(tensors=(tensor(Q, QKV), tensor(K, fate=Fate.LOST)), parameters=(parameter,))
    assert landing.imbalance() == ()
    assert [t.name for t in landing.lost] == [K]
    assert [p.name for p in landing.unfilled] == [QKV]
    shared = replace(parameter, replaced=FromTarget(what="lm_head.weight"))
    assert not shared.unfilled


def test_whatever_does_not_add_up_is_named() -> None:
    gap = replace(QKV_FROM_Q_AND_K, segments=QKV_FROM_Q_AND_K.segments[1:])
    one_sided = (tensor(Q), tensor(K, QKV))
    faults = Landing(tensors=one_sided, parameters=(gap,)).imbalance()
    assert any("gap or an overlap" in fault for fault in faults)
    assert any("landed in 0 parameters" in fault for fault in faults)
    unknown = Landing(tensors=(tensor(K, QKV),), parameters=(QKV_FROM_Q_AND_K,)).imbalance()
    assert any("no tensor" in fault for fault in unknown)
    short = replace(QKV_FROM_Q_AND_K, segments=QKV_FROM_Q_AND_K.segments[:2])
    landing = Landing(tensors=(tensor(Q, QKV), tensor(K, QKV)), parameters=(short,))
    assert landing.imbalance() == (f"{QKV} has 9 rows, accounted: 8",)
    cut = replace(tensor(Q, QKV), cut=33)
    landing = Landing(tensors=(cut, tensor(K, QKV)), parameters=(QKV_FROM_Q_AND_K,))
    assert f"{Q} is cut by 33 of 32 elements" in landing.imbalance()
