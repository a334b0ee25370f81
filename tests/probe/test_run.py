"""A child that misbehaves costs its own answer and nothing else."""

import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from eyas.errors import ProbeError
from eyas.probe.job import Job
from eyas.probe.recipes.recipe import Recipe
from eyas.probe.run import Interpreter, Limits, ask

HEAD = """
import json, os, subprocess, sys, time
jobs = json.load(open(sys.argv[1]))
if "cannot import" not in jobs[0]["location"]:
    open(sys.argv[2], "a").close()
for job in jobs:
    what = job["location"]
    {body}
    with open(sys.argv[2], "a") as out:
        out.write(json.dumps({{"answer": what}}) + "\\n")
"""


def interpreter(folder: Path, body: str, python: str = sys.executable) -> Interpreter:
    script = folder / "probe.py"
    script.write_text(HEAD.format(body=body.replace("\n", "\n    ")))
    recipe = Recipe(
        engine="vllm", newest="1", script=str(script), steps=lambda version, cuda: (), check=""
    )
    return Interpreter(recipe=recipe, python=Path(python), variables={"ASKED": "yes"})


def jobs(*names: str) -> list[Job]:
    return [
        Job(draft=Path("d"), target=None, location=name, launch={}, runner=None) for name in names
    ]


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def test_every_job_is_answered_in_order(tmp_path: Path) -> None:
    seen: list[None] = []
    body = 'assert os.environ["ASKED"] == "yes"\nassert "PYTHONPATH" not in os.environ'
    answers = ask(interpreter(tmp_path, body), jobs("a", "b"), Limits(), lambda: seen.append(None))
    assert answers == [{"answer": "a"}, {"answer": "b"}]
    assert len(seen) == 2


def test_a_child_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    body = (
        'if what == "hang":\n'
        '    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])\n'
        f'    open({str(tmp_path / "pid")!r}, "w").write(str(child.pid))\n'
        "    time.sleep(600)"
    )
    begun = monotonic()
    one, two, three = ask(interpreter(tmp_path, body), jobs("a", "hang", "b"), Limits(seconds=2.0))
    assert monotonic() - begun < 60
    assert (one, three) == ({"answer": "a"}, {"answer": "b"})
    assert isinstance(two, ProbeError)
    assert "gave no answer in 2 s" in two.message
    child = int((tmp_path / "pid").read_text())
    for _ in range(50):
        if not alive(child):
            break
        sleep(0.1)
    assert not alive(child)


def test_a_child_that_eats_memory_is_ended(tmp_path: Path) -> None:
    body = 'if what == "eat":\n    eaten = [bytearray(2**24) for _ in range(100)]'
    one, two = ask(interpreter(tmp_path, body), jobs("eat", "b"), Limits(memory=200 * 2**20))
    assert isinstance(one, ProbeError)
    assert "MemoryError" in one.message or "of memory" in one.message
    assert two == {"answer": "b"}


def test_a_child_that_dies_has_its_last_words_told(tmp_path: Path) -> None:
    body = 'if what == "die":\n    raise SystemExit("no such thing")'
    one, two = ask(interpreter(tmp_path, body), jobs("a", "die"), Limits())
    assert one == {"answer": "a"}
    assert isinstance(two, ProbeError)
    assert "no such thing" in two.message


def test_an_engine_that_cannot_be_imported_is_a_sentence(tmp_path: Path) -> None:
    body = 'sys.stderr.write("ModuleNotFoundError: No module named vllm\\n"); sys.exit(3)'
    with pytest.raises(ProbeError, match="cannot import vllm") as caught:
        ask(interpreter(tmp_path, body), jobs("cannot import"), Limits())
    assert caught.value.hint == "run: eyas engine install vllm"


def test_a_python_that_is_none_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(ProbeError, match="cannot be started"):
        ask(interpreter(tmp_path, "pass", str(tmp_path)), jobs("a"), Limits())
    (answer,) = ask(interpreter(tmp_path, "pass", "/bin/true"), jobs("a"), Limits())
    assert isinstance(answer, ProbeError)
    assert "without an answer" in answer.message


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    ask(interpreter(tmp_path, "pass"), jobs("a"), Limits())
    assert list((tmp_path / "tmp").iterdir()) == []
