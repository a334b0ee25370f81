"""An evaluation for a program: one JSON object."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from eyas.decode.evaluation import ArmResult, Evaluation, Run
from eyas.decode.interval import LEVEL, RESAMPLES, Estimate
from eyas.engines.reported import reported


def as_json(evaluation: Evaluation, subject: Mapping[str, Any]) -> str:
    """The evaluation with what it was made of (`subject`); tau counts the bonus token."""
    document = {
        "schema_version": 1,
        "subject": dict(subject),
        "steps": evaluation.steps,
        "max_new": evaluation.max_new,
        "intervals": {
            "level": LEVEL,
            "over": "prompts",
            "resamples": RESAMPLES,
            "seed": evaluation.seed,
        },
        "prompts": evaluation.prompts_by_category,
        "arms": [
            {
                "name": arm.label,
                "engine": None if arm.engine is None else str(arm.engine),
                "refusal": arm.refusal,
                "runs": [_run(evaluation, arm, run) for run in arm.runs],
            }
            for arm in evaluation.arms
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _run(evaluation: Evaluation, arm: ArmResult, run: Run) -> dict[str, Any]:
    record = evaluation.record(arm, run)
    acceptance, tally = record.acceptance, record.tally
    assert acceptance is not None  # every arm has a drafter
    assert tally is not None
    by_category, macro = run.taus(evaluation.seed)
    engines = reported(tally) if arm.engine is None else reported(tally, [arm.engine])
    return {
        "fill": run.fill,
        "macro_tau": _estimate(macro),
        "tau_by_category": {name: _estimate(found) for name, found in by_category.items()},
        "rounds": acceptance.rounds,
        "accepted": acceptance.accepted,
        "tau": acceptance.tau,
        "cumulative": acceptance.cumulative,
        "conditional": acceptance.conditional,
        "tokens": record.delivered,
        "seconds": record.pace.seconds,
        "tokens_per_second": record.pace.tokens_per_second,
        "round_cost": record.round_cost,
        "speedup": record.speedup,
        "same_answers": evaluation.same_answers(run),
        "reported_by": {
            str(report.engine): {
                f"{metric.where} :: {metric.name}": metric.value for metric in report.metrics
            }
            for report in engines
        },
    }


def _estimate(estimate: Estimate | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    interval = estimate.interval
    return {
        "value": estimate.value,
        "interval": None if interval is None else [interval.low, interval.high],
    }
