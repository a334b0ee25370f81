"""The reconstructions of public drafters: each is read, and no tensor is left without a role."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from eyas import dialects
from eyas.checkpoint import open_checkpoint, write_sparse
from eyas.spec import DefaultBoundaries, Eagle3Spec, Fused, Mla, Recognised

# Facts that were looked up by hand in each config.
EXPECTED = {
    "RedHatAI__gemma-4-31B-it-speculator.eagle3": ("speculators", (2, 30, 57)),
    "nm-testing__Llama4-Maverick-Eagle3-Speculators": ("speculators", (1, 23, 44)),
    "nvidia__gpt-oss-120b-Eagle3": ("specforge", (2, 18, 33)),
    "lmsys__Qwen3-235B-A22B-EAGLE3": ("specforge", (2, 47, 91)),
    "yuhuili__EAGLE3-LLaMA3.1-Instruct-8B": ("specforge", DefaultBoundaries()),
    "lightseekorg__kimi-k2.5-eagle3": ("specforge", DefaultBoundaries()),
    "deepseek-ai__eagle3_qwen3_4b_ttt7": ("specforge", (2, 10, 18, 26, 34)),
}


def test_all_are_read(shared: Path, tmp_path: Path) -> None:
    kinds = {"named": 0, "specforge": 0, "speculators": 0}
    for folder in sorted((shared / "cases" / "real").iterdir()):
        config = json.loads((folder / "config.json").read_text())
        tensors = json.loads((folder / "tensors.json").read_text())["tensors"]
        headers = {name: (t["dtype"], tuple(t["shape"])) for name, t in tensors.items()}

        checkpoint = open_checkpoint(write_sparse(tmp_path / folder.name, config, headers))
        dialect, spec = dialects.read(checkpoint)

        kinds[dialect.name] += 1
        if folder.name in EXPECTED:
            assert isinstance(spec, Eagle3Spec)
            assert isinstance(spec.conditioning, Fused)
            found = (dialect.name, spec.conditioning.boundaries.value)
            assert found == EXPECTED[folder.name]
        if isinstance(spec, Eagle3Spec):
            assert set(dialect.roles(checkpoint)) == set(checkpoint.tensors), folder.name
            assert isinstance(spec.attention, Mla) == ("kv_lora_rank" in config), folder.name
        else:
            assert isinstance(spec, Recognised)
    assert kinds == {"named": 12, "specforge": 28, "speculators": 4}


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
