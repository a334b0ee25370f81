"""The score on training states is that of an independent loop, and tells weak from lost."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from tests.diagnose import made_up
from tests.diagnose.conftest import Damaged
from tests.diagnose.test_diagnosis import barely_trained, ids_shifted
from tests.diagnose.test_page import elements, width
from torch import Tensor

from eyas.checkpoint import open_checkpoint
from eyas.cli import main
from eyas.data.conversation import Conversation
from eyas.data.states import Origin, StateStore, capture
from eyas.decode.greedy import draft_chain
from eyas.diagnose.bench import Bench
from eyas.diagnose.causes import Cause, CauseId
from eyas.diagnose.chains import Chains, chains
from eyas.diagnose.diagnosis import diagnose
from eyas.diagnose.ranking import Court
from eyas.diagnose.reading import declared
from eyas.diagnose.training_side import training_side
from eyas.diagnose.training_told import of_training, weakness
from eyas.diagnose.variant import Variant, built
from eyas.engines import Launch
from eyas.errors import UsageError
from eyas.model.drafter import Drafter
from eyas.spec import LastState, inferred

STEPS = 3
TRAINED_AT = (2, 15, 27)
SHIFTED = (3, 16, 28)
Shard = dict[str, Tensor]


def stored(folder: Path, shard: Shard, boundaries: Sequence[int], target: str = "x") -> StateStore:
    """A store of `shard` alone."""
    folder.mkdir(exist_ok=True)
    metadata = Origin(target=target, boundaries=tuple(boundaries)).metadata()
    save_file(shard, folder / "states-00000.safetensors", metadata=metadata)
    return StateStore([folder])


@pytest.fixture(scope="module")
def said(bench: Bench) -> list[Conversation]:
    """The target's own greedy answers."""
    return [
        Conversation(
            id=text.id,
            category=text.category,
            ids=text.ids,
            prompt_length=text.prompt,
            temperature=0.0,
        )
        for text in bench.evidence.texts
    ]


@pytest.fixture(scope="module")
def shard(bench: Bench, said: list[Conversation]) -> Shard:
    return capture(bench.target, TRAINED_AT, said)


