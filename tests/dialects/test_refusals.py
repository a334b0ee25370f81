"""What a dialect cannot state: one sentence that names the fact, and the code or key that lacks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from eyas.dialects import WRITABLE
from eyas.errors import ConversionError
from eyas.spec import (
    DefaultBoundaries,
    Eagle3Spec,
    Feedback,
    Fused,
    LastState,
    LaterNorm,
    Mha,
    Ownership,
    Rope,
    VocabMap,
    VocabOrder,
    absent,
    declared,
)


def known(value: Any) -> Any:
    return declared(value, "test")


FUSED = Fused(
    boundaries=known(DefaultBoundaries()),
    count=known(3),
    input_norm=known(False),
    fc_norm=known(False),
    bias=known(False),
)
MHA = Mha(
    num_heads=known(2),
    num_kv_heads=known(1),
    head_dim=known(4),
    bias=known(False),
    qk_norm=known(False),
)
PLAIN = Eagle3Spec(
    hidden_size=known(8),
    target_hidden_size=known(8),
    intermediate_size=known(12),
    num_layers=known(1),
    later_norm=absent("test"),
    attention=MHA,
    conditioning=FUSED,
    activation=known("silu"),
    rms_norm_eps=known(1e-5),
    rope=known(Rope(theta=500000.0, kind="default")),
    max_position_embeddings=known(None),
    norm_before_residual=known(False),
    feedback=known(Feedback.PRE_NORM),
    vocab_size=known(20),
    draft_vocab_size=known(4),
    vocab_map=known(VocabMap.OFFSETS),
    vocab_order=known(VocabOrder.SORTED),
    embedding=known(Ownership.OWN),
    head=known(Ownership.OWN),
    target_name=known(None),
)
FIVE = (2, 10, 18, 26, 34)
DEEPSPEC = replace(
    PLAIN,
    attention=replace(MHA, qk_norm=known(True)),
    conditioning=replace(FUSED, boundaries=known(FIVE), count=known(5)),
    draft_vocab_size=known(20),
    vocab_map=known(VocabMap.IDENTITY),
    vocab_order=absent("test"),
)
DEEP = replace(PLAIN, num_layers=known(2), later_norm=known(LaterNorm.INPUT_LAYERNORM))
LLAMA3 = Rope(
    theta=500000.0,
    kind="llama3",
    scaling={
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": 8192,
    },
)


def fused(**facts: Any) -> Eagle3Spec:
    return replace(PLAIN, conditioning=replace(FUSED, **{k: known(v) for k, v in facts.items()}))


def plain(**facts: Any) -> Eagle3Spec:
    return replace(PLAIN, **{key: known(value) for key, value in facts.items()})


OF_ALL = ("eagle", "angelslim", "modelopt", "torchspec", "automodel")
LAST = LastState(reason=known("use_aux_hidden_state is false"), after_final_norm=known(True))
CASES: list[tuple[tuple[str, ...], Eagle3Spec, str]] = [
    (OF_ALL, plain(norm_before_residual=True), "after hidden_norm: .* has no norm_before_residual"),
    (("eagle", "angelslim", "modelopt"), plain(feedback=Feedback.POST_NORM), "has no norm_output"),
    (OF_ALL, fused(input_norm=True), "one norm goes over all captured states .* no norm_before_fc"),
    (("eagle", "angelslim", "modelopt"), fused(fc_norm=True), "has no fc_norm"),
    (OF_ALL, fused(bias=True), "that fc has a bias: .* has no bias"),
    (OF_ALL, replace(PLAIN, conditioning=LAST), "no states are fused: .* in every drafter"),
    (OF_ALL, replace(PLAIN, attention=replace(MHA, qk_norm=known(True))), "q and k have norms"),
    (("eagle", "angelslim", "torchspec"), DEEP, "2 decoder layers: .* builds one"),
    (("automodel",), DEEP, "2 decoder layers: Automodel's LlamaEagle3DraftModel builds one"),
    (("modelopt",), DEEP, "after the first call input_layernorm: .* calls hidden_norm there"),
    (("eagle", "automodel"), fused(boundaries=(2, 9, 17)), "boundaries 2, 9, 17: .* L-3 of a"),
    (("angelslim", "modelopt", "torchspec"), fused(boundaries=(0, 9, 17)), "counts states after"),
    (("modelopt", "torchspec"), fused(boundaries=(9, 2, 17)), "order of the captured boundaries"),
    (("angelslim",), fused(boundaries=(2, 9), count=2), "that fc takes 2 states: .* fc for 3"),
    (("angelslim", "modelopt"), plain(target_hidden_size=16), "are 16 wide: .* hidden_size"),
    (("eagle", "angelslim"), plain(rope=LLAMA3), "RoPE of the kind llama3: .* alone"),
    (
        ("eagle", "torchspec"),
        plain(rope=Rope(theta=5e5, kind="linear", scaling={"factor": 2.0})),
        "rope_theta 500000 with RoPE of the kind linear: .* builds that kind with 10000",
    ),
    (
        ("eagle", "angelslim"),
        plain(rope=Rope(theta=1e4, kind="linear", scaling={"factor": 0.5})),
        "factor 0.5 of RoPE: .* takes a number above 1",
    ),
    (
        ("torchspec",),
        plain(rope=Rope(theta=1e4, kind="yarn", scaling={"factor": 2.0})),
        "RoPE of the kind yarn without beta_fast: .* needs it",
    ),
    (("torchspec", "automodel"), plain(embedding=Ownership.TARGET), "embedding is the target's"),
    (("eagle", "angelslim"), plain(head=Ownership.TIED), "the head is the embedding: .* stores"),
    (("deepspec",), replace(DEEPSPEC, vocab_size=known(40)), "that 20 of 40 ids are drafted"),
    (("deepspec",), replace(DEEPSPEC, attention=MHA), "no norms: .* always has them"),
    (("dflash",), PLAIN, "an EAGLE-3 drafter cannot be written as dflash"),
]


@pytest.mark.parametrize(
    ("name", "spec", "sentence"),
    [(name, spec, sentence) for names, spec, sentence in CASES for name in names],
)
def test_what_lacks_is_named(kit: Any, name: str, spec: Eagle3Spec, sentence: str) -> None:
    with pytest.raises(ConversionError, match=sentence) as refused:
        WRITABLE[name].write(spec, kit.headers_of(spec))

    assert refused.value.message.startswith((f"{name} cannot state ", "an EAGLE-3 drafter"))


@pytest.mark.parametrize("name", [*OF_ALL, "deepspec"])
def test_without_that_it_is_written(kit: Any, name: str) -> None:
    spec = DEEPSPEC if name == "deepspec" else PLAIN
    config, names = WRITABLE[name].write(spec, kit.headers_of(spec))

    assert config["hidden_size"] == 8
    assert "fc.weight" in names


@pytest.mark.parametrize("name", OF_ALL)
def test_a_tensor_too_few_or_too_many_is_named(kit: Any, name: str) -> None:
    headers = kit.headers_of(PLAIN)
    bare = {role: header for role, header in headers.items() if "hidden_norm" not in role}

    with pytest.raises(ConversionError, match=r"no tensor for layers\.0\.hidden_norm\.weight"):
        WRITABLE[name].write(PLAIN, bare)
    with pytest.raises(ConversionError, match=f"{name} has no place for fc.bias"):
        WRITABLE[name].write(PLAIN, [*headers, "fc.bias"])


def test_eagle_takes_the_target_s_embedding_at_one_width_alone(kit: Any) -> None:
    narrow = plain(target_hidden_size=16, embedding=Ownership.TARGET)

    with pytest.raises(ConversionError, match="takes it over at one width alone"):
        WRITABLE["eagle"].write(narrow, kit.headers_of(narrow))
    config, _ = WRITABLE["eagle"].write(
        plain(target_hidden_size=16), kit.headers_of(plain(target_hidden_size=16))
    )
    assert config["target_hidden_size"] == 16
