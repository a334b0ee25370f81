"""What the score on training states tells of a loss: causes, and notes where it is none."""

from __future__ import annotations

from collections.abc import Iterator

from eyas.decode.interval import LEVEL
from eyas.diagnose.bench import Bench
from eyas.diagnose.causes import Cause, CauseId, Stage
from eyas.diagnose.chains import Chains, chains
from eyas.diagnose.change import with_fusion
from eyas.diagnose.outcome import TrainingMeasure
from eyas.diagnose.ranking import Court
from eyas.diagnose.suspicion import DOUBTFUL
from eyas.diagnose.training_side import fused_by
from eyas.diagnose.trial import WEAK
from eyas.diagnose.variant import Variant, built
from eyas.spec import boundaries_of

APART = 0.05  # relative; bfloat16 alone brings states 0.004 apart, float32 0.000001
UNLIKE = 0.2  # as a share of the drafts that the better one accepts: what differs more is not alike


def of_training(
    found: TrainingMeasure, start: Variant, now: Chains, bench: Bench, court: Court
) -> Iterator[Cause | str]:
    """What `found` says beside `now`, which `start`, the files' own reading, drafts: cause or note.

    Other boundaries than those of the files are a cause, unless the drafter is better off at the
    files': then it was not trained on these states.
    """
    far = [apart for apart in (found.apart, found.final_apart) if not apart <= APART]  # or is NaN
    if far:
        yield (
            f"the stored states, of `{found.target}`, are not those that this target gives"
            f" ({far[0]:.2f} apart): another target or precision, or other boundaries than the"
            " store says"
        )
    fused = fused_by(start)
    declared = boundaries_of(fused.boundaries.value, bench.target.facts.num_layers)
    if found.boundaries != declared:
        there = with_fusion(start, fused, boundaries=found.boundaries)
        replayed = chains(built(there, bench.target), bench.evidence, now.steps, every=True)
        yield _of_boundaries(found, declared, replayed, now, court)
        now = replayed
    trained, replayed_tau = found.expected_tau, now.expected_tau
    taus = f"tau {trained:.2f} on the training states, {replayed_tau:.2f} on the texts here"
    if _below(replayed_tau, trained):
        yield f"{taus}: what was learned does not carry over to what the target says here"
    elif _below(trained, replayed_tau):
        yield f"{taus}: the drafter was hardly trained on these states"


def weakness(now: Chains, found: TrainingMeasure | None) -> tuple[str, ...]:
    """What shows that the drafter itself is weak, on the evidence and in training; () if not.

    States that it was hardly trained on show nothing of that kind.
    """
    tau = now.expected_tau
    trained = tau if found is None else found.expected_tau
    if tau >= WEAK and (trained >= WEAK or _below(trained, tau)):
        return ()
    if trained >= WEAK and _below(tau, trained):  # it is not weak where it was trained
        return ()
    lines = [f"tau {tau:.2f} from every position as trained"]
    if found is not None:
        lines.append(f"tau {trained:.2f} on the states that it was trained on")
    return tuple(lines)


def _below(tau: float, other: float) -> bool:
    """Whether much less is accepted at `tau` than at `other`."""
    return tau - 1 < (1 - UNLIKE) * (other - 1)


def _of_boundaries(
    found: TrainingMeasure,
    declared: tuple[int, ...],
    there: Chains,
    now: Chains,
    court: Court,
) -> Cause | str:
    """The boundaries of the store beside the `declared` ones; `there` is what it drafts at them."""
    at, said = _listed(found.boundaries), _listed(declared)
    taus = (
        f"tau {there.expected_tau:.2f} at those of training, {now.expected_tau:.2f} at the files'"
    )
    worse = now.gain_over(there, LEVEL)
    if worse.interval is not None and worse.interval.low > 0:
        return (
            f"the training states are at boundaries {at}, the files say {said}, where it drafts"
            f" better ({taus}): it was not trained on these states"
        )
    lost = there.loss_to(now)
    return court.cause(
        CauseId.BOUNDARIES,
        Stage.STATIC,
        [f"trained at boundaries {at}, and the files say boundaries {said}", taus],
        alone=lost,
        returned=lost,
        score=max(2 * lost.value, 2 * DOUBTFUL),
    )


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))
