"""Batched answers of the real target against one answer at a time, and the states of both."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.decode.oracle import tiny_target

from eyas.data import answers
from eyas.data.answer_settings import AnswerSettings
from eyas.data.answers import answer_prompts, chat_ids, choose
from eyas.data.conversation import Conversation, read_conversations, read_shard
from eyas.data.prompts import one_turn
from eyas.data.states import StateStore, capture_directory
from eyas.decode.greedy import generate
from eyas.errors import UsageError
from eyas.model.llama import LlamaTarget, StaticCache
from eyas.model.load import load_target, load_tokenizer

SETTINGS = AnswerSettings(
    batch_size=2, max_prompt_tokens=60, max_new_tokens=12, temperatures=(0.0,), seed=0
)
PROMPTS = [
    one_turn("short", "question", "What is bread?"),
    one_turn("long", "question", "Tell me how the people of a small village bake their bread."),
    one_turn("third", "math", "What is 2 + 2?"),
    one_turn("too long", "question", "word " * 80),
]


@pytest.fixture(scope="module")
def target(smollm2: Path) -> LlamaTarget:
    loaded = load_target(smollm2, dtype=torch.float32)
    assert isinstance(loaded, LlamaTarget)
    return loaded


@pytest.fixture(scope="module")
def answered(target: LlamaTarget, smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("answers")
    answer_prompts(
        target, load_tokenizer(smollm2), PROMPTS, directory, SETTINGS, lambda _, __: None
    )
    return directory


def test_greedy_answers_in_a_batch_are_those_given_alone(
    target: LlamaTarget, smollm2: Path, answered: Path
) -> None:
    tokenizer = load_tokenizer(smollm2)
    conversations = {c.id: c for c in read_conversations(answered)}
    assert conversations.keys() == {"short", "long", "third"}
    for prompt in PROMPTS[:3]:
        ids = chat_ids(tokenizer, prompt)
        said = conversations[prompt.id]
        assert list(said.ids[: said.prompt_length]) == ids
        assert said.answer_ids == generate(target, ids, max_new=12).tokens


def answers_of_tiny_rows(share: float, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], Any]:
    """(rows left at each move, all answers) of eight rows that end one after another."""
    monkeypatch.setattr(answers, "DONE_SHARE", share)
    moves: list[int] = []
    keep_rows = StaticCache.keep_rows

    def counted(cache: StaticCache, rows: torch.Tensor) -> None:
        moves.append(len(rows))
        keep_rows(cache, rows)

    monkeypatch.setattr(StaticCache, "keep_rows", counted)
    rows = [
        answers._Row(one_turn(str(i), "x", "x"), list(range(3, 5 + i)), (0.0, 1.5)[i % 2], [])
        for i in range(8)
    ]
    ends = (5, 11, 17, 23, 29)
    answers._generate(tiny_target(eos_ids=ends), rows, 40, torch.Generator().manual_seed(0))
    assert len({len(row.answer) for row in rows}) > 4
    monkeypatch.undo()
    return moves, [row.answer for row in rows]


def test_rows_are_moved_together_when_a_quarter_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once, expected = answers_of_tiny_rows(0.0, monkeypatch)
    moves, found = answers_of_tiny_rows(answers.DONE_SHARE, monkeypatch)
    assert found == expected
    assert len(moves) < len(at_once)
    sizes = [8, *moves]
    assert all(after <= 0.75 * before for before, after in itertools.pairwise(sizes))


def test_a_finished_shard_is_kept(target: LlamaTarget, smollm2: Path, answered: Path) -> None:
    files = sorted(answered.glob("*.jsonl"))
    assert [file.name for file in files] == ["answers-00000.jsonl", "answers-00001.jsonl"]
    first, second = (read_shard(file) for file in files)
    files[1].unlink()
    written: list[Path] = []

    def note(file: Path, _: Sequence[Conversation]) -> None:
        written.append(file)

    answer_prompts(target, load_tokenizer(smollm2), PROMPTS, answered, SETTINGS, note)
    assert written == [files[1]]
    assert read_shard(files[0]) == first
    assert read_shard(files[1]) == second


def test_captured_states_are_the_targets_own(
    target: LlamaTarget, answered: Path, tmp_path: Path
) -> None:
    capture_directory(target, (2, 15, 27), answered, tmp_path, lambda _, __: None)
    store = StateStore([tmp_path])
    conversations = list(read_conversations(answered))
    assert len(store) == len(conversations) == 3
    for index, said in enumerate(conversations):
        example = store[index]
        assert tuple(example.ids_T.tolist()) == said.ids
        assert example.prompt_length == said.prompt_length
        ids_1T = torch.tensor([said.ids])
        reading = target.forward(ids_1T, target.new_cache(1, len(said.ids)), (2, 15, 27))
        assert reading.captured_BTC is not None
        torch.testing.assert_close(
            example.captured_TC, reading.captured_BTC[0], atol=2e-2, rtol=1e-3
        )
        logits = example.final_TH @ target.head_VH.T
        torch.testing.assert_close(
            logits, target.logits(reading.final_BTH)[0], atol=2e-3, rtol=1e-3
        )


def test_an_empty_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"holds no states-\*.safetensors"):
        StateStore([tmp_path])


def test_answers_are_generated_on_the_targets_device(
    target: LlamaTarget, smollm2: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SeenError(Exception):
        pass

    def forward(ids_BT: torch.Tensor, cache: StaticCache, _: object) -> None:
        assert cache.starts_B is not None
        raise SeenError(f"{ids_BT.device} {cache.starts_B.device}")

    monkeypatch.setattr(target, "device", torch.device("meta"))  # computes nothing
    monkeypatch.setattr(target, "forward", forward)
    with pytest.raises(SeenError, match="meta meta"):
        answer_prompts(
            target, load_tokenizer(smollm2), PROMPTS, tmp_path, SETTINGS, lambda _, __: None
        )


def test_choosing_is_the_argmax_or_follows_the_distribution() -> None:
    share = torch.tensor([0.1, 0.6, 0.3])
    logits = share.log().expand(6000, 3)
    hot = torch.ones(6000)
    hot[::2] = 0.0
    chosen = choose(logits, hot, torch.Generator().manual_seed(0))
    assert (chosen[::2] == 1).all()
    found = torch.bincount(chosen[1::2], minlength=3) / 3000
    torch.testing.assert_close(found, share, atol=0.03, rtol=0)
    cold = choose(logits, torch.full((6000,), 0.1), torch.Generator().manual_seed(0))
    assert (cold == 1).float().mean() > 0.99
