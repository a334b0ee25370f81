"""Exactness of the accept/reject loop, whatever is drafted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from tests.decode.oracle import PROMPT, Oracle, tiny_target

from eyas.decode.generation import divergence
from eyas.decode.greedy import generate
from eyas.errors import UsageError


@pytest.mark.parametrize("steps", [1, 3, 5, 8])
@pytest.mark.parametrize("error", [0.0, 0.3, 1.0])
def test_output_is_the_targets_own(steps: int, error: float) -> None:
    target = tiny_target()
    plain = generate(target, PROMPT, max_new=60)
    assert len(set(plain.tokens)) > 10  # a target that repeats one token would prove little
    oracle: Any = Oracle(text=PROMPT + plain.tokens, error=error)
    drafted = generate(target, PROMPT, max_new=60, drafter=oracle, steps=steps)
    assert divergence(plain, drafted) is None
    assert drafted.tokens == plain.tokens
    assert drafted.acceptance is not None
    tau = drafted.acceptance.tau
    assert tau is not None
    if error == 0.0:
        # the answer's end cuts what the oracle knows in the last round alone
        assert tau > steps
    elif error == 1.0:
        assert tau == 1.0
    else:
        expected = (1 - 0.7 ** (steps + 1)) / 0.3
        assert tau == pytest.approx(expected, rel=0.35)


def test_an_answer_ends_at_eos_and_keeps_it() -> None:
    free = generate(tiny_target(), PROMPT, max_new=40)
    eos = free.tokens[20]
    end = free.tokens.index(eos) + 1
    target = tiny_target(eos_ids=(eos,))
    oracle: Any = Oracle(text=PROMPT + free.tokens, error=0.2)
    assert generate(target, PROMPT, max_new=40).tokens == free.tokens[:end]
    drafted = generate(target, PROMPT, max_new=40, drafter=oracle, steps=4)
    assert drafted.tokens == free.tokens[:end]


@pytest.mark.parametrize("max_new", [1, 2, 17, 40])
def test_a_listener_hears_the_answer_as_it_grows(max_new: int) -> None:
    free = generate(tiny_target(), PROMPT, max_new=60)
    target = tiny_target(eos_ids=(free.tokens[30],))
    oracle: Any = Oracle(text=PROMPT + free.tokens, error=0.2)
    heard: list[int] = []
    drafted: list[int] = []

    def hear(tokens: Sequence[int], from_the_drafter: int) -> None:
        assert 0 <= from_the_drafter <= len(tokens)
        heard.extend(tokens)
        drafted.append(from_the_drafter)

    answer = generate(target, PROMPT, max_new=max_new, drafter=oracle, steps=3, hear=hear)
    assert tuple(heard) == answer.tokens
    assert answer.acceptance is not None
    # the first round is the prompt's; what the end cut off was accepted, and not heard
    assert len(drafted) == answer.acceptance.rounds + 1
    assert drafted[0] == 0
    assert sum(drafted) <= answer.acceptance.accepted <= sum(drafted) + 3
    assert sum(drafted[:-1]) + len(drafted) - 1 < len(answer.tokens) or max_new == 1


def test_a_wrong_answer_is_seen_as_a_divergence() -> None:
    target = tiny_target()
    plain = generate(target, PROMPT, max_new=20)
    other = generate(tiny_target(seed=1), PROMPT, max_new=20)
    found = divergence(plain, other)
    assert found is not None
    assert not found.numeric


@pytest.mark.parametrize(("prompt", "max_new"), [((), 4), (PROMPT, 0)])
def test_nothing_to_do_is_refused(prompt: tuple[int, ...], max_new: int) -> None:
    with pytest.raises(UsageError):
        generate(tiny_target(), prompt, max_new=max_new)
