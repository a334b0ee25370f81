"""An evaluation for a reader: tables and bars."""

from __future__ import annotations

from collections.abc import Sequence

from eyas.checks.render import Style
from eyas.checks.render.columns import columns
from eyas.decode.curve import bars, span
from eyas.decode.evaluation import ArmResult, Evaluation
from eyas.decode.interval import LEVEL, RESAMPLES, Estimate
from eyas.decode.record import Record
from eyas.engines.reported import reported

NOTE = (
    "tau = 1 + accepted drafts / rounds, the bonus token included; in brackets the "
    f"{LEVEL:.0%} interval over prompts ({RESAMPLES} resamples)"
)
WIDEST_LABEL = 24  # characters: a longer label stands under the table
RANGE_NOTE = "a range (1.00 to 1.04) is over three fills of matrices that the engine never fills"


def text(evaluation: Evaluation, heading: str, style: Style) -> str:
    """The whole evaluation under `heading`."""
    parts = [
        style.paint(style.fit(heading), "bold"),
        style.fit(_taus(evaluation)),
        style.fit(NOTE),
        *([style.fit(RANGE_NOTE)] if _ranges(evaluation) else []),
        "",
        style.fit(_rounds(evaluation)),
        *(style.fit(line) for line in _logged(evaluation)),
        *(style.fit(f"{arm.label}: {arm.refusal}") for arm in evaluation.arms if arm.refusal),
        "",
        bars(evaluation.curves, style).rstrip("\n"),
    ]
    return "\n".join(parts) + "\n"


def _ranges(evaluation: Evaluation) -> bool:
    return any(len(arm.runs) > 1 for arm in evaluation.arms)


def _taus(evaluation: Evaluation) -> str:
    estimates = [[run.taus(evaluation.seed) for run in arm.runs] for arm in evaluation.arms]
    labels = [arm.label for arm in evaluation.arms]
    legend = []
    for number, label in enumerate(labels):
        if len(label) > WIDEST_LABEL:
            labels[number] = f"({number})"
            legend.append(f"({number}) {label}")
    rows = [["tau", "prompts", *labels]]
    for category, prompts in evaluation.prompts_by_category.items():
        cells = [_cell([by.get(category) for by, _ in found]) for found in estimates]
        rows.append([category, str(prompts), *cells])
    total = str(sum(evaluation.prompts_by_category.values()))
    rows.append(["macro mean", total, *(_cell([mean for _, mean in found]) for found in estimates)])
    return "\n".join([columns(rows), *legend])


def _cell(estimates: Sequence[Estimate | None]) -> str:
    """An estimate with its interval, or the range of several; a dash where there is none."""
    known = [estimate for estimate in estimates if estimate is not None]
    if not known:
        return "-"
    values = [estimate.value for estimate in known]
    value = span(min(values), max(values), "{:.2f}")
    if len(known) > 1:
        return value
    interval = known[0].interval
    return value if interval is None else f"{value} [{interval.low:.2f}, {interval.high:.2f}]"


def _rounds(evaluation: Evaluation) -> str:
    rows = [["", "rounds", "accepted", "tau", "conditional acceptance", "tokens/s", "R", "speed"]]
    for arm in evaluation.arms:
        for run in arm.runs:
            record = evaluation.record(arm, run)
            name = arm.label if run.fill is None else f"{arm.label}, {run.fill}"
            rows.append([name, *_numbers(record)])
    notes = []
    if evaluation.plain is None:
        notes.append("R (cost of a round in plain steps) is not measured without --baseline")
    else:
        for arm in evaluation.arms:
            if arm.engine is None:
                same = evaluation.same_answers(arm.runs[0])
                notes.append(f"{same} of {len(evaluation.plain)} answers are the target's own")
    return "\n".join([columns(rows), *notes])


def _numbers(record: Record) -> list[str]:
    acceptance = record.acceptance
    assert acceptance is not None  # every arm has a drafter
    conditional = ", ".join("-" if r is None else f"{r:.0%}" for r in acceptance.conditional)
    rate = record.pace.tokens_per_second
    return [
        str(acceptance.rounds),
        str(acceptance.accepted),
        "-" if acceptance.tau is None else f"{acceptance.tau:.3f}",
        conditional,
        "-" if rate is None else f"{rate:.1f}",
        "-" if record.round_cost is None else f"{record.round_cost:.2f}",
        "-" if record.speedup is None else f"{record.speedup:.2f}x",
    ]


def _logged(evaluation: Evaluation) -> list[str]:
    """What each engine's own log line would read, from its own rule."""
    lines = []
    for arm in evaluation.arms:
        if arm.engine is not None and arm.runs:
            lines.append(f"{arm.label} would log: {', '.join(_log_line(arm))}")
    return lines


def _log_line(arm: ArmResult) -> list[str]:
    assert arm.engine is not None
    values: dict[str, list[float]] = {}
    for run in arm.runs:
        tally = run.record().tally
        assert tally is not None
        for metric in reported(tally, [arm.engine])[0].metrics:
            if metric.where == "log line" and isinstance(metric.value, int | float):
                values.setdefault(metric.name, []).append(metric.value)
    return [f"{name} {span(min(found), max(found), '{:.2f}')}" for name, found in values.items()]
