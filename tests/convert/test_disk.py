"""A disk that is full, at each file that is written: one sentence, and nothing is left."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Make = Callable[..., Path]
ENGINE = "sglang@0.5.10.post1"
EYAS = "from eyas.cli import main; raise SystemExit(main())"
PAGE = 4096

# Mounts a small disk of its own, fills it, converts onto it, and says what is left there. The
# drafter is read, and tried, on the other disk.
ON_A_SMALL_DISK = """
mount -t tmpfs -o size={size},nr_inodes={inodes} tmpfs {disk} || exit 77
{eyas} convert {draft} {disk}/{out} --to {engine}
code=$?
find {disk} -mindepth 1 >{left}
exit $code
"""


def on_a_small_disk(
    draft: Path, folder: Path, *, pages: int, inodes: int = 100, out: str = "out"
) -> tuple[int, str, str]:
    """Exit code, stderr and the files left of a conversion onto a disk of so many pages.

    The root of the disk is one of its inodes.
    """
    disk, left = folder / "disk", folder / "left"
    disk.mkdir()
    script = ON_A_SMALL_DISK.format(
        size=pages * PAGE,
        inodes=inodes,
        disk=disk,
        eyas=f"{sys.executable} -c '{EYAS}'",
        draft=draft,
        out=out,
        engine=ENGINE,
        left=left,
    )
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if not left.exists():
        pytest.skip(f"this system mounts no disk for its users: {done.stderr.strip()}")
    return done.returncode, done.stderr, left.read_text()


# Config and weights of the tiny drafter take a page each, and so does a card of 10 bytes.
@pytest.mark.parametrize(
    ("pages", "inodes", "card", "code"),
    [
        pytest.param(27, 5, 100_000, 0, id="room for all"),
        pytest.param(10, 100, 100_000, 2, id="no room for the card"),
        pytest.param(1, 100, 10, 2, id="none for the card's first page"),
        pytest.param(2, 100, 10, 2, id="no room for the weights"),
        pytest.param(40, 4, 10, 2, id="no inode for the weights"),
        pytest.param(40, 3, 10, 2, id="no inode for the card"),
        pytest.param(40, 2, 10, 2, id="no inode for the config"),
        pytest.param(40, 1, 10, 2, id="no inode for the directory"),
    ],
)
def test_a_full_disk_is_one_sentence_and_leaves_nothing(
    make_drafter: Make, tmp_path: Path, pages: int, inodes: int, card: int, code: int
) -> None:
    draft = make_drafter(layer="layers.0.")
    (draft / "README.md").write_bytes(os.urandom(card))

    ended, told, left = on_a_small_disk(draft, tmp_path, pages=pages, inodes=inodes)

    assert ended == code, told
    if code:
        out = tmp_path / "disk" / "out"
        sentence = f"error: {out} cannot be written: no space left on device; check the disk"
        assert told == f"{sentence} and the path\n"
        assert left == ""
    else:
        assert len(left.splitlines()) == 4


def test_folders_made_for_it_are_removed_as_well(make_drafter: Make, tmp_path: Path) -> None:
    draft = make_drafter(layer="layers.0.")

    ended, told, left = on_a_small_disk(draft, tmp_path, pages=1, out="deep/er/out")

    assert (ended, told.count("\n"), left) == (2, 1, "")


LIMITED = """
import resource, sys
from eyas.convert import conversion
from eyas.cli import main

planned = conversion.plan

def plan(*arguments, **named):  # which writes files of its own
    found = planned(*arguments, **named)
    resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
    return found

conversion.plan = plan
raise SystemExit(main())
"""


@pytest.mark.parametrize(
    ("limit", "card"), [(100, 0), (2000, 0), (50_000, 100_000)], ids=["config", "weights", "card"]
)
def test_a_file_that_may_not_grow_is_one_sentence_and_leaves_nothing(
    make_drafter: Make, tmp_path: Path, limit: int, card: int
) -> None:
    draft = make_drafter(layer="layers.0.")
    (draft / "README.md").write_bytes(os.urandom(card))
    sizes = [(draft / name).stat().st_size for name in ("config.json", "model.safetensors")]
    assert 100 < sizes[0] < 2000 < sizes[1] < 50_000
    out = tmp_path / "out"
    command = [sys.executable, "-c", LIMITED.format(limit=limit), "convert", draft, out]

    done = subprocess.run(
        [*command, "--to", ENGINE], capture_output=True, text=True, check=False, timeout=120
    )

    assert done.returncode == 2
    assert done.stderr == (
        f"error: {out} cannot be written: file too large; check the disk and the path\n"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["draft"]
