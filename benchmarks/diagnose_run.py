"""A run of the score: its drafters are made one by one, diagnosed, and the outcomes kept."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.diagnose_bases import Base, in_form
from benchmarks.diagnose_verdicts import PAIR, SINGLE, SLIGHT, SOUND, STORY
from benchmarks.faults.catalogue import KINDS
from benchmarks.faults.kind import Sign
from benchmarks.faults.planting import Hidden, Plan, Planted, pairs, plant, singles
from benchmarks.faults.setting import Setting
from benchmarks.faults.story import story
from benchmarks.harm import LEAST, Harm
from benchmarks.sound_drafters import sound_drafter

TRIES = 6  # draws of a fault's parameters until it costs some acceptance
SEEN_IN_REPLAY = frozenset(kind.name for kind in KINDS if kind.sign is Sign.REPLAY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosed:
    """The causes by their ids, most likely first, and the verdict in words."""

    causes: tuple[str, ...]
    said: str


Diagnose = Callable[[Base, Path, str, Sequence[str]], Diagnosed]


@dataclass(frozen=True, slots=True)
class Item:
    """One drafter of a run: what is planted in it, or the number of a sound one."""

    index: int
    sort: str
    plan: Plan | None = None
    number: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """A drafter that lies on disk; `cost` is of each fault, where it was measured."""

    base: Base
    path: Path
    setting: Setting
    launch: tuple[str, ...]
    kinds: tuple[str, ...] = ()
    variation: str = ""
    drew: Mapping[str, Any] = field(default_factory=dict)
    cost: Mapping[str, float] = field(default_factory=dict)

    @property
    def slight(self) -> bool:
        """Whether one of the faults costs this drafter next to nothing."""
        return any(value < LEAST for value in self.cost.values())


@dataclass(slots=True, kw_only=True)
class Run:
    """A run of one seed in a folder of its own."""

    seed: int
    folder: Path
    forms: Path  # of the sound drafters, for all runs
    bases: Mapping[str, Base]
    diagnose: Diagnose
    _harms: dict[str, Harm] = field(default_factory=dict)
    _sound_taus: dict[tuple[str, str], float] = field(default_factory=dict)

    def items(self, counts: Mapping[str, int]) -> list[Item]:
        """All drafters of the run, the same ones for the same seed and counts."""
        draw = np.random.default_rng(self.seed)
        settings = [setting for base in self.bases.values() for setting in base.settings]
        # over boundaries that are not the default, that engine would lose a third thing
        told = [story("smollm2")] if "smollm2" in self.bases else []
        planned = [(STORY, plan) for plan in told * counts[STORY]]
        planned += [(SINGLE, plan) for plan in singles(settings, counts[SINGLE], draw)]
        planned += [(PAIR, plan) for plan in pairs(settings, counts[PAIR], draw)]
        items = [Item(index, sort, plan) for index, (sort, plan) in enumerate(planned)]
        first = len(items)
        return items + [Item(first + n, SOUND, None, n) for n in range(counts[SOUND])]

    def outcomes(self) -> list[dict[str, Any]]:
        """What was diagnosed so far; a line that a stop cut off is left out."""
        if not self._file.is_file():
            return []
        lines = self._file.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.endswith("\n")]

    def score(self, item: Item, *, keep: bool) -> dict[str, Any]:
        """Make the drafter of `item`, diagnose it, and keep the outcome; with `keep` its files."""
        made = self._sound(item) if item.plan is None else self._damaged(item, item.plan)
        began, used = time.perf_counter(), time.process_time()
        found = self.diagnose(made.base, made.path, made.setting.ref, made.launch)
        outcome = {
            "index": item.index,
            "sort": SLIGHT if made.slight else item.sort,
            "base": made.base.name,
            "form": made.setting.form,
            "ref": made.setting.ref,
            "launch": list(made.launch),
            "kinds": list(made.kinds),
            "variation": made.variation,
            "drew": made.drew,
            "cost": made.cost,
            "causes": list(found.causes),
            "said": found.said,
            "seconds": round(time.perf_counter() - began, 2),
            "cpu_seconds": round(time.process_time() - used, 2),
            "path": str(made.path) if keep else None,
        }
        with self._file.open("a") as file:
            file.write(json.dumps(outcome, default=str) + "\n")
        if not keep:
            _remove(made.path)
        written: dict[str, Any] = json.loads(json.dumps(outcome, default=str))
        return written

    @property
    def _file(self) -> Path:
        return self.folder / "outcomes.jsonl"

    def _sound(self, item: Item) -> Made:
        base = list(self.bases.values())[item.number % len(self.bases)]
        number = item.number // len(self.bases)
        draw = np.random.default_rng([self.seed, item.index])
        sound = sound_drafter(base, number, self.folder / "drafters", self.forms, draw)
        return Made(
            base=base,
            path=sound.path,
            setting=sound.setting,
            launch=sound.launch,
            variation=sound.variation,
        )

    def _damaged(self, item: Item, plan: Plan) -> Made:
        """The planted drafter; a fault that is seen in acceptance alone is one that costs some."""
        base = self.bases[plan.setting.base]
        for number in range(TRIES):
            seed = (self.seed, item.index, number)
            cost = self._costs(base, plan, seed)
            last = number == TRIES - 1
            if not last and any(value < LEAST for value in cost.values()):
                continue
            try:
                planted = self._plant(base, plan, seed)
            except Hidden:
                if last:
                    raise
            else:
                break
        return Made(
            base=base,
            path=planted.directory,
            setting=planted.setting,
            launch=planted.launch,
            kinds=planted.kinds,
            drew=planted.drew,
            cost=cost,
        )

    def _costs(self, base: Base, plan: Plan, seed: Sequence[int]) -> dict[str, float]:
        """What each fault takes of tau that is seen in acceptance alone, planted alone."""
        cost = {}
        for kind in plan.kinds:
            if kind.name in SEEN_IN_REPLAY:
                alone = self._plant(base, Plan((kind,), plan.setting), seed)
                ref, launch = alone.setting.ref, alone.launch
                served = self._harm(base).tau(alone.directory, ref, launch)
                cost[kind.name] = round(self._sound_tau(base, plan.setting) - served, 4)
                _remove(alone.directory)
        return cost

    def _plant(self, base: Base, plan: Plan, seed: Sequence[int]) -> Planted:
        def source(setting: Setting) -> tuple[Path, Path]:
            return in_form(base, setting.form, self.forms), base.target

        drafters, labels = self.folder / "drafters", self.folder / "labels"
        return plant(plan, source, drafters, labels, seed)

    def _sound_tau(self, base: Base, setting: Setting) -> float:
        key = base.name, setting.form
        if key not in self._sound_taus:
            files = in_form(base, setting.form, self.forms)
            self._sound_taus[key] = self._harm(base).tau(files, setting.ref, setting.launch)
        return self._sound_taus[key]

    def _harm(self, base: Base) -> Harm:
        if base.name not in self._harms:
            self._harms[base.name] = Harm(base.target, base.prompts_file)
        return self._harms[base.name]


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()
