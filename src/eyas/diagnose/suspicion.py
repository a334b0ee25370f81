"""Causes that no replay proves: untrained contents, and a RoPE that is not the target's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eyas.checks import Finding, Report
from eyas.diagnose.bench import Bench
from eyas.diagnose.causes import Cause, CauseId, Stage
from eyas.diagnose.chains import Chains, chains
from eyas.diagnose.change import with_facts
from eyas.diagnose.contents import Content
from eyas.diagnose.ranking import Court
from eyas.diagnose.reading import Fault
from eyas.diagnose.trial import LEVEL
from eyas.diagnose.variant import Variant, built

SUSPECT = 0.01  # the score of what is suspected, and not shown by a replay
DOUBTFUL = 0.02  # of what the numbers show, beside something that makes every replay fail
_OF_RULES = {"W903": CauseId.WEIGHTS_REPEATED}
_GONE = {
    CauseId.LAYER_LOST,
    CauseId.FUSION_LOST,
    CauseId.MATRIX_LOST,
    CauseId.HEAD_LOST,
    CauseId.UNSCALED,
}  # with norms, a drafter still drafts


def of_contents(
    held: Sequence[Content],
    ideal: Variant,
    sound: Chains,
    bench: Bench,
    court: Court,
    *,
    spoiled: bool,
) -> Iterator[Cause | str]:
    """A cause for each content that no training leaves, or a note for one that drafts need.

    `ideal` is the reading that was repaired as far as it could be, and `sound` what it drafts.
    Where something is `spoiled` for certain, what only looks idle comes after all else: no replay
    can tell then.
    """
    for content in held:
        what = f"{content.role}: {content.what}"
        if not content.noise:
            yield court.static(content.cause, what)
        elif needed(content.role, ideal, sound, bench):
            yield f"{content.role} looks like noise, but drafts are worse without it"
        elif spoiled:
            doubt = "too much else is spoiled for a replay to be sure of it"
            yield court.cause(content.cause, Stage.STATIC, [what, doubt], score=DOUBTFUL)
        else:
            yield court.static(content.cause, what)
    for finding in _told(court.report):
        yield court.static(_OF_RULES[finding.code], finding.message)


def lost_for_good(faults: Sequence[Fault], held: Sequence[Content], report: Report | None) -> bool:
    """Whether matrices are gone that nothing at hand can bring back.

    What stands against the config can be fitted to it, and the target has an embedding.
    """
    gone = {fault.cause for fault in faults} & _GONE
    emptied = {content.cause for content in held if not content.noise}
    return bool(gone or emptied - {CauseId.EMBEDDING_WRONG} or list(_told(report)))


def of_map(court: Court) -> Iterator[Cause]:
    """A map that no count of tokens gives (V407), where drafts are rare: weak evidence."""
    for finding in () if court.report is None else court.report.findings:
        if finding.code == "V407":
            yield court.cause(CauseId.MAP_WRONG, Stage.STATIC, [finding.message], score=DOUBTFUL)


def _told(report: Report | None) -> Iterator[Finding]:
    """What the rules of `eyas check` say of contents."""
    findings = () if report is None else report.findings
    return (finding for finding in findings if finding.code in _OF_RULES)


def of_rope(start: Variant, now: Chains, bench: Bench, court: Court) -> Iterator[Cause]:
    """RoPE unlike the target's (T706), where the target's drafts no worse: weak evidence."""
    rope = bench.facts.rope
    codes = set() if court.report is None else {f.code for f in court.report.findings}
    if "T706" not in codes or rope is None:
        return
    drafter = built(with_facts(start, rope=rope), bench.target)
    other = chains(drafter, bench.evidence, now.steps, shift=start.shift, every=True)
    gain = other.gain_over(now).value
    if gain > 0:
        longest = max(len(text.ids) for text in bench.evidence.texts)
        what = (
            f"the target's RoPE drafts no worse (closeness {gain:+.4f}); texts of {longest} tokens"
            " are too short to tell bases apart for certain"
        )
        yield court.cause(CauseId.ROPE, Stage.SWEEP, [what], score=SUSPECT)


def needed(role: str, start: Variant, now: Chains, bench: Bench) -> bool:
    """Whether the drafts of `start` get worse when `role` is zero: then it is more than noise."""
    if role.startswith("lm_head"):
        return False
    zeroed = start.with_state({role: start.state[role] * 0})
    drafter = built(zeroed, bench.target)
    other = chains(drafter, bench.evidence, now.steps, shift=start.shift, every=True)
    loss = now.gain_over(other, LEVEL)
    return loss.interval is not None and loss.interval.low > 0
