"""check(): a drafter as trained beside what each engine version serves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eyas.__about__ import __version__
from eyas.checkpoint import SINGLE_FILES
from eyas.checks.finding import Finding, Skip
from eyas.checks.report import (
    SCHEMA_VERSION,
    CheckedFile,
    Coverage,
    EngineOutcome,
    Outcome,
    Report,
    Subject,
    Tool,
    outcome_of,
)
from eyas.checks.rules import TrainedRule, ViewRule
from eyas.checks.rules.config import EngineRefuses
from eyas.checks.selection import EVERY_RULE, Selection
from eyas.checks.view import Repair, Trained, View
from eyas.spec import DFlashSpec, Eagle3Spec, NotChecked, PEagleSpec, Served

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TargetFacts
    from eyas.engines import EngineRef, Launch

SMALL_FILE = 1 << 20  # bytes: a config or an index is hashed, a shard is not


def check(
    checkpoint: Checkpoint,
    refs: Sequence[EngineRef],
    *,
    target: TargetFacts | None = None,
    launch: Launch,
    selection: Selection = EVERY_RULE,
    values: bool = False,
    repair: Callable[[str], Repair] | None = None,
) -> Report:
    """What each engine of `refs` makes of `checkpoint`, against what its producer trained.

    With `values` the weights are read too, in pieces; otherwise headers and vocabulary maps alone.
    `repair` tries a conversion before the report advises it. Raises NotADrafterError where no
    dialect recognises the checkpoint, and EngineError for an engine that is not known at all; a
    version without a contract is a skip in the report.
    """
    from eyas import engines

    trained = replace(as_trained(checkpoint, target=target, values=values), repair=repair)
    served = [engines.read(ref, checkpoint, target=target, launch=launch) for ref in refs]
    return report_on(trained, served, selection)


def as_trained(
    checkpoint: Checkpoint, *, target: TargetFacts | None, values: bool = False
) -> Trained:
    """`checkpoint` as the dialect that recognises it reads it, with its weights if `values`."""
    from eyas import dialects

    dialect, spec = dialects.read(checkpoint)
    trained = Trained(
        checkpoint=checkpoint,
        dialect=dialect.name,
        spec=spec,
        roles=dialect.roles(checkpoint),
        target=target,
    )
    if not values:
        return trained
    from eyas.checks.values import read_values

    return replace(trained, values=read_values(trained))


def report_on(
    trained: Trained,
    served: Sequence[Served | NotChecked],
    selection: Selection = EVERY_RULE,
) -> Report:
    """The report on readings that were made already, by the rules of `selection`."""
    about_files, skipped = _apply(
        item
        for rule in selection.rules
        if isinstance(rule, TrainedRule)
        for item in rule.findings(trained)
    )
    findings = list(about_files)
    outcomes = []
    for reading in served:
        reason = _why_not(trained, reading, selection)
        if isinstance(reading, NotChecked) or reason is not None:
            outcomes.append(_outcome(reading, Outcome.SKIP, reason))
            continue
        view = View(trained=trained, served=reading)
        about_engine, not_run = compare_view(view, selection)
        findings += about_engine
        skipped += not_run
        found = outcome_of([*about_files, *about_engine], not_run)
        beyond = None if reading.refusal is not None else _beyond_landing(trained)
        if beyond is not None and found is not Outcome.FAIL:
            outcomes.append(
                _outcome(reading, Outcome.SKIP, f"what lands is in order, and {beyond}")
            )
            continue
        if beyond is not None:
            skipped.append(Skip(check="arithmetic", engine=view.reference, reason=beyond))
        refusal = reading.refusal
        why = None if refusal is None else f"raises at {refusal.stage}"
        outcomes.append(_outcome(reading, found, why))
    findings.sort(key=lambda finding: -finding.severity.weight)
    return Report(
        schema_version=SCHEMA_VERSION,
        tool=Tool(name="eyas", version=__version__),
        subject=subject_of(trained),
        target=None if trained.target is None else trained.target.location,
        target_revision=None if trained.target is None else trained.target.revision,
        engines=tuple(outcomes),
        findings=tuple(findings),
        skipped=tuple(skipped),
        left_out=tuple(rule.title for rule in selection.left_out),
    )


def subject_of(trained: Trained) -> Subject:
    """The drafter as a report names it, with the hashes of its small files."""
    checkpoint = trained.checkpoint
    return Subject(
        path=checkpoint.location,
        revision=checkpoint.revision,
        dialect=trained.dialect,
        files=tuple(_file(checkpoint, name) for name in _read(checkpoint)),
    )


def compare_view(view: View, selection: Selection = EVERY_RULE) -> tuple[list[Finding], list[Skip]]:
    """Every finding about the engine of `view`, and every rule that could not run."""
    return _apply(
        item
        for rule in selection.rules
        if isinstance(rule, ViewRule)
        for item in rule.findings(view)
    )


def _apply(items: Iterable[Finding | Skip]) -> tuple[list[Finding], list[Skip]]:
    findings: list[Finding] = []
    skipped: list[Skip] = []
    for item in items:
        if isinstance(item, Finding):
            findings.append(item)
        else:
            skipped.append(item)
    return findings, skipped


def _why_not(trained: Trained, reading: Served | NotChecked, selection: Selection) -> str | None:
    """Why `reading` cannot be compared with `trained`, not even in what lands.

    A P-EAGLE drafter is launched as an EAGLE-3 one. For others a contract that stops before it
    knows the drafter's kind is about another launch, so that its refusal says nothing of them.
    """
    if isinstance(reading, NotChecked):
        return reading.reason
    spec = trained.spec
    landing_alone = isinstance(spec, PEagleSpec | DFlashSpec)
    if not isinstance(spec, Eagle3Spec) and not landing_alone:
        return spec.unjudged
    if isinstance(spec, DFlashSpec) and reading.spec is None:
        return spec.unjudged
    refuses = next((rule for rule in selection.left_out if isinstance(rule, EngineRefuses)), None)
    if reading.refusal is not None and refuses is not None:  # no other rule has a view to judge
        return f"raises at {reading.refusal.stage}, and {refuses.title} is left out"
    return None


def _beyond_landing(trained: Trained) -> str | None:
    """Why no more than the landing of `trained` is judged; None where all of it is."""
    return None if isinstance(trained.spec, Eagle3Spec) else trained.spec.unjudged


def _outcome(reading: Served | NotChecked, outcome: Outcome, reason: str | None) -> EngineOutcome:
    landing = None if isinstance(reading, NotChecked) else reading.landing
    return EngineOutcome(
        engine=reading.engine,
        version=reading.version,
        runner=reading.runner,
        outcome=outcome,
        coverage=None if landing is None else Coverage.of(landing),
        reason=reason,
    )


def _read(checkpoint: Checkpoint) -> Iterator[str]:
    """The names of the files that the drafter was read from."""
    yield checkpoint.config_file
    whole = not checkpoint.location.endswith(SINGLE_FILES)
    if whole and (checkpoint.directory / checkpoint.index).is_file():
        yield checkpoint.index
    yield from (file for file in checkpoint.files if file != checkpoint.config_file)


def _file(checkpoint: Checkpoint, name: str) -> CheckedFile:
    from hashlib import sha256

    if name in checkpoint.remote:
        return CheckedFile(name=name, bytes=checkpoint.remote[name], sha256=None)
    path = checkpoint.directory / name
    size = path.stat().st_size
    digest = sha256(path.read_bytes()).hexdigest() if size <= SMALL_FILE else None
    return CheckedFile(name=name, bytes=size, sha256=digest)
