"""Sound drafters: one trained drafter in other files, or served elsewhere, and nothing lost.

Each is drawn for a seed. What changes is of no account to the acceptance, or costs what was asked
for (fewer draft tokens).
"""

from __future__ import annotations

import secrets
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from benchmarks.diagnose_bases import SMOLLM2, Base, in_form
from benchmarks.faults.draft import HEAD, MAP, Draft
from benchmarks.faults.setting import Setting

from eyas.checkpoint import open_checkpoint, open_target
from eyas.convert import Wishes, convert, parse_goal
from eyas.convert.edits.vocabulary import Pruning

Draw = np.random.Generator
_LLAMACPP = "11549"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sound:
    """A drafter on disk that is served as it was trained."""

    path: Path
    setting: Setting
    launch: tuple[str, ...]
    variation: str


def sound_drafter(base: Base, number: int, folder: Path, forms: Path, draw: Draw) -> Sound:
    """The `number`-th sound drafter of a run, below `folder`."""
    # a tiny target's tokenizer has no name in llama.cpp
    variations = tuple(name for name in VARIATIONS if name != "gguf" or base.name == SMOLLM2)
    name = variations[number % len(variations)]
    # a setting of its own for each, as long as there are so many
    setting = base.settings[int(draw.permutation(len(base.settings))[0])]
    out = folder / secrets.token_hex(8)
    folder.mkdir(parents=True, exist_ok=True)
    return VARIATIONS[name](base, setting, out, forms, draw)


def _as_it_is(base: Base, setting: Setting, out: Path, forms: Path, draw: Draw) -> Sound:
    """Another producer's files, another engine."""
    shutil.copytree(in_form(base, setting.form, forms), out)
    return _sound(out, setting, "as-it-is")


def _wider(base: Base, setting: Setting, out: Path, forms: Path, draw: Draw) -> Sound:
    """The same numbers as float32, or rounded to float16."""
    dtype = ("float32", "float16")[int(draw.integers(2))]
    return _converted(base, setting, out, forms, Wishes(dtype=dtype), dtype)


def _sharded(base: Base, setting: Setting, out: Path, forms: Path, draw: Draw) -> Sound:
    """Weights in several files with an index."""
    whole = sum(f.stat().st_size for f in in_form(base, setting.form, forms).glob("*.safetensors"))
    wishes = Wishes(shard_bytes=int(whole * draw.uniform(0.3, 0.7)))
    return _converted(base, setting, out, forms, wishes, "sharded")


def _pruned(base: Base, setting: Setting, out: Path, forms: Path, draw: Draw) -> Sound:
    """Fewer draft tokens: the ones that are written most."""
    config = Draft.read(in_form(base, setting.form, forms), base.target, setting).config
    size = int(config["draft_vocab_size"] * draw.uniform(0.6, 0.9))
    wishes = Wishes(pruning=Pruning(size=size, counts=base.counts))
    return _converted(base, setting, out, forms, wishes, "pruned")


def _unsorted(base: Base, setting: Setting, out: Path, forms: Path, draw: Draw) -> Sound:
    """Draft ids in another order, in head and map alike, as ModelOpt's are."""
    draft = Draft.read(in_form(base, setting.form, forms), base.target, setting)
    offsets = draft.held(MAP).whole()
    order = draw.permutation(len(offsets))
    ids = (offsets + np.arange(len(offsets)))[order]
    draft.put(MAP, ids - np.arange(len(ids)))
    draft.put(HEAD, draft.floats(HEAD)[order])
    draft.write(out)
    return _sound(out, setting, "unsorted")


def _shuffled_file(base: Base, setting: Setting, out: Path, forms: Path, draw: Draw) -> Sound:
    """Tensors and keys in another order within their files."""
    draft = Draft.read(in_form(base, setting.form, forms), base.target, setting)
    names, keys = list(draft.weights), list(draft.config)
    draft.weights = {names[i]: draft.weights[names[i]] for i in draw.permutation(len(names))}
    draft.config = {keys[i]: draft.config[keys[i]] for i in draw.permutation(len(keys))}
    draft.write(out)
    return _sound(out, setting, "shuffled file")


def _other_launch(base: Base, setting: Setting, out: Path, forms: Path, draw: Draw) -> Sound:
    """The launch spelled out, with options of no account here."""
    shutil.copytree(in_form(base, setting.form, forms), out)
    longest = str(int(draw.choice([1024, 2048, 4096])))
    typed = {
        "sglang": ("speculative_algorithm=EAGLE3", f"context_length={longest}"),
        "vllm": ("method=eagle3", f"max_model_len={longest}"),
    }
    return _sound(out, replace(setting, launch=typed[setting.engine]), "other launch")


def _gguf(base: Base, setting: Setting, out: Path, forms: Path, draw: Draw) -> Sound:
    """A GGUF file for llama.cpp."""
    file = out.with_suffix(".gguf")
    goal = parse_goal(f"llamacpp@{_LLAMACPP}")
    convert(open_checkpoint(base.drafter), file, goal, target=open_target(base.target))
    served = Setting(base=base.name, form="gguf", engine="llamacpp", version=_LLAMACPP)
    return _sound(file, served, "gguf")


def _converted(
    base: Base, setting: Setting, out: Path, forms: Path, wishes: Wishes, variation: str
) -> Sound:
    dialect = parse_goal(setting.form.partition("+")[0])
    source = open_checkpoint(in_form(base, setting.form, forms))
    convert(source, out, dialect, target=open_target(base.target), wishes=wishes)
    return _sound(out, setting, variation)


def _sound(path: Path, setting: Setting, variation: str) -> Sound:
    return Sound(path=path, setting=setting, launch=setting.launch, variation=variation)


Vary = Callable[[Base, Setting, Path, Path, Draw], Sound]
VARIATIONS: dict[str, Vary] = {
    "as-it-is": _as_it_is,
    "type": _wider,
    "sharded": _sharded,
    "pruned": _pruned,
    "unsorted": _unsorted,
    "shuffled file": _shuffled_file,
    "other launch": _other_launch,
    "gguf": _gguf,
}
