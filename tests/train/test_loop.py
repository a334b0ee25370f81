"""Training on a handful of random examples: the loss falls, and stopping leaves no trace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from eyas.data.states import Origin, StateStore
from eyas.errors import UsageError
from eyas.model.drafter import Drafter
from eyas.train.batches import Batch, Weighing, batch_plan, channel_rms, make_batch, split_held_out
from eyas.train.loop import Progress, train
from eyas.train.settings import TrainSettings

SETTINGS = TrainSettings(
    passes=6,
    repeats=(),
    batch_tokens=48,
    max_length=24,
    unroll_steps=3,
    step_decay=0.9,
    learning_rate=5e-3,
    warmup_steps=2,
    weight_decay=0.01,
    gradient_clip=1.0,
    prompt_weight=0.2,
    prompt_reach=2,
    seed=0,
    bf16=False,
    workers=1,
    held_out_every=8,
    checkpoint_every=3,
)
KEPT_IDS = torch.arange(16) * 2


@pytest.fixture
def store(tmp_path: Path) -> StateStore:
    """24 sequences that count in twos, whose states say which id they hold."""
    return store_of(tmp_path / "states", seed=0)


def store_of(directory: Path, *, seed: int, boundaries: tuple[int, ...] = (1, 2, 4)) -> StateStore:
    chance = torch.Generator().manual_seed(seed)
    table = torch.randn(40, 36, generator=chance)
    table[:, 5] *= 200.0  # a massive channel, as real residual streams have
    lengths = [int(n) for n in torch.randint(8, 20, (24,), generator=chance)]
    starts = torch.randint(0, 16, (24,), generator=chance).tolist()
    ids = torch.cat([(torch.arange(n) + s) % 16 * 2 for n, s in zip(lengths, starts, strict=True)])
    directory.mkdir()
    shard = {
        "ids": ids,
        "captured": table[ids],
        "final": target_head()[(ids + 2) % 32],
        "lengths": torch.tensor(lengths),
        "prompt_lengths": torch.full((24,), 3),
    }
    metadata = Origin(target="tiny", boundaries=boundaries).metadata()
    save_file(shard, directory / "states-00000.safetensors", metadata=metadata)
    return StateStore([directory])


def target_head() -> Tensor:
    return torch.randn(40, 12, generator=torch.Generator().manual_seed(5))


Make = Callable[..., Drafter]


def run(
    drafter: Drafter,
    store: StateStore,
    checkpoint: Path,
    report: Callable[[Progress], None] = lambda _: None,
    settings: TrainSettings = SETTINGS,
) -> None:
    train(drafter, target_head(), KEPT_IDS, store, settings, checkpoint, report)


def test_the_loss_falls_and_the_drafter_learns(
    make_drafter: Make, store: StateStore, tmp_path: Path
) -> None:
    drafter = make_drafter(dtype=torch.float32)
    seen: list[Progress] = []
    settings = replace(SETTINGS, passes=30, learning_rate=2e-2, warmup_steps=10)
    score = train(
        drafter, target_head(), KEPT_IDS, store, settings, tmp_path / "run.pt", seen.append
    )
    assert seen[-1].steps[0].loss < 0.7 * seen[0].steps[0].loss
    assert min(step.accuracy for step in seen[-1].steps) > 0.9
    assert score.accuracy[0] > 0.8
    assert score.positions > 0
    assert 1.0 < score.expected_tau <= 4.0
    assert score.cumulative == tuple(sorted(score.cumulative, reverse=True))


def test_a_stopped_run_ends_with_the_same_weights(
    make_drafter: Make, store: StateStore, tmp_path: Path
) -> None:
    whole = make_drafter(dtype=torch.float32)
    run(whole, store, tmp_path / "whole.pt")

    class StopError(Exception):
        pass

    def stop(progress: Progress) -> None:
        if progress.update == 8:
            raise StopError

    stopped = make_drafter(dtype=torch.float32)
    with pytest.raises(StopError):
        run(stopped, store, tmp_path / "stopped.pt", stop)
    resumed = make_drafter(dtype=torch.float32)
    updates: list[int] = []
    run(resumed, store, tmp_path / "stopped.pt", lambda progress: updates.append(progress.update))
    assert updates[0] == 7  # the last checkpoint was after update 6
    for name, weight in whole.state_dict().items():
        assert torch.equal(weight, resumed.state_dict()[name]), name


def test_two_workers_learn_what_one_does(
    make_drafter: Make, store: StateStore, tmp_path: Path
) -> None:
    alone, shared = make_drafter(dtype=torch.float32), make_drafter(dtype=torch.float32)
    seen: dict[int, list[Progress]] = {1: [], 2: []}
    for drafter, workers in ((alone, 1), (shared, 2)):
        settings = replace(SETTINGS, passes=1, workers=workers)
        run(drafter, store, tmp_path / f"{workers}.pt", seen[workers].append, settings)
    for one, two in zip(*seen.values(), strict=True):
        for step, other in zip(one.steps, two.steps, strict=True):
            assert step.loss == pytest.approx(other.loss, rel=1e-4)
            assert (step.matches, step.positions) == (other.matches, other.positions)
    for name, weight in alone.state_dict().items():
        # AdamW divides by a gradient's size: where that is nearly nothing, rounding decides
        torch.testing.assert_close(shared.state_dict()[name], weight, atol=2e-3, rtol=0, msg=name)


def test_a_run_looked_at_half_way_ends_with_the_same_weights(
    make_drafter: Make, store: StateStore, tmp_path: Path
) -> None:
    whole = make_drafter(dtype=torch.float32)
    run(whole, store, tmp_path / "whole.pt")
    updates: list[int] = []
    for until in (8, 8, None):
        drafter = make_drafter(dtype=torch.float32)
        train(
            drafter,
            target_head(),
            KEPT_IDS,
            store,
            SETTINGS,
            tmp_path / "run.pt",
            lambda progress: updates.append(progress.update),
            until,
        )
    assert updates == list(range(1, updates[-1] + 1))
    for name, weight in whole.state_dict().items():
        assert torch.equal(weight, drafter.state_dict()[name]), name


def test_a_checkpoint_of_other_settings_is_refused(
    make_drafter: Make, store: StateStore, tmp_path: Path
) -> None:
    run(make_drafter(dtype=torch.float32), store, tmp_path / "run.pt")
    other = replace(SETTINGS, learning_rate=1e-4)
    with pytest.raises(UsageError, match="other settings or data"):
        run(make_drafter(dtype=torch.float32), store, tmp_path / "run.pt", settings=other)


def test_a_checkpoint_of_other_data_is_refused(
    make_drafter: Make, store: StateStore, tmp_path: Path
) -> None:
    settings = replace(SETTINGS, batch_tokens=1)  # one example an update: both plans are as long
    run(make_drafter(dtype=torch.float32), store, tmp_path / "run.pt", settings=settings)
    other = store_of(tmp_path / "other", seed=1)
    with pytest.raises(UsageError, match="other settings or data"):
        run(make_drafter(dtype=torch.float32), other, tmp_path / "run.pt", settings=settings)


def test_a_drafter_of_another_vocabulary_is_refused(
    make_drafter: Make, store: StateStore, tmp_path: Path
) -> None:
    drafter = make_drafter(dtype=torch.float32)
    for ids_V in (KEPT_IDS + 1, KEPT_IDS[:-1]):
        with pytest.raises(UsageError, match="made for another draft vocabulary"):
            train(
                drafter, target_head(), ids_V, store, SETTINGS, tmp_path / "run.pt", lambda _: None
            )
    assert not (tmp_path / "run.pt").exists()


def test_a_checkpoint_of_another_vocabulary_is_refused(
    make_drafter: Make, store: StateStore, tmp_path: Path
) -> None:
    run(make_drafter(dtype=torch.float32), store, tmp_path / "run.pt")
    other = make_drafter(dtype=torch.float32)
    other.d2t.add_(1)  # draft id i is target id 2i + 1
    with pytest.raises(UsageError, match="a run with another draft vocabulary"):
        train(
            other,
            target_head(),
            KEPT_IDS + 1,
            store,
            SETTINGS,
            tmp_path / "run.pt",
            lambda _: None,
        )


def test_states_of_other_boundaries_are_refused(make_drafter: Make, tmp_path: Path) -> None:
    store = store_of(tmp_path / "other", seed=0, boundaries=(1, 2, 3))
    with pytest.raises(UsageError, match=r"takes the states at boundaries \(1, 2, 4\)"):
        run(make_drafter(dtype=torch.float32), store, tmp_path / "run.pt")


def test_too_few_examples_are_refused(
    make_drafter: Make, store: StateStore, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="24 examples are too few"):
        run(
            make_drafter(dtype=torch.float32),
            store,
            tmp_path / "run.pt",
            settings=replace(SETTINGS, held_out_every=25),
        )


def test_every_training_example_is_in_the_plan_once(store: StateStore) -> None:
    training, held_out = split_held_out(len(store), 8)
    assert held_out == [7, 15, 23]
    weighing = Weighing(max_length=16, prompt_weight=0.2, prompt_reach=1)
    plan = batch_plan(store, training, weighing, tokens=48, seed="a")
    assert sorted(index for batch in plan for index in batch) == training
    assert max(len(batch) for batch in plan) > 2
    for batch in plan:
        longest = max(min(store.length(index), 16) for index in batch)
        assert len(batch) == 1 or len(batch) * (longest - 2) <= 48
    assert plan == batch_plan(store, training, weighing, tokens=48, seed="a")
    assert plan != batch_plan(store, training, weighing, tokens=48, seed="b")


def test_a_pass_reads_a_directory_as_often_as_it_is_told(
    make_drafter: Make, store: StateStore, tmp_path: Path
) -> None:
    store_of(tmp_path / "more", seed=1)
    both = StateStore([tmp_path / "states", tmp_path / "more"])
    assert [both.directory(index) for index in (0, 23, 24, 47)] == [0, 0, 1, 1]
    seen: dict[tuple[int, ...], int] = {}
    for repeats in ((), (1, 1), (1, 3)):
        settings = replace(SETTINGS, passes=1, batch_tokens=1, repeats=repeats)
        file = tmp_path / f"{len(seen)}.pt"
        reports: list[Progress] = []
        train(
            make_drafter(dtype=torch.float32),
            target_head(),
            KEPT_IDS,
            both,
            settings,
            file,
            reports.append,
        )
        seen[repeats] = len(reports)  # one example an update
    assert seen == {(): 42, (1, 1): 42, (1, 3): 84}


def test_of_a_prompt_the_end_counts_and_of_a_long_text_the_beginning() -> None:
    weighing = Weighing(max_length=100, prompt_weight=0.2, prompt_reach=8)
    assert weighing.span(length=60, prompt_length=20) == (11, 59)
    assert weighing.span(length=60, prompt_length=5) == (1, 59)
    assert weighing.span(length=200, prompt_length=20) == (11, 99)
    begin, end = weighing.span(length=200, prompt_length=150)
    assert begin == end  # its answer is cut off: nothing counts
    answers_alone = replace(weighing, prompt_weight=0.0)
    assert answers_alone.span(length=60, prompt_length=20) == (19, 59)


def test_a_batch_weighs_answers_fully_and_never_the_last_position(store: StateStore) -> None:
    batch = batch_on("cpu", store)
    for row in (0, 1):
        length = store.length(row)
        # prompt_length is 3: position 2 predicts the first id of the answer
        expected = [0.0, 0.2, *[1.0] * (length - 3), 0.0]
        assert batch.weight_BT[row, :length].tolist() == pytest.approx(expected)
        assert not batch.weight_BT[row, length:].any()


def batch_on(device: str, store: StateStore) -> Batch:
    return make_batch(
        store,
        [0, 1],
        torch.ones(36),
        Weighing(max_length=64, prompt_weight=0.2, prompt_reach=2),
        device=torch.device(device),
    )


def test_a_batch_is_where_it_is_asked_for(store: StateStore) -> None:
    batch = batch_on("meta", store)  # a device that every machine has beside its CPU
    for held in (batch.ids_BT, batch.captured_BTC, batch.final_BTH, batch.weight_BT):
        assert held.device.type == "meta"


@pytest.mark.parametrize("device", ["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
def test_training_runs_where_the_target_is(
    device: str, make_drafter: Make, store: StateStore, tmp_path: Path
) -> None:
    drafter = make_drafter(dtype=torch.float32)
    drafter._shared = (drafter._shared[0].to(device), drafter._shared[1].to(device))
    settings = replace(SETTINGS, bf16=True)
    score = train(
        drafter,
        target_head().to(device),
        KEPT_IDS,
        store,
        settings,
        tmp_path / "run.pt",
        lambda _: None,
    )
    assert drafter.fc.weight.device.type == device
    assert score.positions > 0


@pytest.mark.parametrize(("max_length", "scored"), [(5, False), (6, True)])
def test_answers_too_short_to_score_are_refused(
    make_drafter: Make, store: StateStore, tmp_path: Path, max_length: int, scored: bool
) -> None:
    # prompts have 3 tokens: with 5 positions no answer has the 3 tokens of 3 steps
    settings = replace(SETTINGS, max_length=max_length, passes=1)
    arguments = (target_head(), KEPT_IDS, store, settings, tmp_path / "run.pt", lambda _: None)
    if scored:
        assert train(make_drafter(dtype=torch.float32), *arguments).positions == 3
    else:
        with pytest.raises(UsageError, match="none of the 3 held-out answers has 3 tokens"):
            train(make_drafter(dtype=torch.float32), *arguments)


def test_channel_rms_leaves_the_first_position_out(store: StateStore) -> None:
    rows = torch.cat([store[index].captured_TC[1:] for index in range(4)])
    torch.testing.assert_close(channel_rms(store, range(4)), rows.square().mean(0).sqrt())
