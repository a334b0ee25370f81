"""What a drafter scores on the states that it was trained on."""

from __future__ import annotations

import torch

from eyas.data.states import Example, StateStore
from eyas.decode.prefill import read_prompt
from eyas.diagnose.bench import Bench
from eyas.diagnose.change import with_fusion
from eyas.diagnose.outcome import TrainingMeasure
from eyas.diagnose.variant import Variant, built
from eyas.errors import UsageError
from eyas.model.target import Target
from eyas.spec import Fused
from eyas.train.held_out import held_out_score, scorable
from eyas.train.settings import Scoring

EXAMPLES = 64  # that are scored: some ten thousand positions, and seconds for a small target
READ_AGAIN = 4  # examples whose states the target gives once more
LONGEST = 1024  # tokens of an example that are read
BATCH = 4096  # positions that are scored together


def training_side(store: StateStore, variant: Variant, bench: Bench, steps: int) -> TrainingMeasure:
    """What `variant` scores on `store`, in chains of `steps`, at the boundaries of the store.

    At most `EXAMPLES` examples are scored, spread evenly over it. Raises UsageError for a drafter
    that does not read captured states, for states that cannot be this target's or that its fc
    does not take, and where no answer is long enough.
    """
    fused = fused_by(variant)
    scoring = Scoring(unroll_steps=steps, max_length=LONGEST, batch_tokens=BATCH, bf16=False)
    usable = [index for index in range(len(store)) if scorable(store, index, scoring)]
    if not usable:
        raise UsageError(
            f"none of the {len(store)} answers in the training states has {steps} tokens within"
            f" its first {LONGEST} positions, so there is nothing to score",
            hint="lower --steps, or capture the states of longer answers",
        )
    indices = _spread(usable, EXAMPLES)
    _check_fit(store, indices, fused, bench.target)
    there = with_fusion(variant, fused, boundaries=store.origin.boundaries)
    drafter = built(there, bench.target)
    score = held_out_score(
        drafter,
        bench.target.head_VH,
        store,
        indices,
        torch.ones(drafter.shape.captured_width),
        scoring,
    )
    again = [store[index] for index in _spread(indices, READ_AGAIN)]
    apart, final_apart = _apart(again, store.origin.boundaries, bench.target)
    return TrainingMeasure(
        accuracy=score.accuracy,
        cumulative=score.cumulative,
        expected_tau=score.expected_tau,
        positions=score.positions,
        examples=len(indices),
        boundaries=store.origin.boundaries,
        target=store.origin.target,
        apart=apart,
        final_apart=final_apart,
    )


def fused_by(variant: Variant) -> Fused:
    """The fusion of `variant`; UsageError for one that no stored states are for."""
    conditioning = variant.spec.conditioning
    if isinstance(conditioning, Fused):
        return conditioning
    raise UsageError(
        "training states are those of several boundaries, and this drafter does not fuse any",
        hint="leave out --states",
    )


def _check_fit(store: StateStore, indices: list[int], fused: Fused, target: Target) -> None:
    """UsageError where the states cannot be the target's, or fc does not take so many."""
    boundaries, facts = store.origin.boundaries, target.facts
    example = store[indices[0]]
    width, final = example.captured_TC.shape[1], example.final_TH.shape[1]
    hint = "give the states that this drafter was trained on, and their target with --target"
    if final != facts.hidden_size or width != len(boundaries) * facts.hidden_size:
        raise UsageError(
            f"the training states of {store.origin} are {width} wide, the last {final}, and"
            f" `{facts.name}` has states of {facts.hidden_size}",
            hint=hint,
        )
    if any(not 0 <= boundary <= facts.num_layers for boundary in boundaries):
        raise UsageError(
            f"the training states are those of {store.origin}, and `{facts.name}` has"
            f" {facts.num_layers} layers",
            hint=hint,
        )
    if len(boundaries) != fused.count.value:
        raise UsageError(
            f"the training states are those of {store.origin}, and the drafter's fc takes"
            f" {fused.count.value} states",
            hint=hint,
        )
    largest = max(int(store[index].ids_T.max()) for index in indices)
    if largest >= len(target.embedding_VH):
        raise UsageError(
            f"the training states of {store.origin} have token {largest}, and `{facts.name}` knows"
            f" {len(target.embedding_VH)}",
            hint=hint,
        )


def _spread(indices: list[int], most: int) -> list[int]:
    """`most` of `indices` at most, evenly."""
    count = min(most, len(indices))
    return [indices[number * len(indices) // count] for number in range(count)]


@torch.inference_mode()
def _apart(
    examples: list[Example], boundaries: tuple[int, ...], target: Target
) -> tuple[float, float]:
    """How far stored states are from those of `target` for the same ids: captured, and final.

    |stored - given| / |given| over all tokens but the first of each example, which as an attention
    sink is hundreds of times larger.
    """
    off, whole = torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)
    for example in examples:
        ids_1T = example.ids_T[None, :LONGEST].to(target.embedding_VH.device)
        reading = read_prompt(target, ids_1T, target.new_cache(1, ids_1T.shape[1]), boundaries)
        assert reading.captured_BTC is not None  # boundaries were asked for
        pairs = [
            (example.captured_TC, reading.captured_BTC),
            (example.final_TH, target.normed(reading.final_BTH)),
        ]
        for number, (stored, given) in enumerate(pairs):
            given_TC = given[0, 1:].cpu().double()
            off[number] += (stored[1:LONGEST].double() - given_TC).square().sum()
            whole[number] += given_TC.square().sum()
    captured, final = (off / whole).sqrt().tolist()
    return captured, final
