"""Each reconstruction of a public drafter converts, or is refused in one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.real_drafters import Outcomes, conversion_table, conversions

from eyas.convert import Plan
from eyas.dialects import WRITABLE
from eyas.errors import ConversionError, TargetNeededError, UnjudgedError

PAGE = Path(__file__).resolve().parents[2] / "docs" / "real-drafters.md"
SGLANG, V1, V2, LLAMACPP = "sglang@0.5.23", "vllm@0.33.0:v1", "vllm@0.33.0:v2", "llamacpp@11549"


@pytest.fixture(scope="module")
def found(shared: Path) -> dict[str, Outcomes]:
    return dict(conversions(shared / "cases" / "real"))


def test_each_converts_or_is_refused_in_one_sentence(found: dict[str, Outcomes]) -> None:
    assert len(found) == 44
    for name, outcomes in found.items():
        assert list(outcomes) == [SGLANG, V1, V2, LLAMACPP, *WRITABLE]
        for goal, outcome in outcomes.items():
            if isinstance(outcome, ConversionError):
                assert outcome.message.isprintable(), (name, goal)
                assert not outcome.message.endswith("."), (name, goal)
                assert outcome.hint, (name, goal)


def test_a_plan_reads_every_tensor_of_the_drafter(found: dict[str, Outcomes]) -> None:
    for name, outcomes in found.items():
        sizes = {
            goal: sum(tensor.role not in (None, "d2t", "t2d") for tensor in plan.tensors)
            for goal, plan in outcomes.items()
            if isinstance(plan, Plan)
        }
        assert len(set(sizes.values())) <= 1, (name, sizes)


def test_those_without_a_contract_are_not_known_to_engines(found: dict[str, Outcomes]) -> None:
    kinds = ("dflash", "dspark", "peagle", "mtp")
    for name, outcomes in found.items():
        other = any(kind in name.lower() for kind in kinds)
        for engine in (SGLANG, V1, V2, LLAMACPP):
            assert isinstance(outcomes[engine], UnjudgedError) == other, (name, engine)


@pytest.mark.parametrize(
    ("name", "goal", "reason"),
    [
        ("RedHatAI/Qwen3-8B-speculator.eagle3", SGLANG, "norm_before_residual = false"),
        ("deepseek-ai/eagle3_qwen3_4b_ttt7", SGLANG, "no norms on q and k"),
        ("deepseek-ai/eagle3_qwen3_4b_ttt7", LLAMACPP, "no norms on q and k"),
        ("nvidia/Kimi-K2.5-Thinking-Eagle3", LLAMACPP, "no latent attention"),
        ("nvidia/gpt-oss-120b-Eagle3", SGLANG, ": no max_position_embeddings is stated"),
        ("AQ-MedAI/Ling-Flash-2.0-eagle3", V1, "does not hand over states"),
        ("lmsys/Qwen3-235B-A22B-EAGLE3", "dflash", "an EAGLE-3 drafter"),
    ],
)
def test_what_is_refused_says_why(
    found: dict[str, Outcomes], name: str, goal: str, reason: str
) -> None:
    outcome = found[name][goal]
    assert isinstance(outcome, ConversionError)
    assert not isinstance(outcome, TargetNeededError)
    assert reason in outcome.message


@pytest.mark.parametrize(
    ("name", "goal"),
    [
        ("lightseekorg/kimi-k2.5-eagle3", SGLANG),  # its embedding may be the target's
        ("AngelSlim/Qwen3-8B_eagle3", "torchspec"),  # which stores an embedding
        ("deepseek-ai/dspark_qwen3_4b_block7", "specforge"),  # which stores none
    ],
)
def test_where_the_targets_weights_are_wanting_they_are_asked_for(
    found: dict[str, Outcomes], name: str, goal: str
) -> None:
    outcome = found[name][goal]
    assert isinstance(outcome, TargetNeededError)
    assert outcome.hint == "name the directory of the target, with its weights, after --target"


def test_a_map_from_each_id_to_itself_is_left_out_where_it_is_in_the_way(
    found: dict[str, Outcomes],
) -> None:
    outcomes = found["yuhuili/EAGLE3-Vicuna1.3-13B"]
    for goal in (V1, V2, "modelopt"):
        plan = outcomes[goal]
        assert isinstance(plan, Plan)
        assert plan.changes == ("d2t is left out, which leads from each id to itself",)
    plan = outcomes[SGLANG]
    assert isinstance(plan, Plan)
    assert "d2t" in {tensor.role for tensor in plan.tensors}


def test_a_head_that_is_the_targets_is_told_to_sglang_by_a_null(
    found: dict[str, Outcomes],
) -> None:
    plan = found["nvidia/gpt-oss-120b-Eagle3"][V2]
    assert isinstance(plan, Plan)
    assert plan.config["draft_vocab_size"] is None
    kept = found["nvidia/gpt-oss-120b-Eagle3-long-context"][SGLANG]
    assert isinstance(kept, Plan)
    assert kept.config["draft_vocab_size"] == 201088


def test_the_published_table_is_what_eyas_says(found: dict[str, Outcomes]) -> None:
    table = conversion_table(found.items())
    hint = "run: python benchmarks/real_drafters.py ../shared/cases/real"
    assert table in PAGE.read_text(encoding="utf-8"), hint
