"""A source that changes while it is read is noticed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from eyas.checkpoint import Span, TensorBytes, Unchanged, open_checkpoint, write_checkpoint
from eyas.checkpoint.hub import INDEX
from eyas.convert import conversion, convert
from eyas.engines import EngineRef
from eyas.errors import CheckpointError

Make = Callable[..., Path]
OLD = EngineRef.parse("sglang@0.5.10.post1")


def touch(file: Path) -> None:
    raw = file.read_bytes()
    with file.open("r+b") as opened:
        opened.seek(len(raw) - 1)
        opened.write(bytes([raw[-1] ^ 1]))


def replace(file: Path) -> None:
    other = file.with_name("other")
    shutil.copy2(file, other)  # with its time
    other.replace(file)


def cut(file: Path) -> None:
    os.truncate(file, file.stat().st_size - 1)


CHANGES = pytest.mark.parametrize("change", [touch, replace, cut, Path.unlink])


@CHANGES
@pytest.mark.parametrize("name", ["config.json", "model-00002-of-00002.safetensors", INDEX])
def test_each_change_of_each_file_is_noticed(
    tmp_path: Path, change: Callable[[Path], None], name: str
) -> None:
    tensors = {n: TensorBytes(dtype="U8", shape=(4,), data=b"abcd") for n in "xy"}
    place = write_checkpoint(tmp_path / "d", {"a": 1}, tensors, shard_bytes=4)
    unchanged = Unchanged.since(open_checkpoint(place))
    (place / "README.md").write_text("not read")
    unchanged.require()

    change(place / name)

    with pytest.raises(CheckpointError, match=f"{name} changed while it was read; run it again"):
        unchanged.require()


def test_what_changed_since_it_was_opened_is_noticed(make_drafter: Make) -> None:
    draft = make_drafter()
    opened = open_checkpoint(draft)
    config = json.loads((draft / "config.json").read_text())
    (draft / "config.json").write_text(json.dumps({**config, "rope_theta": 7.0}))
    with pytest.raises(CheckpointError, match=r"config\.json changed while it was read"):
        Unchanged.since(opened)

    opened = open_checkpoint(draft)
    other = make_drafter("other", layer="layers.0.")
    (other / "model.safetensors").replace(draft / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"model\.safetensors changed while it was read"):
        Unchanged.since(opened)

    opened = open_checkpoint(draft)
    (draft / "model.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"model\.safetensors cannot be opened"):
        Unchanged.since(opened)


@CHANGES
@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
@pytest.mark.parametrize("moment", ["before the copying", "in its middle", "after it"])
def test_a_conversion_of_a_source_that_changes_is_one_sentence(
    make_drafter: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Path], None],
    name: str,
    moment: str,
) -> None:
    draft = make_drafter(layer="layers.0.")
    left = {"before the copying": 1, "in its middle": 4, "after it": 1}[moment]

    def step(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            change(draft / name)

    from eyas.checkpoint import write

    if moment == "after it":
        comparing = conversion.changed_numbers

        def compared(*arguments: object) -> list[str]:
            found = comparing(*arguments)  # type: ignore[arg-type]
            step()
            return found

        monkeypatch.setattr(conversion, "changed_numbers", compared)
    else:
        copying, planned = write.copy_span, conversion.plan

        def copied(*arguments: object) -> None:
            step()
            copying(*arguments)  # type: ignore[arg-type]

        def plan(*arguments: object, **named: object) -> object:
            found = planned(*arguments, **named)  # type: ignore[arg-type]
            monkeypatch.setattr(write, "copy_span", copied)  # the plan copies the maps as well
            return found

        monkeypatch.setattr(conversion, "plan", plan)

    with pytest.raises(CheckpointError, match=rf"{name} changed while it was read; run it again"):
        convert(open_checkpoint(draft), tmp_path / "out", OLD)

    assert left <= 0
    assert [path.name for path in tmp_path.iterdir()] == ["draft"]


def test_a_source_that_stays_is_converted(make_drafter: Make, tmp_path: Path) -> None:
    draft = make_drafter(layer="layers.0.")
    convert(open_checkpoint(draft), tmp_path / "out", OLD)
    assert open_checkpoint(tmp_path / "out").span("d2t") != Span(draft, 0)
