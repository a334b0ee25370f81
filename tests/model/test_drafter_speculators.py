"""The drafter equals speculators 0.9.0's own Eagle3DraftModel at draft steps 1, 2 and 3.

The fixtures are made by `make_speculators_fixtures.py`, which tells how: checkpoints written by
speculators' save_pretrained, and what its own forward made of random inputs.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from safetensors.torch import load_file
from tests.checkpoint.torch_archive import pickle_weights
from torch import Tensor

from eyas.checkpoint import Format, open_checkpoint
from eyas.model.drafter import Drafter
from eyas.model.target import Target
from eyas.model.trained import trained_drafter
from eyas.spec import Eagle3Spec, Feedback, Fused, declared
from eyas.train.unroll import unroll

FOLDER = Path(__file__).parent / "fixtures" / "speculators-0.9.0"
CASES = sorted(path.stem for path in FOLDER.glob("*.safetensors"))
STEPS, TOLERANCE = 3, 1e-4


def loaded(name: str, folder: Path = FOLDER) -> tuple[Drafter, dict[str, Tensor]]:
    """The checkpoint read as eyas reads any other, and the record beside it."""
    checkpoint = open_checkpoint(folder / name)
    # nothing of the target is used: speculators' drafters hold their own embedding and head
    empty = torch.full((64, 32), torch.nan)
    target = SimpleNamespace(
        embedding_VH=empty, head_VH=empty, facts=SimpleNamespace(dtype=torch.float32)
    )
    return trained_drafter(checkpoint, cast(Target, target)), load_file(
        FOLDER / f"{name}.safetensors"
    )


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[str, Drafter, dict[str, Tensor]]:
    return request.param, *loaded(request.param)


def test_every_convention_has_a_case() -> None:
    needed = {"plain", "norm_before_residual", "norm_before_fc", "fc_norm", "norm_output"}
    assert needed | {"two_layers", "qwen3"} <= set(CASES)


def test_the_cases_hold_what_they_are_named_for() -> None:
    specs = {name: loaded(name)[0].spec for name in CASES}
    assert specs["norm_before_residual"].norm_before_residual.value
    assert specs["norm_output"].feedback.value is Feedback.POST_NORM
    assert specs["two_layers"].num_layers.value == 2
    assert cast(Any, specs["qwen3"].attention).qk_norm.value
    norms = {n: cast(Fused, specs[n].conditioning) for n in ("norm_before_fc", "fc_norm")}
    assert norms["norm_before_fc"].input_norm.value
    assert norms["fc_norm"].fc_norm.value
    assert specs["yarn_rope"].rope.value.kind == "yarn"


@torch.inference_mode()
def test_chains_equal_speculators(
    case: tuple[str, Drafter, dict[str, Tensor]], measured: Callable[[str], None]
) -> None:
    """A chain from every slot: the prefix in one call, then two single steps of feedback."""
    _, drafter, record = case
    ids, captured = record["ids"], record["captured"]
    worst = 0.0
    for length in range(1, len(ids) - STEPS + 2):
        cache = drafter.new_cache(1, length + STEPS)
        tokens, hidden = ids[None, :length], drafter.fuse(captured[None, :length])
        for step in range(1, STEPS + 1):
            output = drafter.step(tokens, hidden, cache)
            slots = range(length) if step == 1 else [length - 1]
            for row, slot in enumerate(slots):
                worst = max(worst, gap(output[0, row], record[f"hidden.{step}"][slot]))
                logits = drafter.logits(output[0, row])
                worst = max(worst, gap(logits, record[f"logits.{step}"][slot]))
            hidden = drafter.feedback(output[:, -1:])
            tokens = ids[None, length + step - 1 : length + step]
    measured(f"the largest difference from speculators is {worst:.0e}")
    assert worst <= TOLERANCE


@torch.inference_mode()
def test_the_unrolling_equals_speculators(case: tuple[str, Drafter, dict[str, Tensor]]) -> None:
    _, drafter, record = case
    slots = len(record["ids"])
    # eyas takes token and states of the same position; the first position's token is never read
    ids = torch.cat([torch.zeros(1, dtype=torch.int64), record["ids"][:-1]])
    outputs = list(unroll(drafter, ids[None], record["captured"][None], STEPS))
    worst = 0.0
    for step, output in enumerate(outputs, 1):
        kept = slots - step
        worst = max(worst, gap(output[0, :kept], record[f"hidden.{step}"][:kept]))
        logits = drafter.logits(output[0, :kept])
        worst = max(worst, gap(logits, record[f"logits.{step}"][:kept]))
    assert worst <= TOLERANCE


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("norm_before_residual", {"norm_before_residual": declared(False, "test")}),
        ("norm_output", {"feedback": declared(Feedback.PRE_NORM, "test")}),
        ("plain", {"norm_before_residual": declared(True, "test")}),
        ("plain", {"feedback": declared(Feedback.POST_NORM, "test")}),
        ("plain", {"rms_norm_eps": declared(1e-2, "test")}),
    ],
)
@torch.inference_mode()
def test_another_convention_is_told_apart(name: str, wrong: dict[str, Any]) -> None:
    right, record = loaded(name)
    spec: Eagle3Spec = replace(right.spec, **wrong)
    drafter = Drafter(spec, embedding=right.embedding_VH, head=right.head_VH)
    drafter.load_state_dict(right.state_dict())
    ids = torch.cat([torch.zeros(1, dtype=torch.int64), record["ids"][:-1]])
    outputs = list(unroll(drafter, ids[None], record["captured"][None], STEPS))
    kept = len(record["ids"]) - STEPS
    assert gap(outputs[-1][0, :kept], record[f"hidden.{STEPS}"][:kept]) > 30 * TOLERANCE


def test_draft_ids_become_the_kept_target_ids(
    case: tuple[str, Drafter, dict[str, Tensor]],
) -> None:
    name, drafter, _ = case
    weights = load_file(FOLDER / name / "model.safetensors")
    kept = weights["t2d"].nonzero()[:, 0] if "t2d" in weights else torch.arange(64)
    assert torch.equal(drafter.target_ids(torch.arange(len(kept))), kept)


def gap(found: Tensor, expected: Tensor) -> float:
    return float((found - expected).abs().max())


@pytest.mark.parametrize("name", ["plain", "qwen3"])
def test_a_pickle_is_the_same_drafter(name: str, tmp_path: Path) -> None:
    copied = pickle_weights(Path(shutil.copytree(FOLDER / name, tmp_path / name)))
    state, again = loaded(name)[0].state_dict(), loaded(name, tmp_path)[0].state_dict()
    assert state.keys() == again.keys()
    assert all(torch.equal(tensor, again[role]) for role, tensor in state.items())
    assert open_checkpoint(copied).format is Format.PICKLE
