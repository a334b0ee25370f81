"""The reconstructions of public drafters: each is named, read, and inspected."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from benchmarks.real_drafters import rebuilt, rows

from eyas import dialects
from eyas.checkpoint import Checkpoint, open_checkpoint
from eyas.cli import main
from eyas.spec import (
    Boundaries,
    DefaultBoundaries,
    DFlashSpec,
    DraftSpec,
    Eagle3Spec,
    Fused,
    Mla,
    PEagleSpec,
    Recognised,
)

DEFAULT = DefaultBoundaries()
E3, PARALLEL, BLOCK = Eagle3Spec, PEagleSpec, DFlashSpec
# Drafter: its producer (as its notes say), its kind, and its boundaries, looked up by hand in each
# config and translated by what its producer means with them. A drafter that was flattened or
# repacked has the form of SpecForge.
EXPECTED: dict[str, tuple[str, type, Boundaries | None]] = {
    "AQ-MedAI__Ling-Flash-2.0-eagle3": ("specforge", E3, DEFAULT),
    "AngelSlim__Qwen3-1.7B_eagle3": ("angelslim", E3, DEFAULT),
    "AngelSlim__Qwen3-4B_eagle3": ("angelslim", E3, DEFAULT),
    "AngelSlim__Qwen3-8B_eagle3": ("angelslim", E3, DEFAULT),
    "Automodel__llama3.1-8b-eagle3.1-recipe": ("automodel", E3, DEFAULT),
    "Qwen__Qwen3.6-27B-embedded-mtp": ("mtp", Recognised, None),
    "RadixArk__Qwen3.8-27B-DSpark": ("specforge", BLOCK, (6, 20, 34, 48, 62)),
    "RedHatAI__Qwen3-32B-speculator.eagle3": ("speculators", E3, DEFAULT),
    "RedHatAI__Qwen3-8B-speculator.dflash": ("speculators", BLOCK, (2, 10, 18, 26, 34)),
    "RedHatAI__Qwen3-8B-speculator.eagle3": ("speculators", E3, DEFAULT),
    "RedHatAI__Qwen3-8B-speculator.peagle": ("speculators", PARALLEL, DEFAULT),
    "RedHatAI__Qwen3.6-35B-A3B-speculator.dspark": ("speculators", BLOCK, (2, 10, 20, 30, 37)),
    "RedHatAI__gemma-4-31B-it-speculator.eagle3": ("speculators", E3, (2, 30, 57)),
    "SpecForge__qwen2.5-vl-32b-eagle3-recipe": ("specforge", E3, DEFAULT),
    "SpecForge__qwen3-30B-A3B-eagle3.1-recipe": ("specforge", E3, DEFAULT),
    "SpecForge__qwen3-8b-peagle-recipe": ("specforge", PARALLEL, DEFAULT),
    "deepseek-ai__dflash_qwen3_4b_block7": ("deepspec", BLOCK, (2, 10, 18, 26, 34)),
    "deepseek-ai__dspark_qwen3_4b_block7": ("deepspec", BLOCK, (2, 10, 18, 26, 34)),
    "deepseek-ai__eagle3_qwen3_4b_ttt7": ("deepspec", E3, (2, 10, 18, 26, 34)),
    "lightseekorg__kimi-k2.5-eagle3": ("torchspec", E3, DEFAULT),
    "lightseekorg__kimi-k2.5-eagle3-mla": ("torchspec", E3, (2, 30, 58)),
    "lightseekorg__kimi-k2.6-eagle3-mla": ("torchspec", E3, (2, 30, 58)),
    "lightseekorg__kimi-k2.6-eagle3.1-mla": ("torchspec", E3, (2, 30, 58)),
    "lmsys__EAGLE3-gpt-oss-120b-bf16": ("specforge", E3, (2, 18, 34)),
    "lmsys__Qwen3-235B-A22B-EAGLE3": ("specforge", E3, (2, 47, 91)),
    "lmsys__SGLang-EAGLE3-Llama-3.3-70B-Instruct-SpecForge": ("specforge", E3, DEFAULT),
    "lmsys__SGLang-EAGLE3-Qwen3-30B-A3B-Instruct-2507-SpecForge-Nex": ("specforge", E3, DEFAULT),
    "lmsys__SGLang-EAGLE3-Qwen3-Coder-480B-A35B-Instruct-SpecForge-EigenAI": (
        "specforge",
        E3,
        DEFAULT,
    ),
    "lmsys__sglang-EAGLE3-LLaMA3.1-Instruct-8B": ("specforge", E3, DEFAULT),
    "nebius__EAGLE3-gpt-oss-20b": ("eagle", E3, DEFAULT),
    "nm-testing__Llama4-Maverick-Eagle3-Speculators": ("speculators", E3, (1, 23, 44)),
    "nm-testing__random-weights-llama3.1.8b-2layer-eagle3": ("specforge", E3, DEFAULT),
    "nvidia__Kimi-K2.5-Thinking-Eagle3": ("modelopt", E3, (2, 30, 58)),
    "nvidia__Llama-4-Maverick-17B-128E-Eagle3": ("modelopt", E3, (2, 24, 45)),
    "nvidia__gpt-oss-120b-Eagle3": ("modelopt", E3, (2, 18, 33)),
    "nvidia__gpt-oss-120b-Eagle3-long-context": ("modelopt", E3, (2, 18, 33)),
    "thoughtworks__Gemma-4-31B-Eagle3": ("specforge", E3, (3, 30, 57)),
    "thoughtworks__MiniMax-M2.5-Eagle3": ("specforge", E3, (2, 31, 59)),
    "yuhuili__EAGLE3-LLaMA3.1-Instruct-8B": ("eagle", E3, DEFAULT),
    "yuhuili__EAGLE3-Vicuna1.3-13B": ("eagle", E3, DEFAULT),
    "z-lab__Qwen3-4B-DFlash-b16": ("dflash", BLOCK, (2, 10, 18, 26, 34)),
    "z-lab__Qwen3-8B-DFlash-b16": ("dflash", BLOCK, (2, 10, 18, 26, 34)),
    "z-lab__Qwen3.5-122B-A10B-DFlash": ("dflash", BLOCK, (2, 8, 15, 21, 27, 33, 40, 46)),
    "z-lab__Qwen3.6-35B-A3B-DFlash": ("dflash", BLOCK, (2, 7, 12, 17, 23, 28, 33, 38)),
}


@pytest.fixture(scope="module")
def real(shared: Path) -> Path:
    return shared / "cases" / "real"


@pytest.fixture(scope="module")
def drafters(real: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Checkpoint]:
    place = tmp_path_factory.mktemp("real")
    folders = sorted(path for path in real.iterdir() if path.is_dir())
    return {path.name: open_checkpoint(rebuilt(path, place / path.name)) for path in folders}


def boundaries_of(spec: DraftSpec) -> Boundaries | None:
    if isinstance(spec, PEagleSpec):
        spec = spec.drafter
    if isinstance(spec, Eagle3Spec):
        assert isinstance(spec.conditioning, Fused)
        return spec.conditioning.boundaries.value
    return spec.boundaries.value if isinstance(spec, DFlashSpec) else None


def test_each_is_of_its_producer_and_kind(drafters: dict[str, Checkpoint]) -> None:
    found = {}
    for name, checkpoint in drafters.items():
        dialect, spec = dialects.read(checkpoint)
        found[name] = (dialect.name, type(spec), boundaries_of(spec))

    assert found == EXPECTED


def test_no_tensor_and_no_key_is_left_over(drafters: dict[str, Checkpoint]) -> None:
    for name, checkpoint in drafters.items():
        dialect, spec = dialects.read(checkpoint)
        if not isinstance(spec, Recognised):
            assert set(dialect.roles(checkpoint)) == set(checkpoint.tensors), name
            assert dialects.unread_keys(checkpoint) == (), name
        if isinstance(spec, Eagle3Spec):
            latent = "kv_lora_rank" in checkpoint.config
            assert isinstance(spec.attention, Mla) == latent, name


def test_dspark_is_told_from_dflash_by_its_heads(drafters: dict[str, Checkpoint]) -> None:
    kinds: dict[str, set[str]] = {}
    for name, checkpoint in drafters.items():
        _, spec = dialects.read(checkpoint)
        if isinstance(spec, DFlashSpec):
            kinds.setdefault(spec.name, set()).add(name)

    assert kinds["DSpark"] == {
        "RadixArk__Qwen3.8-27B-DSpark",
        "RedHatAI__Qwen3.6-35B-A3B-speculator.dspark",
        "deepseek-ai__dspark_qwen3_4b_block7",
    }
    assert len(kinds["DFlash"]) == 6


def test_inspect_prints_every_fact(
    drafters: dict[str, Checkpoint], capsys: pytest.CaptureFixture[str]
) -> None:
    for name, checkpoint in drafters.items():
        assert main(["inspect", checkpoint.location, "--format", "json"]) == 0
        document = json.loads(capsys.readouterr().out)
        kind = EXPECTED[name][1]
        assert document["dialect"] == EXPECTED[name][0]
        assert document["known_by_name_alone"] == (kind is Recognised)
        assert (document["not_judged"] is None) == (kind is Eagle3Spec)
        assert bool(document["facts"]) == (kind is not Recognised)
        assert all(fact["key"] for fact in document["facts"])
        assumed = [fact for fact in document["facts"] if fact["origin"] == "assumed"]
        assert all(fact["whose"] for fact in assumed), name


def test_no_drafter_of_a_kind_without_a_contract_passes(real: Path) -> None:
    table = {row[0].replace("/", "__"): row for row in rows(real)}

    assert set(table) == set(EXPECTED)
    for name, (_, _, kind, *verdicts) in table.items():
        if kind == "EAGLE-3":
            continue
        # A tensor that is lost is a failure, whatever the arithmetic around it.
        assert all(verdict.startswith(("not checked: ", "fail: ")) for verdict in verdicts), name


def test_what_is_not_judged_is_no_success(
    drafters: dict[str, Checkpoint], capsys: pytest.CaptureFixture[str]
) -> None:
    place = drafters["Qwen__Qwen3.6-27B-embedded-mtp"].location

    assert main(["check", place, "--engine", "vllm@0.33.0"]) == 2
    out = capsys.readouterr().out
    assert "not checked" in out
    assert "MTP is known by name alone" in out

    assert main(["inspect", place]) == 0
    assert "recognised, and not judged: MTP is known by name alone" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["good_mid_flat", "good_layers0_flat", "good_prefused_mid"])
def test_recorded_variants_mean_the_same(shared: Path, name: str) -> None:
    variants = shared / "cases" / "truth" / "variants"
    _, reference = dialects.read(open_checkpoint(variants / "good_mid_flat"))
    _, spec = dialects.read(open_checkpoint(variants / name))

    assert isinstance(spec, Eagle3Spec)
    assert isinstance(reference, Eagle3Spec)
    assert spec.attention == reference.attention
    assert spec.conditioning == reference.conditioning
    assert spec.vocab_map == reference.vocab_map
