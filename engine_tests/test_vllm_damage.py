"""Damaged drafters in real vLLM: what happens is what eyas predicts from the files alone.

Where vLLM leaves a matrix unwritten, it holds whatever the memory held. eyas's prediction is then a
range over three fills, and a server's memory is one of many: zeros on a fresh process, and no draft
at all is accepted where it holds large numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from engine_tests.conftest import Note, Serve
from engine_tests.damage import VARIANTS, Variant, write_variant
from engine_tests.prediction import Prediction, Predictor
from engine_tests.serving import STEPS

import eyas
from eyas.checkpoint import Checkpoint, open_checkpoint, open_target
from eyas.convert import convert, parse_goal
from eyas.decode.acceptance import Acceptance
from eyas.decode.answers import Answers, TokenisedPrompt, answer_all
from eyas.engines import EngineRef, Launch
from eyas.model.target import Target
from eyas.model.trained import trained_drafter
from eyas.probe.environment import Environment

# A dead drafter has a round for every token: fewer prompts and tokens are enough.
EVERY, NEW = 3, 32


@pytest.fixture(scope="module")
def flat(shipped: Path, smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkpoint:
    """The drafter with a flat config, as vLLM computes it soundly."""
    folder, facts = tmp_path_factory.mktemp("flat"), open_target(smollm2)
    first, second = folder / "specforge", folder / "for-vllm"
    convert(open_checkpoint(shipped, weights=True), first, parse_goal("specforge"), target=facts)
    goal = parse_goal("vllm@0.32.0:v1")
    convert(open_checkpoint(first, weights=True), second, goal, target=facts)
    return open_checkpoint(second)


@pytest.fixture(scope="module")
def intact(target: Target, prompts: list[TokenisedPrompt], flat: Checkpoint) -> Answers:
    """The answers that all variants are held against, and the rounds of the sound drafter."""
    drafter = trained_drafter(flat, target)
    return answer_all(
        target, prompts[::EVERY], max_new=NEW, drafter=drafter, steps=STEPS, stop_at_eos=False
    )


def kind_of(
    raises: str | None, runs: Sequence[Sequence[Acceptance]], intact: Sequence[Acceptance]
) -> str:
    """What happens: it raises, or is silent and drafts otherwise, or is sound."""
    if raises is not None:
        return f"raises at {raises}"
    return "sound" if all(list(records) == list(intact) for records in runs) else "silent"


def taus_told(predicted: Prediction, tau: float | None) -> tuple[str, str, str]:
    """The predicted tau, the real one, and how far that is from the predicted ones."""
    if tau is None or not predicted.runs:
        return "none" if not predicted.runs else "some", "none" if tau is None else "some", ""
    taus = [Acceptance.total(records).tau for records in predicted.runs]
    least, most = min(t for t in taus if t), max(t for t in taus if t)
    if predicted.left_to_chance:
        text = f"{least:.4f} to {most:.4f} (three fills)"
    else:
        text = f"{least:.4f}"
    text += f" [{predicted.tau.low:.2f}, {predicted.tau.high:.2f}]"
    return text, f"{tau:.4f}", f"{tau - min(max(tau, least), most):+.4f}"


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda v: v.name)
def test_what_vllm_does_is_what_eyas_predicts(
    variant: Variant,
    flat: Checkpoint,
    shipped: Path,
    smollm2: Path,
    vllm: Environment,
    serve: Serve,
    predictor: Callable[..., Predictor],
    prompts: list[TokenisedPrompt],
    intact: Answers,
    tmp_path: Path,
    row: Note,
) -> None:
    base = flat if variant.flat else open_checkpoint(shipped)
    draft = write_variant(variant, base, tmp_path / "draft")
    ref = EngineRef.parse(f"vllm@{vllm.version}:v1")
    launch = Launch.parse([f"method={variant.method}"])
    own = [generation.tokens for generation in intact.generations]
    sound = [g.acceptance for g in intact.generations if g.acceptance is not None]
    predicted = predictor([p.ids for p in intact.prompts], own).of(
        ref, open_checkpoint(draft), launch
    )
    report = eyas.check(
        draft, target=smollm2, engines=str(ref), launch={"vllm.method": variant.method}
    )
    launched = {"method": variant.method, "memory": variant.memory}
    answered = serve(draft, every=EVERY, max_new=NEW, **launched)

    ours = kind_of(predicted.raises, predicted.runs, sound)
    theirs = kind_of(answered.raised, [answered.records], sound)
    codes = sorted({finding.code for finding in report.findings if finding.severity == "error"})
    said = f"{theirs}; eyas check: {', '.join(codes) or 'no error'}"
    tau = answered.counted.tau if answered.counted else None
    row(f"vLLM {vllm.version}", variant.name, *taus_told(predicted, tau), said)
    assert (ours, theirs) == (variant.kind, variant.kind), answered.error
    if predicted.raises is not None:
        return
    assert tau is not None
    assert answered.tokens == tuple(own)  # whatever is drafted, the target decides
    assert predicted.tau.low <= tau <= predicted.tau.high
    if not predicted.left_to_chance:
        pairs = zip(predicted.runs[0], answered.records, strict=True)
        assert sum(a == b for a, b in pairs) >= len(own) - 1
