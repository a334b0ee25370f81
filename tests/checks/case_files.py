"""Case folders: a drafter as data, written to disk, and what check is to say of it.

config.json, target_config.json   as they are
tensors.json     name → dtype, shape and, where its numbers matter, fill (see `filled`);
                 target_tensors.json where the target's are looked at
tokenizer.json   beside the drafter; target_tokenizer.json beside its target
expect.json      why, engines, launch, values, and findings: engine or "files" → code → severity;
                 skipped: engine → codes that could not run; pickled: true where torch.save writes
                 the weights
"""

from __future__ import annotations

import json
import math
import random
import struct
from pathlib import Path
from typing import Any

from tests.checkpoint.torch_archive import pickle_weights

from eyas.checkpoint import open_checkpoint, open_target, write_sparse
from eyas.checks import Report, check
from eyas.engines import EngineRef, Launch

CASES = Path(__file__).parent / "cases"
FOLDERS = sorted(folder for folder in CASES.iterdir() if folder.is_dir())
CODES = {"BOOL": "B", "U8": "B", "I8": "b", "I32": "i", "I64": "q", "F32": "f"}


def expectation(folder: Path) -> dict[str, Any]:
    """What expect.json says."""
    loaded: dict[str, Any] = json.loads((folder / "expect.json").read_text())
    return loaded


def written(folder: Path, place: Path) -> Path:
    """The drafter of `folder` as a new directory at `place`: holes, and the numbers that matter."""
    directory = _written(folder, "", place)
    if expectation(folder).get("pickled", False):
        pickle_weights(directory)
    return directory


def _written(folder: Path, prefix: str, place: Path) -> Path:
    tensors = json.loads((folder / f"{prefix}tensors.json").read_text())
    beside = folder / f"{prefix}tokenizer.json"
    return write_sparse(
        place,
        json.loads((folder / f"{prefix}config.json").read_text()),
        {name: (t["dtype"], tuple(t["shape"])) for name, t in tensors.items()},
        {name: filled(name, **t) for name, t in tensors.items() if "fill" in t},
        {"tokenizer.json": beside.read_text()} if beside.is_file() else None,
    )


def judged(folder: Path, scratch: Path) -> Report:
    """The report on the drafter of `folder`, which is written into `scratch`."""
    expected = expectation(folder)
    return check(
        open_checkpoint(written(folder, scratch / "draft")),
        [EngineRef.parse(text) for text in expected.get("engines", [])],
        target=open_target(target) if (target := target_of(folder, scratch)) else None,
        launch=Launch.parse(expected.get("launch", [])),
        values=expected.get("values", False),
    )


def target_of(folder: Path, scratch: Path) -> Path | None:
    """The directory of the case's target, None where it has none."""
    place = scratch / "target"
    if (folder / "target_tensors.json").is_file():
        return _written(folder, "target_", place)
    for name in ("config.json", "tokenizer.json"):
        given = folder / f"target_{name}"
        if given.is_file():
            place.mkdir(exist_ok=True)
            (place / name).write_text(given.read_text())
    return place if (place / "config.json").is_file() else None


def filled(name: str, *, dtype: str, shape: list[int], fill: dict[str, Any]) -> bytes:
    """The bytes of a tensor.

    `fill` is one of: {"numbers": […]}; {"from": a, "step": b}; {"value": x}; {"every": k, "count":
    n}, a mask of the first n multiples of k; {"noise": std} and {"uniform": most}, the same for the
    same name. Any may have "at": {index: number}, which replaces single ones.
    """
    count = math.prod(shape)
    if "numbers" in fill:
        numbers = list(fill["numbers"])
    elif "step" in fill:
        numbers = [fill["from"] + i * fill["step"] for i in range(count)]
    elif "value" in fill:
        numbers = [fill["value"]] * count
    elif "every" in fill:
        last = fill["every"] * fill["count"]
        numbers = [int(i % fill["every"] == 0 and i < last) for i in range(count)]
    elif "uniform" in fill:  # evenly spread, so that few numbers show the spread of many
        most = fill["uniform"]
        numbers = [most * (2 * (i + 0.5) / count - 1) for i in range(count)]
        random.Random(name).shuffle(numbers)
    else:
        source = random.Random(name)
        numbers = [source.gauss(0, fill["noise"]) for _ in range(count)]
    for index, number in fill.get("at", {}).items():
        numbers[int(index)] = math.nan if number == "NaN" else number
    assert len(numbers) == count, name
    if dtype == "BF16":  # the upper half of a float32
        return b"".join(struct.pack("<f", number)[2:] for number in numbers)
    return struct.pack(f"<{count}{CODES[dtype]}", *numbers)
