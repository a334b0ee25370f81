"""The form and the order of the map from draft ids to target ids."""

from __future__ import annotations

from typing import Any

import pytest
from tests.dialects.flat_drafter import D2T, FLAT, shapes

from eyas import dialects
from eyas.spec import Eagle3Spec, Origin, VocabMap, VocabOrder


def read(build: Any, config: dict[str, Any], more: Any = None, **maps: list[int]) -> Eagle3Spec:
    spec = dialects.read(build(config, shapes() | (more or {}), **maps))[1]
    assert isinstance(spec, Eagle3Spec)
    return spec


MASK = [int(i in (0, 5, 10, 15)) for i in range(20)]


@pytest.mark.parametrize(
    ("maps", "expected"),
    [
        ({"d2t": D2T, "t2d": MASK}, VocabMap.OFFSETS),
        ({"d2t": [0, 5, 10, 15], "t2d": MASK}, VocabMap.ABSOLUTE),
        ({"d2t": [0, 5, 10, 19]}, VocabMap.ABSOLUTE),
        ({"d2t": [0, 1, 2, 3]}, VocabMap.OFFSETS),
        ({"d2t": [15, 9, 3, -3]}, VocabMap.OFFSETS),
        ({"t2d": MASK}, VocabMap.OFFSETS),
    ],
)
def test_the_form_of_the_map_is_judged_by_its_numbers(
    build: Any, maps: dict[str, list[int]], expected: VocabMap
) -> None:
    assert read(build, FLAT, **maps).vocab_map.value is expected


@pytest.mark.parametrize(
    ("maps", "expected"),
    [
        ({"d2t": D2T}, VocabOrder.SORTED),
        ({"d2t": [15, 9, 3, -3]}, VocabOrder.UNSORTED),  # 15, 10, 5, 0
        ({"d2t": [0, 5, 10, 19]}, VocabOrder.SORTED),  # absolute ids
        ({"d2t": [19, 5, 10, 0]}, VocabOrder.UNSORTED),  # absolute ids
        ({"t2d": MASK}, VocabOrder.SORTED),
    ],
)
def test_the_order_of_the_map(build: Any, maps: dict[str, list[int]], expected: VocabOrder) -> None:
    assert read(build, FLAT, **maps).vocab_order.value is expected


def test_without_any_map(build: Any) -> None:
    small = read(build, FLAT)
    full = read(build, FLAT | {"draft_vocab_size": 20}, {"lm_head.weight": (20, 8)})

    assert small.vocab_map.value is VocabMap.PREFIX
    assert full.vocab_map.value is VocabMap.IDENTITY
    assert small.vocab_order.value is None
    assert full.vocab_order.value is None


def test_a_map_that_cannot_be_read_is_assumed_and_has_no_order(build: Any) -> None:
    spec = read(build, FLAT, {"d2t": (4,)})  # of floating numbers

    assert (spec.vocab_map.value, spec.vocab_map.origin) == (VocabMap.OFFSETS, Origin.ASSUMED)
    assert (spec.vocab_order.value, spec.vocab_order.origin) == (None, Origin.ABSENT)
