"""Folding stands for the folded names and for nothing else."""

from __future__ import annotations

import re
from itertools import chain

from hypothesis import given
from hypothesis import strategies as st

from eyas.checks.fold import Folder, fold

LAYERS = [f"layers.{i}.{part}" for i in range(4) for part in ("mlp.up", "mlp.down", "norm")]
ALL = [*LAYERS, "fc.weight", "fc.bias", "norm"]


def test_whole_layers_fold_into_one_pattern() -> None:
    assert fold(LAYERS, among=ALL) == ("layers.{0..3}.*",)


def test_a_single_layer_keeps_its_number() -> None:
    assert fold(LAYERS[:3], among=[*LAYERS[:3], "norm"]) == ("layers.0.*",)


def test_a_part_of_a_layer_folds_no_further() -> None:
    names = [name for name in LAYERS if ".mlp." in name]
    assert fold(names, among=ALL) == ("layers.{0..3}.mlp.*",)


def test_numbers_with_a_gap_are_listed() -> None:
    names = ["layers.0.norm", "layers.1.norm", "layers.3.norm"]
    assert fold(names, among=ALL) == ("layers.{0..1,3}.norm",)


def test_a_name_alone_stays_itself() -> None:
    assert fold(["fc.weight"], among=ALL) == ("fc.weight",)


@given(st.sets(st.sampled_from(ALL), min_size=1))
def test_patterns_expand_to_exactly_the_folded_names(names: set[str]) -> None:
    patterns = fold(sorted(names), among=ALL)
    covered = {name for name in ALL if any(_matches(pattern, name) for pattern in patterns)}
    assert covered == names


def _matches(pattern: str, name: str) -> bool:
    expression = re.escape(pattern).replace(r"\*", ".+")
    numbers = re.search(r"\\\{(.+?)\\\}", expression)
    if numbers:
        runs = [run.split(r"\.\.") for run in numbers.group(1).split(",")]
        members = chain.from_iterable(range(int(run[0]), int(run[-1]) + 1) for run in runs)
        choice = "|".join(map(str, members))
        expression = expression.replace(numbers.group(), f"(?:{choice})")
    return re.fullmatch(expression, name) is not None


def test_a_folder_folds_list_after_list_as_fold_does() -> None:
    names = [f"layers.{i}.{part}" for i in range(3) for part in ("q", "k")] + ["norm"]
    folder = Folder(names)
    for chosen in (names[:2], names[2:3], names):
        assert folder.fold(chosen) == fold(chosen, among=names)
