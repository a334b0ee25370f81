"""Planting: kinds drawn for a seed, and the damaged drafter written.

Its name tells nothing, and the labels lie in another folder.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.faults.catalogue import KINDS, together
from benchmarks.faults.draft import Draft
from benchmarks.faults.kind import Draw, Kind
from benchmarks.faults.setting import Setting


class Hidden(Exception):  # noqa: N818 - a draw that is drawn again
    """A fault whose matrix another fault took away: it lies nowhere."""


Source = Callable[[Setting], tuple[Path, Path]]  # a sound drafter in its form, and its target


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """A damaged drafter on disk, how it is served, and what is wrong with it."""

    directory: Path
    target: Path
    setting: Setting  # of the engine, after the damage
    launch: tuple[str, ...]
    kinds: tuple[str, ...]
    drew: dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be planted where."""

    kinds: tuple[Kind, ...]
    setting: Setting


def singles(settings: Sequence[Setting], count: int, draw: Draw) -> list[Plan]:
    """`count` single faults: every kind once before one comes again."""
    shown = [(kind, found) for kind in KINDS if (found := _shown((kind,), settings))]
    plans = []
    while len(plans) < count:
        for index in draw.permutation(len(shown)):
            kind, found = shown[index]
            plans.append(Plan((kind,), _one_base_then_setting(found, draw)))
    return plans[:count]


def pairs(settings: Sequence[Setting], count: int, draw: Draw) -> list[Plan]:
    """`count` pairs that do not hide one another, each kind about as often as the next."""
    all_pairs = [
        ((one, other), found)
        for index, one in enumerate(KINDS)
        for other in KINDS[:index]
        if together(one, other) and (found := _shown((one, other), settings))
    ]
    used: dict[str, int] = {}
    plans = []
    for _ in range(count):
        weights = [
            sum(used.get(kind.name, 0) for kind in pair) + draw.random() for pair, _ in all_pairs
        ]
        pair, found = all_pairs[int(np.argmin(weights))]
        for kind in pair:
            used[kind.name] = used.get(kind.name, 0) + 1
        plans.append(Plan(pair, _one_base_then_setting(found, draw)))
    return plans


def _shown(kinds: Sequence[Kind], settings: Sequence[Setting]) -> list[Setting]:
    return [setting for setting in settings if all(kind.shows(setting) for kind in kinds)]


def _one_base_then_setting(settings: Sequence[Setting], draw: Draw) -> Setting:
    """A setting of a base of chance: a base with many settings is drawn no oftener."""
    bases = sorted({setting.base for setting in settings})
    base = bases[int(draw.integers(len(bases)))]
    fitting = [setting for setting in settings if setting.base == base]
    return fitting[int(draw.integers(len(fitting)))]


def plant(plan: Plan, source: Source, drafters: Path, labels: Path, seed: Sequence[int]) -> Planted:
    """The faults of `plan` in a copy of the sound drafter, written below `drafters`.

    What a kind draws depends on `seed` and its name alone, so that it is the same in a pair.
    Raises AssertionError where a fault changed neither a file nor the launch, and Hidden where
    one took away what another had damaged.
    """
    clean, target = source(plan.setting)
    draft = Draft.read(clean, target, plan.setting)
    drew, damaged = {}, {}
    for kind in plan.kinds:
        before = _state(draft)
        draw = np.random.default_rng([*seed, *kind.name.encode()])
        drew[kind.name] = kind.plant(draft, draw)
        matrix = drew[kind.name].get("matrix")
        if matrix is not None and draft.has(matrix):
            damaged[kind.name] = matrix
        assert _state(draft) != before, f"{kind.name} changed nothing: {drew[kind.name]}"
    for name, matrix in damaged.items():
        if not draft.has(matrix):
            raise Hidden(f"{name} in {matrix}")
    directory = drafters / secrets.token_hex(8)
    draft.write(directory)
    planted = Planted(
        directory=directory,
        target=target,
        setting=draft.setting,
        launch=tuple(draft.launch),
        kinds=tuple(kind.name for kind in plan.kinds),
        drew=drew,
    )
    labels.mkdir(parents=True, exist_ok=True)
    label = json.dumps(asdict(planted), indent=2, default=str)
    (labels / f"{directory.name}.json").write_text(label + "\n")
    return planted


def _state(draft: Draft) -> tuple[object, ...]:
    config = json.dumps(draft.config, sort_keys=True)
    weights, beside = dict(draft.weights), {n: dict(t) for n, t in draft.beside.items()}
    return config, weights, beside, draft.setting, tuple(draft.launch)
