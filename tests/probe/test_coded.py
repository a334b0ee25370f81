"""Numbers that say where they come from survive what loaders do to tensors."""

import importlib.util
import json
import struct
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from safetensors.torch import load_file, save_file

import eyas.probe


@pytest.fixture(scope="module")
def coded() -> ModuleType:
    file = Path(eyas.probe.__file__).parent / "scripts" / "coded.py"
    spec = importlib.util.spec_from_file_location("coded", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["coded"] = module
    spec.loader.exec_module(module)
    return module


def copied(coded: ModuleType, folder: Path, tensors: dict[str, torch.Tensor]):  # type: ignore[no-untyped-def]
    (folder / "draft").mkdir()
    save_file(tensors, folder / "draft" / "model.safetensors")
    (folder / "draft" / "config.json").write_text("{}")
    codes = coded.coded_copy(folder / "draft", folder / "copy")
    assert (folder / "copy" / "config.json").read_text() == "{}"
    return codes, load_file(folder / "copy" / "model.safetensors")


def seen(coded: ModuleType, parameter: torch.Tensor, codes) -> list[tuple[object, ...]]:  # type: ignore[no-untyped-def]
    return [
        (s.start, s.stop, s.tensor and s.tensor.name, s.offset, s.zeros, s.untouched, s.also)
        for s in coded.segments_of(parameter, codes)
    ]


def test_what_a_loader_does_is_told_apart(coded: ModuleType, tmp_path: Path) -> None:
    codes, loaded = copied(
        coded, tmp_path, {"a": torch.zeros(6, 4).bfloat16(), "b": torch.zeros(3, 4).half()}
    )
    a, b = loaded["a"], loaded["b"]
    assert (a.shape, b.shape) == ((6, 4), (3, 4))
    fused = torch.full((10, 4), float("nan"))
    fused[:3] = b
    fused[3:7] = a[2:]
    fused[7:8] = 0
    assert seen(coded, fused, codes) == [
        (0, 3, "b", 0, 0, 0, ()),
        (3, 7, "a", 2, 0, 0, ()),
        (7, 8, None, None, 4, 0, ()),
        (8, 10, None, None, 0, 8, ()),
    ]
    narrow = torch.zeros(3, 5)
    narrow[:, :4] = b
    assert seen(coded, narrow, codes) == [(0, 3, "b", 0, 3, 0, ())]
    beside = torch.cat([a[:3, :2], b[:, :2]], dim=1)
    assert seen(coded, beside, codes)[0][6] != ()
    assert seen(coded, a[:4, :4].T.contiguous(), codes)[0][6] == ("its own",)


def test_types_that_hold_no_code_carry_a_number(coded: ModuleType, tmp_path: Path) -> None:
    codes, loaded = copied(
        coded,
        tmp_path,
        {
            "w8": torch.zeros(4, 2, dtype=torch.int8),
            "f8": torch.zeros(4, 2).to(torch.float8_e4m3fn),
            "d2t": torch.arange(4) * 3,
            "t2d": torch.tensor([True, False, True]),
        },
    )
    assert loaded["w8"].dtype is torch.int8
    assert loaded["f8"].dtype is torch.float8_e4m3fn
    assert loaded["d2t"].tolist() == [0, 3, 6, 9]
    for name in ("w8", "f8"):
        into = torch.full((4, 2), float("nan")).copy_(loaded[name])
        assert seen(coded, into, codes) == [(0, 4, name, None, 0, 0, ())]
    into = torch.full((4,), coded.UNTOUCHED)
    assert seen(coded, into, codes) == [(0, 4, None, None, 0, 4, ())]
    assert seen(coded, into.copy_(loaded["d2t"]), codes) == [(0, 4, "d2t", 0, 0, 0, ())]
    assert seen(coded, torch.zeros(4, dtype=torch.long), codes) == [(0, 4, None, None, 4, 0, ())]


def test_the_same_name_in_two_files_is_two_tensors(coded: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "draft").mkdir()
    for file in ("model.safetensors", "z.safetensors"):
        save_file({"a": torch.zeros(2, 2), "d2t": torch.arange(5)}, tmp_path / "draft" / file)
    codes = coded.coded_copy(tmp_path / "draft", tmp_path / "copy")
    assert {t.label for t in codes.tensors} == {
        f"{file} :: {name}"
        for file in ("model.safetensors", "z.safetensors")
        for name in ("a", "d2t")
    }
    later = load_file(tmp_path / "copy" / "z.safetensors")
    (segment,) = coded.segments_of(later["d2t"], codes)
    assert segment.tensor.label == "z.safetensors :: d2t"


def test_what_construction_left_is_named(coded: ModuleType) -> None:
    left = coded.left_by_construction
    assert left(torch.ones(3)) == "ones"
    assert left(torch.zeros(3, dtype=torch.long)) == "zeros"
    assert left(torch.tensor([0.1, float("nan")])) == "memory"
    assert left(torch.tensor([0.1, 0.2])) == "random"


def test_the_header_of_the_copy_is_a_sound_one(coded: ModuleType, tmp_path: Path) -> None:
    copied(coded, tmp_path, {"scalar": torch.tensor(1.0), "empty": torch.zeros(0, 3)})
    raw = (tmp_path / "copy" / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    assert json.loads(raw[8 : 8 + length])["empty"]["shape"] == [0, 3]
    assert len(raw) == 8 + length + 4
