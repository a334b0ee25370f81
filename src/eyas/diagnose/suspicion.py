"""Causes that no replay proves: untrained contents, and a RoPE that is not the target's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eyas.diagnose.bench import Bench
from eyas.diagnose.causes import Cause, CauseId, Stage
from eyas.diagnose.chains import Chains, chains
from eyas.diagnose.change import with_facts
from eyas.diagnose.contents import Content
from eyas.diagnose.ranking import Court
from eyas.diagnose.sweep import LEVEL, WEAK
from eyas.diagnose.variant import Variant, built

SUSPECT = 0.01  # the score of what is suspected, and not shown by a replay
_OF_RULES = {"W903": CauseId.WEIGHTS_REPEATED}


def of_contents(
    held: Sequence[Content],
    ideal: Variant,
    sound: Chains,
    bench: Bench,
    court: Court,
    *,
    lacking: bool,
) -> Iterator[Cause | str]:
    """A cause for each content that no training leaves, or a note for one that drafts need.

    `ideal` is the reading that was repaired as far as it could be, and `sound` what it drafts.
    Where that is next to nothing, and matrices are `lacking` or spoiled for certain, nothing can
    be said of what only looks idle.
    """
    findings = () if court.report is None else court.report.findings
    spoiled = lacking or any(not content.noise for content in held)
    spoiled = spoiled or any(finding.code in _OF_RULES for finding in findings)
    unsure = spoiled and sound.expected_tau < WEAK
    for content in held:
        if content.noise and unsure:
            yield f"{content.role} looks like noise, but too much else is missing to be sure"
        elif content.noise and _needed(content.role, ideal, sound, bench):
            yield f"{content.role} looks like noise, but drafts are worse without it"
        else:
            yield court.static(content.cause, f"{content.role}: {content.what}")
    for finding in findings:
        if finding.code in _OF_RULES:
            yield court.static(_OF_RULES[finding.code], finding.message)


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


def _needed(role: str, start: Variant, now: Chains, bench: Bench) -> bool:
    """Whether the drafts get worse when `role` is zero: then it is more than noise."""
    if role.startswith("lm_head"):
        return False
    zeroed = start.with_state({role: start.state[role] * 0})
    drafter = built(zeroed, bench.target)
    other = chains(drafter, bench.evidence, now.steps, shift=start.shift, every=True)
    loss = now.gain_over(other, LEVEL)
    return loss.interval is not None and loss.interval.low > 0
