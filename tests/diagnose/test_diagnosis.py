"""Each damage is named first, and what is sound is left alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.diagnose.conftest import Damaged
from torch import Tensor

from eyas.data.prompts import OWN_PROMPTS
from eyas.diagnose.bench import Bench
from eyas.diagnose.causes import CauseId
from eyas.diagnose.diagnosis import diagnose
from eyas.diagnose.outcome import Diagnosis
from eyas.engines import EngineRef, Launch

NEW, OLD, VLLM = "sglang@0.5.23", "sglang@0.5.10.post1", "vllm@0.33.0"
EAGLE = "speculative_algorithm=EAGLE"
Config = dict[str, Any]
Tensors = dict[str, Tensor]
Ask = Callable[..., Diagnosis]


@pytest.fixture
def ask(bench: Bench, damaged: Damaged) -> Ask:
    def asked(damage: Any, engine: str, *launch: str, **observed: Any) -> Diagnosis:
        ref = EngineRef.parse(engine)
        return diagnose(damaged(damage), bench, ref, Launch.parse(launch), **observed)

    return asked


def residual(config: Config, _tensors: Tensors) -> None:
    config["norm_before_residual"] = True


def ids_shifted(config: Config, _tensors: Tensors) -> None:
    config["eagle_config"]["eagle_aux_hidden_state_layer_ids"] = [3, 16, 28]


def fc_dropped(_config: Config, tensors: Tensors) -> None:
    del tensors["fc.weight"]


def rope_scaled(config: Config, _tensors: Tensors) -> None:
    config["rope_theta"] = config["rope_parameters"]["rope_theta"] = 100.0


def d2t_absolute(_config: Config, tensors: Tensors) -> None:
    tensors["d2t"] = tensors["d2t"] + torch.arange(len(tensors["d2t"]))


def embedding_random(_config: Config, tensors: Tensors) -> None:
    random = torch.Generator().manual_seed(1)
    noise = torch.randn(49152, 576, generator=random) * 0.1
    tensors["embed_tokens.weight"] = noise.to(torch.bfloat16)


def test_a_sound_drafter_is_not_blamed(ask: Ask) -> None:
    found = ask(None, VLLM)
    assert found.sound, found.text()
    assert found.trained is not None
    assert found.trained.tau.value > 1.5
    assert found.served[0].tau.value == pytest.approx(found.trained.tau.value)
    assert len(found.tried) > 0
    assert "Nothing is blamed" in found.verdict


@pytest.mark.parametrize(
    ("damage", "engine", "cause"),
    [
        (residual, VLLM, CauseId.RESIDUAL),
        (ids_shifted, NEW, CauseId.BOUNDARIES),
        (fc_dropped, NEW, CauseId.FUSION_LOST),
        (rope_scaled, NEW, CauseId.ROPE),
        (d2t_absolute, NEW, CauseId.MAP_ABSOLUTE),
        (embedding_random, VLLM, CauseId.EMBEDDING_WRONG),
    ],
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_a_damaged_file_is_named(ask: Ask, damage: Any, engine: str, cause: CauseId) -> None:
    found = ask(damage, engine)
    assert found.first.id is cause, found.text()
    assert found.first.command
    assert json.loads(json.dumps(found.json()))["causes"][0]["id"] == str(cause)


def test_the_story_has_both_causes_each_with_its_price(ask: Ask) -> None:
    found = ask(None, OLD, EAGLE)
    assert {cause.id for cause in found.causes[:2]} == {
        CauseId.LAYER_LOST,
        CauseId.FUSION_BYPASSED,
    }, found.text()
    for cause in found.causes[:2]:
        assert cause.alone is not None
        assert cause.alone.value > 0.4
        assert cause.returned is not None
        assert cause.returned.value < 0.2  # what one repair returned in the story: next to nothing
    assert "together: each hides what the other costs" in found.verdict
    assert max(measure.tau.value for measure in found.served) < 1.2


def test_an_observation_that_is_explained_ends_the_search(ask: Ask) -> None:
    found = ask(None, OLD, observed_tau=1.05, speeds=(25.0, 90.0))
    assert found.first.id is CauseId.LAYER_LOST
    assert found.explained
    assert found.tried == ()
    assert found.speed is not None
    assert CauseId.ENGINE_COST in [cause.id for cause in found.causes]


def test_an_observation_below_what_is_served_is_the_engines(ask: Ask) -> None:
    found = ask(None, NEW, observed_rates=(0.1, 0.0, 0.0))
    assert found.observed_tau == pytest.approx(1.1)
    assert found.first.id is CauseId.ENGINE
    assert not found.explained


def barely_trained(_config: Config, tensors: Tensors) -> None:
    """Of every matrix two directions are left."""
    for name, held in tensors.items():
        if held.ndim == 2 and not name.startswith(("embed_tokens", "lm_head")):
            left, strengths, right = torch.linalg.svd(held.float(), full_matrices=False)
            kept = (left[:, :2] * strengths[:2]) @ right[:2]
            tensors[name] = kept.to(held.dtype)


def test_what_is_closer_and_no_better_is_no_repair(ask: Ask) -> None:
    found = ask(barely_trained, NEW, values=False)
    assert [cause.id for cause in found.causes] == [CauseId.WEAK_DRAFTER], found.text()
    assert found.repaired is None


def deeper(config: Config, _tensors: Tensors) -> None:
    config["num_hidden_layers"] = 2


def test_layers_that_nothing_fills_are_blamed_whatever_a_replay_feels(ask: Ask) -> None:
    found = ask(deeper, VLLM)
    assert found.first.id is CauseId.DEPTH, found.text()
    assert any("whatever was there before" in line for line in found.first.evidence)


def test_few_texts_try_no_other_reading(smollm2: Path, damaged: Damaged, tmp_path: Path) -> None:
    lines = OWN_PROMPTS.read_text(encoding="utf-8").splitlines()
    file = tmp_path / "seven.jsonl"
    file.write_text("\n".join(lines[:7]) + "\n", encoding="utf-8")
    found = diagnose(
        damaged(residual), smollm2, EngineRef.parse(VLLM), Launch(), prompts=file, values=False
    )
    assert found.sound
    assert found.tried == ()
    assert "at least 8 prompts" in found.verdict


def of_another_kind(config: Config, _tensors: Tensors) -> None:
    config["architectures"] = ["EagleLlamaModelForDraft"]


def test_a_class_of_another_kind_over_the_layer_of_this_one_is_the_cause(ask: Ask) -> None:
    found = ask(of_another_kind, NEW)
    assert found.first.id is CauseId.ARCHITECTURE
    assert "a class of EAGLE-1, and layers.0.hidden_norm.weight" in found.first.evidence[0]


def both_flags(config: Config, _tensors: Tensors) -> None:
    config["norm_before_residual"] = config["norm_output"] = True


def norm_lost_and_refused(config: Config, tensors: Tensors) -> None:
    """Two things: SGLang refuses a whole number there, whatever becomes of the norm."""
    del tensors["norm.weight"]
    config["rms_norm_eps"] = 1


def test_flags_that_were_forgotten_together_are_found_together(ask: Ask) -> None:
    found = ask(both_flags, VLLM)
    assert {cause.id for cause in found.causes} == {CauseId.RESIDUAL, CauseId.FEEDBACK}, (
        found.text()
    )


def test_a_refusal_of_something_else_stays_a_cause(ask: Ask) -> None:
    found = ask(norm_lost_and_refused, NEW)
    assert [cause.id for cause in found.causes[:2]] == [CauseId.REFUSED, CauseId.NORM_LOST]


def test_what_each_repair_returns_is_what_the_ablation_measured(ask: Ask) -> None:
    found = ask(both_flags, OLD)
    priced = {each.cause: each.returned for each in found.priced}
    for cause in found.causes:
        assert cause.returned == priced[cause.id], cause.id


def test_few_texts_call_nothing_weak(smollm2: Path, damaged: Damaged, tmp_path: Path) -> None:
    lines = OWN_PROMPTS.read_text(encoding="utf-8").splitlines()
    file = tmp_path / "two.jsonl"
    file.write_text("\n".join(lines[:2]) + "\n", encoding="utf-8")
    found = diagnose(damaged(barely_trained), smollm2, None, Launch(), prompts=file, values=False)
    assert found.first.id is CauseId.NONE
    assert "2 texts cannot tell readings apart" in found.verdict
