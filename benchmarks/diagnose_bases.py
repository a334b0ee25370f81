"""The trained drafters that are damaged for `benchmarks/score_diagnose.py`, in every form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from benchmarks import tiny_bases
from benchmarks.faults.setting import Setting, sound_settings

from eyas.checkpoint import open_checkpoint, open_target
from eyas.checks import Severity, check
from eyas.convert import Share, Wishes, convert, parse_goal
from eyas.demo.assets import PROMPTS
from eyas.engines import EngineRef, Launch
from eyas.model.smollm2 import ensure_smollm2

SMOLLM2 = "smollm2"
NAMES = (SMOLLM2, *tiny_bases.NAMES)
ASSET = Path(__file__).resolve().parents[1] / "assets" / "smollm2-eagle3"
ANSWERS = Path(__file__).resolve().parent / "answers" / "smollm2.safetensors"


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    """A trained drafter, its target, and the settings in which it is served as it was trained.

    `prompts` is a file of prompts for the target; None stands for the package's own. `counts` are
    how often each of the target's tokens was written.
    """

    name: str
    drafter: Path
    target: Path
    prompts: Path | None
    settings: tuple[Setting, ...]
    counts: Mapping[int, float]

    @property
    def prompts_file(self) -> Path:
        """The prompts, wherever they are."""
        return self.prompts or PROMPTS


def smollm2() -> Base:
    """The drafter that comes with eyas, for SmolLM2-135M."""
    from safetensors.numpy import load_file

    ids, counts = np.unique(load_file(ANSWERS)["answers"], return_counts=True)
    return Base(
        name=SMOLLM2,
        drafter=ASSET,
        target=ensure_smollm2(),
        prompts=None,
        settings=sound_settings(SMOLLM2),
        counts=dict(zip(ids.tolist(), counts.astype(float).tolist(), strict=True)),
    )


def tiny(name: str, forms: Path) -> Base:
    """A tiny target of another form, and its drafter over boundaries that are not the default."""
    folder = tiny_bases.made(name)
    found = Base(
        name=name,
        drafter=folder / "drafter",
        target=folder / "target",
        prompts=folder / "prompts.jsonl",
        settings=(),
        counts=tiny_bases.counts(),
    )
    candidates = sound_settings(name, default_boundaries=False)
    return replace(found, settings=tuple(s for s in candidates if _serves(found, s, forms)))


def _serves(base: Base, setting: Setting, forms: Path) -> bool:
    """Whether the engine takes such a target at all, and then the drafter as it was trained."""
    facts = open_target(base.target)
    files = open_checkpoint(in_form(base, setting.form, forms))
    report = check(files, (EngineRef.parse(setting.ref),), target=facts, launch=Launch())
    return not any(finding.severity is Severity.ERROR for finding in report.findings)


def bases_of(names: Sequence[str], forms: Path) -> dict[str, Base]:
    """The bases of these names; `forms` is the folder of `in_form`."""
    return {name: smollm2() if name == SMOLLM2 else tiny(name, forms) for name in names}


def in_form(base: Base, form: str, folder: Path) -> Path:
    """`base` in the files of a `form`, as eyas converts it; made once below `folder`.

    What its directory says in words stays behind: the name and the text would tell.
    """
    made = folder / base.name / form
    if not made.is_dir():
        dialect, _, embedding = form.partition("+")
        convert(
            open_checkpoint(base.drafter),
            made,
            parse_goal(dialect),
            target=open_target(base.target),
            wishes=Wishes(embedding=Share.ADD if embedding else Share.KEEP),
        )
        (made / "README.md").unlink(missing_ok=True)
    return made
