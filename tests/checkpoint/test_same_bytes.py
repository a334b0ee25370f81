"""Whether two tensors are the same, byte by byte, in little memory."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from eyas.checkpoint import Checkpoint, TensorBytes, open_checkpoint, same_bytes, write_checkpoint

SIZE = 2**18 + 5  # a piece and what is over


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Checkpoint, Checkpoint]:
    raw = bytes(i % 251 for i in range(SIZE))
    before = {
        "x": TensorBytes(dtype="U8", shape=(SIZE,), data=raw),
        "y": TensorBytes(dtype="U8", shape=(0, 3), data=b""),
    }
    after = {
        "same": before["x"],
        "first": replace(before["x"], data=b"\xff" + raw[1:]),
        "last of a piece": replace(before["x"], data=raw[: 2**18 - 1] + b"\xff" + raw[2**18 :]),
        "last": replace(before["x"], data=raw[:-1] + b"\xff"),
        "type": replace(before["x"], dtype="I8"),
        "shape": replace(before["x"], shape=(1, SIZE)),
        "empty": before["y"],
    }
    return (
        open_checkpoint(write_checkpoint(tmp_path / "before", {}, before)),
        open_checkpoint(write_checkpoint(tmp_path / "after", {}, after)),
    )


class Streamed(Checkpoint):
    """A checkpoint that is not at hand: its bytes come in uneven pieces."""

    __slots__ = ()

    def span(self, name: str) -> None:
        """Nowhere."""

    def chunks(self, name: str) -> Iterator[bytes]:
        raw = Checkpoint.read_bytes(open_checkpoint(self.directory), name)
        while raw:
            yield raw[:70_001]
            yield b""
            raw = raw[70_001:]


def streamed(checkpoint: Checkpoint) -> Checkpoint:
    fields = ("location", "directory", "config", "config_file", "tensors", "files", "revision")
    return Streamed(**{name: getattr(checkpoint, name) for name in fields})


@pytest.mark.parametrize("remote", [False, True], ids=["at hand", "streamed"])
def test_each_difference_is_found(pair: tuple[Checkpoint, Checkpoint], remote: bool) -> None:
    before, after = pair
    if remote:
        before = streamed(before)
    names = [*after.tensors, "missing"]
    assert [name for name in names if same_bytes(before, "x", after, name)] == ["same"]
    assert same_bytes(before, "y", after, "empty")
    assert not same_bytes(before, "missing", after, "same")


MEMORY = """
import resource, sys
from eyas.checkpoint import open_checkpoint, same_bytes, write_checkpoint, TensorBytes

one = open_checkpoint(sys.argv[1])
start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
tensor = TensorBytes(dtype="U8", shape=one.tensors["x"].shape, data=one.span("x"))
other = open_checkpoint(write_checkpoint(sys.argv[2], {}, {"x": tensor}))
assert same_bytes(one, "x", other, "x")
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start) // 1024)
"""


def test_copying_and_comparing_take_little_memory(tmp_path: Path) -> None:
    piece = bytes(range(1, 252)) * 66_000
    size = 20 * len(piece)
    tensor = TensorBytes(dtype="U8", shape=(size,), data=lambda: [piece] * 20)
    source = write_checkpoint(tmp_path / "source", {}, {"x": tensor})
    assert size > 300_000_000

    done = subprocess.run(
        [sys.executable, "-c", MEMORY, source, tmp_path / "out"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert int(done.stdout) < 30  # MiB
