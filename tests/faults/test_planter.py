"""The planter: every kind changes what it says, by files and launch alone."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.diagnose_bases import Base, in_form, smollm2
from benchmarks.diagnose_verdicts import RIGHT
from benchmarks.faults import planting
from benchmarks.faults.catalogue import KINDS, together
from benchmarks.faults.draft import FUSION, HEAD, MAP, Draft
from benchmarks.faults.kind import Kind, Sign
from benchmarks.faults.planting import Plan, pairs, plant, singles
from benchmarks.faults.setting import Setting, sound_settings
from benchmarks.faults.story import story
from benchmarks.faults.weights import held, read_file, write_file

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = sound_settings("smollm2")
ELSEWHERE = {"ids-absent"}  # shows on a base whose boundaries are not the default alone


@pytest.fixture(scope="module")
def base() -> Base:
    return smollm2()


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("forms")


def _planted(plan: Plan, base: Base, forms: Path, folder: Path, *seed: int) -> planting.Planted:
    def source(setting: Setting) -> tuple[Path, Path]:
        return in_form(base, setting.form, forms), base.target

    return plant(plan, source, folder / "drafters", folder / "labels", seed)


def _shown(kind: Kind) -> Setting:
    return next(setting for setting in SETTINGS if kind.shows(setting))


def test_the_planter_imports_nothing_of_eyas() -> None:
    imported = set()
    for file in (ROOT / "benchmarks" / "faults").glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module or "")

    assert not {name for name in imported if name.split(".")[0] == "eyas"}
    assert {name for name in imported if name.startswith("benchmarks.")} <= {
        f"benchmarks.faults.{file.stem}" for file in (ROOT / "benchmarks" / "faults").glob("*.py")
    } | {"benchmarks.faults"}


def test_kinds_are_many_and_each_has_a_right_diagnosis() -> None:
    names = [kind.name for kind in KINDS]

    assert len(names) == len(set(names)) >= 30
    assert set(names) == set(RIGHT)
    for kind in KINDS:
        assert kind.name in ELSEWHERE or any(kind.shows(setting) for setting in SETTINGS), kind.name


@pytest.mark.parametrize(
    "kind", [k for k in KINDS if k.name not in ELSEWHERE], ids=lambda k: k.name
)
def test_a_kind_changes_the_draft_and_its_seed_alone_decides(
    kind: Kind, base: Base, forms: Path, tmp_path: Path
) -> None:
    plan = Plan((kind,), _shown(kind))
    once = _planted(plan, base, forms, tmp_path, 1)
    again = _planted(plan, base, forms, tmp_path, 1)

    assert once.directory != again.directory
    for file in ("config.json", "model.safetensors"):
        assert (once.directory / file).read_bytes() == (again.directory / file).read_bytes()
    assert (once.setting, once.launch, once.drew) == (again.setting, again.launch, again.drew)


def test_labels_lie_elsewhere_and_names_tell_nothing(
    base: Base, forms: Path, tmp_path: Path
) -> None:
    made = _planted(story("smollm2"), base, forms, tmp_path, 0)

    assert {file.name for file in made.directory.iterdir()} == {"config.json", "model.safetensors"}
    assert int(made.directory.name, 16) >= 0
    label = json.loads((tmp_path / "labels" / f"{made.directory.name}.json").read_text())
    assert label["kinds"] == ["layer-of-a-newer-engine", "launched-as-eagle"]
    assert label["launch"] == list(made.launch)
    assert "layers.0.hidden_norm.weight" in read_file(made.directory / "model.safetensors")


def test_parameters_are_drawn(base: Base, forms: Path, tmp_path: Path) -> None:
    kinds = {kind.name: kind for kind in KINDS}
    for name in ("theta-of-another-model", "matrix-missing", "map-rolled", "matrix-at-init"):
        plan = Plan((kinds[name],), _shown(kinds[name]))
        drawn = {json.dumps(_planted(plan, base, forms, tmp_path, seed).drew) for seed in range(6)}
        assert len(drawn) > 1, name


def test_a_pair_hides_nothing() -> None:
    for one in KINDS:
        assert not together(one, one)
        for other in KINDS:
            assert together(one, other) == together(other, one)
            if together(one, other):
                assert one.part is not other.part
                assert not one.refuses
                assert not other.refuses
                assert not (one.destroys and other.sign is Sign.REPLAY)
    assert together(*story("smollm2").kinds)


def test_a_fault_in_a_matrix_that_another_takes_away_is_drawn_again(
    base: Base, forms: Path, tmp_path: Path
) -> None:
    kinds = {kind.name: kind for kind in KINDS}
    both = kinds["rows-repeated"], kinds["fusion-missing"]
    setting = next(s for s in SETTINGS if all(kind.shows(s) for kind in both))
    drawn = {
        _planted(Plan(both[:1], setting), base, forms, tmp_path, seed).drew[both[0].name][
            "matrix"
        ]: seed
        for seed in range(12)
    }
    assert len(drawn) > 1
    for matrix, seed in drawn.items():
        if matrix == FUSION:
            with pytest.raises(planting.Hidden, match="rows-repeated in fc"):
                _planted(Plan(both, setting), base, forms, tmp_path, seed)
        else:
            assert len(_planted(Plan(both, setting), base, forms, tmp_path, seed).kinds) == 2
    assert FUSION in drawn


def test_every_kind_has_its_turn() -> None:
    draw = np.random.default_rng(5)
    kinds = len(KINDS) - len(ELSEWHERE)
    alone = singles(SETTINGS, 2 * kinds, draw)
    counts = [sum(plan.kinds[0] is kind for plan in alone) for kind in KINDS]
    assert sorted(set(counts)) == [0, 2]
    assert counts.count(0) == len(ELSEWHERE)
    for plan in [*alone, *pairs(SETTINGS, 40, draw)]:
        assert all(kind.shows(plan.setting) for kind in plan.kinds)


def test_weights_are_read_and_written_unchanged(base: Base, tmp_path: Path) -> None:
    file = base.drafter / "model.safetensors"
    tensors = read_file(file)
    write_file(tmp_path / "copy.safetensors", tensors)

    assert read_file(tmp_path / "copy.safetensors") == tensors
    for tensor in tensors.values():
        if tensor.dtype == "BF16":
            assert tensor.like(tensor.floats()) == tensor


def test_numbers_are_rounded_as_torch_rounds_them() -> None:
    numbers = np.random.default_rng(0).normal(0, 100, 4000).astype(np.float32)
    numbers = np.concatenate([numbers, numbers / 1e4, np.array([0, 448, -448], np.float32)])
    reference = torch.from_numpy(numbers)

    rounded = held(numbers, "BF16").data
    assert rounded == reference.to(torch.bfloat16).view(torch.uint8).numpy().tobytes()
    short = held(numbers, "F8_E4M3").data
    given = torch.frombuffer(bytearray(short), dtype=torch.float8_e4m3fn).float()
    expected = reference.to(torch.float8_e4m3fn).float()
    # ties go to even there, and to either side here
    assert (given != expected).float().mean() < 0.01
    assert torch.allclose(given, expected, rtol=0.13, atol=2.0**-9)


def test_rows_and_map_name_the_same_tokens(base: Base, forms: Path, tmp_path: Path) -> None:
    """A map in another order moves no row, and rows in another order no id."""
    kinds = {kind.name: kind for kind in KINDS}
    setting = _shown(kinds["map-in-another-order"])
    sound = Draft.read(in_form(base, setting.form, forms), base.target, setting)
    for name, moved, kept in (
        ("map-in-another-order", MAP, HEAD),
        ("head-rows-in-another-order", HEAD, MAP),
    ):
        made = _planted(Plan((kinds[name],), setting), base, forms, tmp_path, 3)
        damaged = Draft.read(made.directory, base.target, setting)
        assert damaged.held(kept) == sound.held(kept)
        assert damaged.held(moved) != sound.held(moved)
        assert sorted(damaged.held(MAP).whole() + np.arange(8192)) == sorted(
            sound.held(MAP).whole() + np.arange(8192)
        )


def test_a_setting_says_whose_boundaries_are_read() -> None:
    flat = Setting(base="b", form="specforge", engine="sglang", version="0.5.10.post1")
    assert not flat.names_boundaries  # with graphs, the default is captured
    assert replace(flat, version="0.5.12").names_boundaries
    assert not replace(flat, engine="vllm", version="0.33.0", runner="v2").names_boundaries
