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
from eyas.diagnose.trial import LEVEL, WEAK, read_as
from eyas.diagnose.variant import Variant, built
from eyas.spec import Ownership

SUSPECT = 0.01  # the score of what is suspected, and not shown by a replay
DOUBTFUL = 0.02  # of what the numbers show, beside something that makes every replay fail
_OF_RULES = {"W903": CauseId.WEIGHTS_REPEATED}
_GONE = {
    CauseId.LAYER_LOST,
    CauseId.FUSION_LOST,
    CauseId.MATRIX_LOST,
    CauseId.HEAD_LOST,
}  # and no norm: ones stand in for it


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
        if content.unlike and _better_off(ideal, sound, bench):
            yield f"{what}, and drafts are worse with the target's: it is the drafter's own"
        elif not content.noise:
            yield court.static(content.cause, what)
        elif needed(content.role, ideal, sound, bench):
            yield f"{content.role} looks like noise, but drafts are worse without it"
        elif spoiled:
            doubt = "too much else is spoiled for a replay to be sure of it"
            yield court.cause(content.cause, Stage.STATIC, [what, doubt], score=DOUBTFUL)
        else:
            yield court.static(content.cause, what)
    for finding in told_by_rules(court.report):
        yield court.static(_OF_RULES[finding.code], finding.message)


def lost_for_good(
    faults: Sequence[Fault],
    held: Sequence[Content],
    start: Variant,
    now: Chains,
    bench: Bench,
    report: Report | None,
) -> bool:
    """Whether matrices that `start` drafts with are gone, and nothing at hand brings them back.

    What stands against the config can be fitted to it, a bias that is missing was likely zero, and
    the target has an embedding. What is spoiled is gone where drafts are no worse without it.
    """
    if any(_gone(fault) for fault in faults):
        return True
    if now.expected_tau < WEAK and any(told_by_rules(report)):
        return True
    spoiled = [content.role for content in held if not content.role.startswith("embed_tokens.")]
    return any(not needed(role, start, now, bench) for role in spoiled)


def _gone(fault: Fault) -> bool:
    matrices = [role for role in fault.roles if not role.endswith(".bias")]
    return fault.cause is CauseId.UNSCALED or (fault.cause in _GONE and bool(matrices))


def _better_off(ideal: Variant, sound: Chains, bench: Bench) -> bool:
    """Whether drafts are worse with the target's embedding in place of the drafter's own."""
    swapped = with_facts(ideal, embedding=Ownership.TARGET)
    other = read_as(swapped, bench.target, bench.evidence, sound.steps)
    if other is None:
        return False
    loss = sound.gain_over(other, LEVEL)
    return loss.interval is not None and loss.interval.low > 0


def of_map(court: Court) -> Iterator[Cause]:
    """A map that no count of tokens gives (V407), where drafts are rare: weak evidence."""
    for finding in () if court.report is None else court.report.findings:
        if finding.code == "V407":
            yield court.cause(CauseId.MAP_WRONG, Stage.STATIC, [finding.message], score=DOUBTFUL)


def told_by_rules(report: Report | None) -> Iterator[Finding]:
    """What the rules of `eyas check` say of contents."""
    findings = () if report is None else report.findings
    return (finding for finding in findings if finding.code in _OF_RULES)


def of_rope(start: Variant, now: Chains, bench: Bench, court: Court) -> Iterator[Cause]:
    """RoPE unlike the target's (T706), where the target's drafts no worse: weak evidence."""
    rope = bench.facts.rope
    codes = set() if court.report is None else {f.code for f in court.report.findings}
    if "T706" not in codes or rope is None:
        return
    other = read_as(with_facts(start, rope=rope), bench.target, bench.evidence, now.steps)
    if other is None:  # a kind of RoPE that is not computed here
        return
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