@pytest.fixture(scope="module")
def store(shard: Shard, bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> StateStore:
    """The states of all texts of the bench, at the boundaries that the drafter was trained on."""
    folder = tmp_path_factory.mktemp("states")
    return stored(folder, shard, TRAINED_AT, bench.target.facts.name)


@pytest.fixture(scope="module")
def start(bench: Bench, trained_here: Path) -> Variant:
    return declared(open_checkpoint(trained_here), bench.target).variant


@torch.inference_mode()
def drafts_alone(drafter: Drafter, ids: Tensor, captured: Tensor, slot: int) -> list[int]:
    """The draft of each step with the text's own tokens before it, from the drafter's cache."""
    cache = drafter.new_cache(1, slot + STEPS + 1)
    output = drafter.step(ids[None, 1 : slot + 2], drafter.fuse(captured[None, : slot + 1]), cache)
    drafts = []
    for step in range(STEPS):
        drafts.append(int(drafter.target_ids(drafter.logits(output[:, -1]).argmax(-1))))
        feedback = drafter.feedback(output[:, -1:])
        output = drafter.step(ids[None, slot + 2 + step : slot + 3 + step], feedback, cache)
    return drafts


@torch.inference_mode()
def drafts_in_a_row(drafter: Drafter, ids: Tensor, captured: Tensor, slot: int) -> list[int]:
    """What decoding drafts from `slot`, on its own tokens."""
    cache = drafter.new_cache(1, slot + STEPS + 1)
    hidden = drafter.fuse(captured[None, : slot + 1])
    found: list[int] = draft_chain(drafter, ids[None, 1 : slot + 2], hidden, cache, STEPS)[
        0
    ].tolist()
    return found


def test_shares_are_those_of_drafting_token_by_token(
    bench: Bench, start: Variant, said: list[Conversation], tmp_path: Path
) -> None:
    """In greedy text what is right in a row is what decoding accepts."""
    few = [replace(one, ids=one.ids[: one.prompt_length + 24]) for one in said[:3]]
    shard = capture(bench.target, TRAINED_AT, few)
    found = training_side(stored(tmp_path, shard, TRAINED_AT), start, bench, STEPS)
    drafter = built(start, bench.target)
    alone, row, begin = [], [], 0
    for one in few:
        ids = torch.tensor(one.ids)
        captured = shard["captured"][begin : begin + len(ids)]
        begin += len(ids)
        for slot in range(one.prompt_length - 2, len(ids) - STEPS - 1):
            truth = ids[slot + 2 : slot + 2 + STEPS].tolist()
            for drafts, kept in ((drafts_alone, alone), (drafts_in_a_row, row)):
                made = drafts(drafter, ids, captured, slot)
                kept.append([a == b for a, b in zip(made, truth, strict=True)])
    assert found.positions == len(alone) == 3 * (24 - STEPS + 1)
    assert found.examples == 3
    assert list(found.accuracy) == pytest.approx(torch.tensor(alone).double().mean(0).tolist())
    together = torch.tensor(row).long().cumprod(-1).double().mean(0).tolist()
    assert list(found.cumulative) == pytest.approx(together, abs=1e-6)


def test_the_drafter_that_was_trained_here(bench: Bench, start: Variant, store: StateStore) -> None:
    found = training_side(store, start, bench, STEPS)
    assert found.expected_tau == pytest.approx(1 + sum(found.cumulative))
    assert found.expected_tau > 1.6
    assert found.accuracy[0] == found.cumulative[0]
    assert all(a >= c for a, c in zip(found.accuracy, found.cumulative, strict=True))
    assert list(found.cumulative) == sorted(found.cumulative, reverse=True)
    assert max(found.apart, found.final_apart) < 1e-4
    assert (found.boundaries, found.target) == (TRAINED_AT, bench.target.facts.name)


def test_states_in_bfloat16_are_scored_in_float32(
    bench: Bench, start: Variant, shard: Shard, store: StateStore, tmp_path: Path
) -> None:
    floats = {name: shard[name].to(torch.bfloat16) for name in ("captured", "final")}
    found = training_side(stored(tmp_path, {**shard, **floats}, TRAINED_AT), start, bench, STEPS)
    assert 1e-4 < found.apart < 0.02
    assert 1e-4 < found.final_apart < 0.02
    whole = training_side(store, start, bench, STEPS)
    assert found.expected_tau == pytest.approx(whole.expected_tau, abs=0.05)


@pytest.fixture(scope="module")
def court(trained_here: Path) -> Court:
    return Court(report=None, draft=str(trained_here), target="smollm2", config="config.json")


@pytest.fixture(scope="module")
def now(bench: Bench, start: Variant) -> Chains:
    return chains(built(start, bench.target), bench.evidence, STEPS, every=True)


Tell = Callable[[StateStore], list[Cause | str]]


@pytest.fixture
def told(bench: Bench, start: Variant, now: Chains, court: Court) -> Tell:
    """What a store says of the drafter that was trained here."""

    def tell(store: StateStore) -> list[Cause | str]:
        found = training_side(store, start, bench, STEPS)
        return list(of_training(found, start, now, bench, court))

    return tell


def test_other_boundaries_than_trained_are_a_cause_with_a_price(
    bench: Bench, damaged: Damaged, store: StateStore
) -> None:
    drafter = damaged(ids_shifted)
    found = diagnose(drafter, bench, None, Launch(), states=store, values=False)
    assert found.first.id is CauseId.BOUNDARIES
    said = "trained at boundaries 2, 15, 27, and the files say boundaries 4, 17, 29"
    assert said in found.first.evidence, found.text()
    assert found.first.returned is not None
    assert found.first.returned.value > 0.05
    assert found.training is not None
    assert found.training.expected_tau > 1.6  # at the boundaries of the store
    assert f"({found.training.expected_tau:.2f} on its training states)" in found.verdict
    assert not found.notes


def test_its_own_states_say_nothing_against_it(told: Tell, store: StateStore) -> None:
    assert told(store) == []


def test_boundaries_that_it_was_not_trained_at_are_no_cause(
    told: Tell, bench: Bench, said: list[Conversation], tmp_path: Path
) -> None:
    (note,) = told(stored(tmp_path, capture(bench.target, SHIFTED, said), SHIFTED))
    assert isinstance(note, str)
    assert "at boundaries 3, 16, 28, the files say 2, 15, 27, where it drafts better" in note


def test_states_of_another_target_are_noted(told: Tell, shard: Shard, tmp_path: Path) -> None:
    noise = torch.randn(shard["captured"].shape, generator=torch.Generator().manual_seed(0))
    perturbed = {**shard, "captured": shard["captured"] + 3 * noise}
    note, *_ = told(stored(tmp_path, perturbed, TRAINED_AT, "of somebody"))
    assert isinstance(note, str)
    assert "the stored states, of `of somebody`, are not those that this target gives" in note


def test_states_that_are_no_numbers_are_noted(told: Tell, shard: Shard, tmp_path: Path) -> None:
    empty = {**shard, "captured": torch.full_like(shard["captured"], float("nan"))}
    first, second = told(stored(tmp_path, empty, TRAINED_AT))
    assert "(nan apart)" in str(first)
    assert "hardly trained on these states" in str(second)
    last = {**shard, "final": torch.full_like(shard["final"], float("nan"))}
    assert "(nan apart)" in str(told(stored(tmp_path, last, TRAINED_AT))[0])


def test_what_is_good_in_training_alone_is_noted(
    bench: Bench, start: Variant, now: Chains, court: Court
) -> None:
    good = replace(made_up.TRAINING, boundaries=TRAINED_AT)
    (note,) = of_training(good, start, now, bench, court)
    assert f"tau 2.46 on the training states, {now.expected_tau:.2f} on the texts here" in str(note)
    assert "does not carry over" in str(note)


def test_a_weak_drafter_is_weak_in_training_too(
    bench: Bench, damaged: Damaged, store: StateStore, now: Chains
) -> None:
    weak = declared(damaged(barely_trained), bench.target).variant
    found = training_side(store, weak, bench, STEPS)
    replayed = chains(built(weak, bench.target), bench.evidence, STEPS, every=True)
    assert found.expected_tau < 1.2
    assert weakness(replayed, found) == (
        f"tau {replayed.expected_tau:.2f} from every position as trained",
        f"tau {found.expected_tau:.2f} on the states that it was trained on",
    )
    assert len(weakness(replayed, None)) == 1
    assert weakness(now, None) == weakness(now, made_up.TRAINING) == ()
    assert weakness(now, found) == ()  # states that it was hardly trained on


@pytest.mark.parametrize(
    ("change", "boundaries", "message"),
    [
        ({}, (2, 15), "1728 wide, the last 576"),
        ({}, (2, 15, 31), "30 layers"),
        ({"lengths": torch.tensor([4, 4])}, TRAINED_AT, "none of the 2 answers"),
        ({"final": torch.zeros(4000, 8)}, TRAINED_AT, "1728 wide, the last 8"),
        ({"ids": torch.full((4000,), 60000)}, TRAINED_AT, "token 60000"),
        ({"captured": torch.zeros(4000, 576)}, (2,), "fc takes 3 states"),
    ],
    ids=["width", "depth", "short", "final", "vocabulary", "count"],
)
def test_states_that_cannot_be_used_are_refused(
    bench: Bench,
    start: Variant,
    shard: Shard,
    tmp_path: Path,
    change: Shard,
    boundaries: tuple[int, ...],
    message: str,
) -> None:
    changed = {**shard, **change}
    if "lengths" in change:
        changed["prompt_lengths"] = torch.tensor([2, 3])
    with pytest.raises(UsageError, match=message) as caught:
        training_side(stored(tmp_path, changed, boundaries), start, bench, STEPS)
    assert caught.value.hint


def test_a_drafter_of_one_state_is_refused(bench: Bench, start: Variant, store: StateStore) -> None:
    last = LastState(reason=inferred("x", "x"), after_final_norm=inferred(True, "x"))
    alone = replace(start, spec=replace(start.spec, conditioning=last))
    with pytest.raises(UsageError, match="does not fuse any"):
        training_side(store, alone, bench, STEPS)


def test_as_it_is_typed(
    flat: Path,
    smollm2: Path,
    few_prompts: Path,
    shard: Shard,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    stored(tmp_path / "states", shard, TRAINED_AT, "SmolLM2")
    asked = ["diagnose", str(flat), "--target", str(smollm2), "--prompts", str(few_prompts)]
    asked += ["--no-values", "--engine", "vllm@0.33.0", "--states", str(tmp_path / "states")]
    code = main([*asked, "--format", "json", "--report", str(tmp_path / "why.html")])
    out, err = capsys.readouterr()
    assert code == 0, err
    document = json.loads(out)
    assert document["training"]["examples"] == 8
    assert document["training"]["boundaries"] == [*TRAINED_AT]
    assert document["training"]["expected_tau"] > 1.6
    assert document["notes"] == []
    assert "on its training states); as vllm@0.33.0 serves it" in document["verdict"]
    assert "scoring on the training states" in err
    page = (tmp_path / "why.html").read_text(encoding="utf-8")
    assert "states of SmolLM2 at boundaries 2, 15, 27" in page
    code = main([*asked, "--states", str(tmp_path / "none")])
    out, err = capsys.readouterr()
    assert code == 2
    assert "holds no states-*.safetensors" in err


def test_numbers_of_training_are_in_the_text_and_on_the_page() -> None:
    told = replace(made_up.DIAGNOSIS, training=made_up.TRAINING)
    found = elements(told)
    assert len(found.named("rect", "bar")) == 11
    trained, training = found.named("rect", "bar")[:2]
    assert width(training) / width(trained) == pytest.approx(0.74 / 0.6, abs=1e-4)
    said = "".join(found.texts)
    assert "74%, 61%, 50%" in said
    assert f"states of {made_up.HARMFUL} at boundaries 2, 15, 27: 9000 positions of 64" in said
    assert (
        "on its training states: 74%, 61%, 50% each step alone, 74%, 47%, 25% in a row;"
        " tau 2.46 from every position of 64 conversations\n" in told.text()
    )
