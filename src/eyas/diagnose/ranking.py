"""Ranking: every cause that a stage found, once, the one that explains most first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from eyas.checks import Report
from eyas.decode.interval import Estimate
from eyas.diagnose.ablation import Price
from eyas.diagnose.causes import Cause, CauseId, Stage
from eyas.diagnose.outcome import estimate_text
from eyas.diagnose.trial import Step
from eyas.diagnose.wording import SENTENCES, command, places

# Words of a refusal that speak of a cause; an engine says no more than these.
_LOST = ("missing", "not there", "no tensor", "nothing fills", "lacks")
_MAP = ("map", "d2t")
_WORDS: dict[CauseId, tuple[str, ...]] = {
    CauseId.BOUNDARIES: ("boundar", "layer id", "layer_id", "the target hands over"),
    CauseId.MAP_ABSOLUTE: _MAP,
    CauseId.MAP_LOST: _MAP,
    CauseId.MAP_WRONG: _MAP,
    CauseId.SHAPES: (" wants ", "_size", "shape"),
    CauseId.HEADS: ("heads", "head_dim", " wants "),
    CauseId.UNSCALED: ("scale", "holds i8", "holds f8"),
    CauseId.LAYER_LOST: _LOST,
    CauseId.FUSION_LOST: _LOST,
    CauseId.MATRIX_LOST: _LOST,
    CauseId.NORM_LOST: _LOST,
    CauseId.HEAD_LOST: _LOST,
}
# What cannot be priced comes before what can: the engine that does not start before all.
THIN = 1.1  # tau after a repair below which little speaks for it
_REFUSED, _STATIC = 30.0, 20.0
_UNWRITTEN = 0.1  # at least, of what memory may cost where no replay feels it


@dataclass(frozen=True, slots=True, kw_only=True)
class Court:
    """Names causes for one drafter: what the rules say of them, and what to type."""

    report: Report | None
    draft: str
    target: str
    config: str

    def cause(
        self,
        cause: CauseId,
        stage: Stage,
        evidence: Iterable[str],
        *,
        alone: Estimate | None = None,
        returned: Estimate | None = None,
        score: float,
    ) -> Cause:
        """A cause in words."""
        return Cause(
            id=cause,
            sentence=SENTENCES[cause],
            evidence=(*evidence, *places(cause, self.report)),
            alone=alone,
            returned=returned,
            score=score,
            command=command(
                cause, self.report, draft=self.draft, target=self.target, config=self.config
            ),
            stage=stage,
        )

    def refused(self, message: str, whole: Estimate | None) -> Cause:
        """The engine does not start: everything is lost."""
        unknown = "architectures" in message
        return self.cause(
            CauseId.ARCHITECTURE if unknown else CauseId.REFUSED,
            Stage.STATIC,
            [message],
            alone=whole,
            returned=whole,
            score=_REFUSED,
        )

    def static(self, cause: CauseId, what: str, *, first: bool = False) -> Cause:
        """What the files show, and nobody can price."""
        score = _REFUSED + 1 if first else _STATIC
        return self.cause(cause, Stage.STATIC, [what], score=score)

    def priced(self, price: Price, *, refusal: str | None = None) -> Cause:
        """A difference between trained and served; one that cannot be run explains a `refusal`."""
        difference = price.part.difference
        score = price.score
        if price.alone is None and price.returned is None:
            score = _REFUSED + 1 if speaks_of(refusal, difference.cause) else _STATIC - 1
        evidence = [difference.what]
        if price.part.unwritten:
            score = max(score, _UNWRITTEN)
            evidence.append(
                "nothing is loaded there: it holds whatever was there before, zeros at best"
            )
        return self.cause(
            difference.cause,
            Stage.SERVED if price.part.engine else Stage.SWEEP,
            evidence,
            alone=price.alone,
            returned=price.returned,
            score=score,
        )

    def swept(
        self, steps: Sequence[Step], price: Price | None, *, refusal: str | None = None
    ) -> Cause:
        """A reading of the files that drafts better; `steps` are all for one cause.

        It comes before a `refusal` that speaks of the same thing: ids that the target lacks.
        """
        evidence = []
        for step in steps:
            trial = step.taken
            gain = f"{trial.change.what}: tau {step.before.expected_tau:.2f} becomes"
            gain += f" {trial.chains.expected_tau:.2f}, closeness {estimate_text(trial.gain)} more"
            if step.margin is not None:
                gain += f", {step.margin:.3f} ahead of the next cause"
            evidence.append(gain)
        if steps[-1].taken.chains.expected_tau < THIN:
            evidence.append("thin evidence: the drafter stays broken for another reason")
        first, last = steps[0], steps[-1]
        returned: Estimate | None = last.taken.chains.loss_to(first.before)
        alone = returned
        if price is not None:
            alone, returned = price.alone, price.returned
        score = sum(max(each.value, 0.0) for each in (alone, returned) if each is not None)
        score = max(score, sum(step.taken.gain.value for step in steps))
        if speaks_of(refusal, first.taken.change.cause):
            score = _REFUSED + 1
        return self.cause(
            first.taken.change.cause,
            Stage.SWEEP,
            evidence,
            alone=alone,
            returned=returned,
            score=score,
        )


def speaks_of(refusal: str | None, cause: CauseId) -> bool:
    """Whether an engine that stops with the words of `refusal` does so because of `cause`."""
    said = (refusal or "").lower()
    return any(word in said for word in _WORDS.get(cause, ()))


def with_refusal(causes: Sequence[Cause]) -> tuple[Cause, ...]:
    """`causes` without a refusal that the first of the others explains, which then says it too."""
    refusals = [cause for cause in causes if cause.id is CauseId.REFUSED]
    others = [cause for cause in causes if cause.id is not CauseId.REFUSED]
    first = max(others, key=lambda cause: cause.score, default=None)
    if first is None or not refusals or first.score <= _REFUSED:
        return tuple(causes)
    said = tuple(line for refusal in refusals for line in refusal.evidence)
    explained = replace(first, evidence=tuple(dict.fromkeys((*first.evidence, *said))))
    return tuple(explained if cause is first else cause for cause in others)


def ranked(causes: Iterable[Cause]) -> tuple[Cause, ...]:
    """The causes by score, those of one id as one."""
    merged: dict[CauseId, Cause] = {}
    for cause in sorted(causes, key=lambda cause: -cause.score):
        held = merged.get(cause.id)
        if held is None:
            merged[cause.id] = cause
            continue
        merged[cause.id] = replace(
            held,
            evidence=tuple(dict.fromkeys((*held.evidence, *cause.evidence))),
            alone=cause.alone if held.alone is None else held.alone,
            returned=cause.returned if held.returned is None else held.returned,
        )
    return tuple(merged.values())
