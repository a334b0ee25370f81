"""SGLang's environments: one set of packages for all versions, and one transformers for each."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from eyas.errors import ProbeError
from eyas.probe.recipes import llamacpp
from eyas.probe.recipes.recipe import Bench
from eyas.probe.recipes.sglang import RECIPE


@dataclass(frozen=True, slots=True, kw_only=True)
class Notes(Bench):
    """A bench that writes down what it is told instead of doing it."""

    calls: list[tuple[str, ...]] = field(default_factory=list)

    def make_venv(self) -> None:
        (self.directory / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
        self.calls.append((self.directory.name, "venv"))

    def pip(self, *arguments: str) -> None:
        self.calls.append((self.directory.name, *arguments))


def bench(folder: Path, version: str, *needs: str) -> Notes:
    made = Notes(directory=folder / f"sglang-{version}", log=folder / "log", environment={})
    made.make_venv()
    made.calls.clear()
    info = made.site_packages / f"sglang-{version}.dist-info"
    info.mkdir()
    lines = [f"Requires-Dist: {need}\n" for need in needs]
    (info / "METADATA").write_text("Metadata-Version: 2.1\n" + "".join(lines))
    return made


def work(notes: Notes, version: str) -> None:
    for step in RECIPE.steps(version, False)[1:]:
        step.work(notes)


def test_the_shared_packages_are_installed_once(tmp_path: Path) -> None:
    first = bench(tmp_path, "0.5.11", "transformers==5.6.0")
    work(first, "0.5.11")
    assert ("sglang-shared", "venv") in first.calls
    shared = [call for call in first.calls if call[0] == "sglang-shared"]
    assert ("sglang-shared", "install", "torch==2.13.0") in shared
    own = [call[1:] for call in first.calls if call[0] == "sglang-0.5.11"]
    assert own[0] == ("install", "--no-deps", "sglang==0.5.11")
    assert own[1][:2] == ("install", "transformers==5.6.0")
    assert any(pin.startswith("tokenizers==") for pin in own[1])

    path = (first.site_packages / "zz_eyas_shared.pth").read_text().strip()
    assert path == str(tmp_path / "sglang-shared" / "lib" / "python3.11" / "site-packages")

    second = bench(tmp_path, "0.5.23", "transformers==5.19.0")
    work(second, "0.5.23")
    assert {call[0] for call in second.calls} == {"sglang-0.5.23"}


def test_the_transformers_of_old_versions_stands_among_the_extras(tmp_path: Path) -> None:
    notes = bench(
        tmp_path,
        "0.4.9",
        'transformers==4.53.0; extra == "runtime-common"',
        'transformers==4.53.0 ; extra == "other"',
        "torch==2.7.1",
    )
    work(notes, "0.4.9")
    assert notes.calls[-1] == ("sglang-0.4.9", "install", "transformers==4.53.0")


@pytest.mark.parametrize("needs", [(), ("transformers>=5",)])
def test_a_version_without_one_transformers_is_an_error(
    tmp_path: Path, needs: tuple[str, ...]
) -> None:
    notes = bench(tmp_path, "9.0", *needs)
    with pytest.raises(ProbeError, match="names no exact transformers"):
        work(notes, "9.0")


def test_with_cuda_the_plain_wheel_is_installed(tmp_path: Path) -> None:
    notes = bench(tmp_path, "0.5.23")
    for step in RECIPE.steps("0.5.23", True)[1:]:
        step.work(notes)
    assert notes.calls == [("sglang-0.5.23", "install", "sglang==0.5.23")]


@pytest.mark.parametrize("cuda", [False, True])
def test_llama_cpp_is_one_wheel(tmp_path: Path, cuda: bool) -> None:
    notes = bench(tmp_path, "x")
    for step in llamacpp.RECIPE.steps("2026.10.11549", cuda)[1:]:
        step.work(notes)
    assert notes.calls == [("sglang-x", "install", "xllamacpp==2026.10.11549")]
