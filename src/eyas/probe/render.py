"""What an engine did with a drafter, and where a contract disagrees, as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from eyas.checkpoint import Checkpoint
from eyas.checks.render import landing as table
from eyas.checks.render.columns import columns
from eyas.checks.render.style import PLAIN, Style
from eyas.checks.report import SCHEMA_VERSION, Coverage
from eyas.probe.compare import Disagreement
from eyas.probe.landing import landing_of
from eyas.probe.observed import Observed


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an engine did with `checkpoint`, and how that compares with a contract.

    `contract` is the version whose contract it was compared with, or None with `reason` where
    there was none.
    """

    checkpoint: Checkpoint
    observed: Observed
    contract: str | None
    reason: str
    disagreements: tuple[Disagreement, ...]

    @property
    def engine(self) -> str:
        """The engine, its version and runner."""
        observed = self.observed
        runner = "" if observed.runner is None else f":{observed.runner}"
        return f"{observed.engine}@{observed.version}{runner}"


def render_human(answer: Answer, style: Style = PLAIN) -> str:
    """What it did, tensor by tensor, then a line for each disagreement."""
    observed, location = answer.observed, answer.checkpoint.location
    lines = []
    raised = observed.raised
    if raised is not None:
        text = f"{answer.engine} raises at {raised.stage}: {raised.kind}: {raised.message}"
        lines.append(style.paint(text, "error"))
    if observed.parameters:
        lines += _loaded(answer, location, style)
    lines += ["", *_verdict(answer, style)]
    return style.fit("\n".join(lines).lstrip("\n") + "\n")


def _loaded(answer: Answer, location: str, style: Style) -> list[str]:
    observed = answer.observed
    landing = landing_of(observed, answer.checkpoint)
    coverage = Coverage.of(landing)
    built = f" as {observed.architecture}" if observed.architecture else ""
    lines = [
        style.paint(
            f"{answer.engine} really loads {location}{built}: {coverage.landed} of"
            f" {coverage.total} tensors land, {len(landing.unfilled)} of"
            f" {len(landing.parameters)} parameters are left unfilled",
            "bold",
        ),
        "",
        style.paint("tensors", "bold"),
        columns(table.tensor_rows(landing)),
        "",
        style.paint("parameters", "bold"),
        columns(table.parameter_rows(landing)),
        "",
        style.paint("what it derived from the config", "bold"),
        columns([[k, _shown(v)] for k, v in observed.facts.items() if v is not None]),
    ]
    if observed.log:
        lines += ["", style.paint("what it printed about weights", "bold")]
        lines += [f"  {line}" for line in observed.log]
    return lines


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _verdict(answer: Answer, style: Style) -> list[str]:
    if answer.contract is None:
        return [style.paint(f"no contract to compare with: {answer.reason}", "warning")]
    named = f"the contract of {answer.contract}"
    if not answer.disagreements:
        return [style.paint(f"✓ {named} says the same", "good")]
    count = len(answer.disagreements)
    title = f"✗ {named} disagrees in {count} point{'s' if count > 1 else ''}"
    return [style.paint(title, "error"), *(f"  {one}" for one in answer.disagreements)]


def render_json(answer: Answer, record: dict[str, Any]) -> str:
    """The same as one JSON object; `record` is the probe's own."""
    document = {
        "schema_version": SCHEMA_VERSION,
        "path": answer.checkpoint.location,
        "observed": record,
        "contract": answer.contract,
        "reason": answer.reason or None,
        "disagreements": [
            {"subject": d.subject, "engine": d.engine, "contract": d.contract}
            for d in answer.disagreements
        ],
    }
    return json.dumps(document, indent=2) + "\n"
