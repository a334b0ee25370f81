"""What check says of tiny drafters, sound and faulty."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest
from tests.checks.case_files import CASES, written

from eyas import dialects
from eyas.checkpoint import TensorBytes, open_checkpoint, open_target, write_checkpoint
from eyas.checks import Outcome, Report, Severity, as_trained, check, rule_of
from eyas.dialects import speculators
from eyas.engines import EngineRef, Launch
from eyas.errors import TargetError
from eyas.spec import VocabMap

OLD, NEW, VLLM = "sglang@0.5.10.post1", "sglang@0.5.23", "vllm@0.33.0"
Make = Callable[..., Path]


def report(
    draft: Path, *engines: str, target: Path | None = None, launch: tuple[str, ...] = ()
) -> Report:
    return check(
        open_checkpoint(draft),
        [EngineRef.parse(engine) for engine in engines],
        target=None if target is None else open_target(target),
        launch=Launch.parse(launch),
    )


def codes(found: Report, severity: Severity = Severity.ERROR) -> list[str]:
    return [f.code for f in found.findings if f.severity is severity]


def unasked(found: Report) -> list[str]:
    """The codes of the checks that did not run for another reason than the absence of --values."""
    return [skip.check.split()[0] for skip in found.skipped if skip.reason != "no --values"]


def make_target(folder: Path, **config: object) -> Path:
    folder.mkdir()
    facts = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 8,
        "num_hidden_layers": 12,
        "vocab_size": 32,
    }
    (folder / "config.json").write_text(json.dumps({**facts, **config}))
    return folder


def vocabulary_map(*numbers: int) -> dict[str, TensorBytes]:
    data = b"".join(number.to_bytes(8, "little") for number in numbers)
    return {"d2t": TensorBytes(dtype="I64", shape=(len(numbers),), data=data)}


def test_a_sound_drafter_passes_everywhere(make_drafter: Make) -> None:
    found = report(make_drafter(), OLD, NEW, VLLM)
    assert [e.outcome for e in found.engines] == [Outcome.PASS] * 3
    assert [(e.coverage.landed, e.coverage.total) for e in found.engines if e.coverage] == [
        (14, 14)
    ] * 3
    assert found.exit_code() == 0


def test_the_subject_names_every_file_that_was_read(make_drafter: Make) -> None:
    draft = make_drafter()
    whole = {file.name: file.sha256 for file in report(draft, NEW).subject.files}
    assert list(whole) == ["config.json", "model.safetensors"]
    assert whole["config.json"] == sha256((draft / "config.json").read_bytes()).hexdigest()
    names = list(open_checkpoint(draft).tensors)
    index = {"metadata": {}, "weight_map": dict.fromkeys(names, "model.safetensors")}
    (draft / "model.safetensors.index.json").write_text(json.dumps(index))
    files = [file.name for file in report(draft, NEW).subject.files]
    assert files == ["config.json", "model.safetensors.index.json", "model.safetensors"]
    alone = report(draft / "model.safetensors", NEW).subject.files
    assert [file.name for file in alone] == ["config.json", "model.safetensors"]


def test_a_dropped_layer_is_one_finding(make_drafter: Make) -> None:
    found = report(make_drafter(layer="layers.0."), OLD, NEW, VLLM)
    assert codes(found) == ["L202"]
    finding = found.findings[0]
    assert (finding.engine, finding.version) == ("sglang", "0.5.10.post1")
    assert finding.place == "model.safetensors :: layers.0.*"
    assert "10 tensors" in finding.message
    assert "model.midlayer.*" in (finding.expected or "")
    assert "uninitialised memory" in finding.effect
    assert finding.help.startswith("eyas convert ")
    assert finding.source is not None
    assert [e.outcome for e in found.engines] == [Outcome.FAIL, Outcome.PASS, Outcome.PASS]
    assert found.engines[0].coverage is not None
    assert found.engines[0].coverage.landed == 4


def test_the_wrong_algorithm_bypasses_fusion_head_and_map(make_drafter: Make) -> None:
    found = report(make_drafter(), NEW, launch=("speculative_algorithm=EAGLE",))
    assert {"F301", "V401", "V402"} <= set(codes(found))
    helps = {f.help for f in found.findings if f.code == "F301"}
    assert helps == {"launch with speculative_algorithm=EAGLE3"}


@pytest.mark.parametrize("option", ["sglang.context_length", "vllm.max_model_len"])
def test_a_context_beyond_the_positions_is_a_warning(make_drafter: Make, option: str) -> None:
    engine = NEW if option.startswith("sglang") else VLLM
    short = report(make_drafter("a"), engine, launch=(f"{option}=512",))
    assert (short.findings, short.engines[0].outcome) == ((), Outcome.PASS)
    long = report(make_drafter("b"), engine, launch=(f"{option}=2048",))
    assert codes(long, Severity.WARNING) == ["N505"]
    assert long.engines[0].outcome is Outcome.WARN


def test_an_assumed_theta_is_a_warning_with_the_target_beside_it(
    make_drafter: Make, tmp_path: Path
) -> None:
    draft = make_drafter()
    config = json.loads((draft / "config.json").read_text())
    (draft / "config.json").write_text(json.dumps(config | {"rope_theta": None}))
    refused = report(draft, NEW)
    assert [f.code for f in refused.findings if f.severity is Severity.ERROR] == ["C101"]
    (draft / "config.json").write_text(
        json.dumps({key: value for key, value in config.items() if key != "rope_theta"})
    )
    assert codes(report(draft, NEW), Severity.WARNING) == ["N506"]
    other = make_target(tmp_path / "other", rope_parameters={"rope_theta": 500000})
    found = report(draft, NEW, VLLM, target=other)
    assert codes(found, Severity.WARNING) == ["N506"]
    assert "10000; the target's is 500000" in found.findings[0].message
    assert [e.outcome for e in found.engines] == [Outcome.WARN] * 2
    same = report(draft, NEW, target=make_target(tmp_path / "same", rope_theta=10000.0))
    assert codes(same, Severity.WARNING) == []


def test_two_norms_before_fc_are_a_warning(make_drafter: Make) -> None:
    ones = b"\x80\x3f"
    norms = {
        f"fc_norm.{i}.weight": TensorBytes(dtype="BF16", shape=(8,), data=ones * 8)
        for i in range(3)
    }
    norms["input_norm.weight"] = TensorBytes(dtype="BF16", shape=(24,), data=ones * 24)
    found = report(make_drafter(tensors=norms, fc_norm=True, norm_before_fc=True), VLLM)
    assert codes(found, Severity.WARNING) == ["F307"]


def test_a_source_of_another_version_says_so(make_drafter: Make) -> None:
    draft = make_drafter(norm_before_residual=True)
    old, new = report(draft, OLD).findings[0].source, report(draft, NEW).findings[0].source
    assert "sglang 0.5.23" in (old or "")
    assert "(read in 0.5.23, held to be the same in 0.5.10.post1)" in (old or "")
    assert "read in" not in (new or "")


def test_a_missing_tensor_leaves_its_parameter_unfilled(make_drafter: Make) -> None:
    found = report(make_drafter(without={"midlayer.mlp.down_proj.weight"}), NEW)
    assert codes(found) == ["L203"]
    assert "model.layers.0.mlp.down_proj.weight" in found.findings[0].message


def test_layers_that_no_tensor_fills_are_one_finding(make_drafter: Make) -> None:
    found = report(make_drafter(num_hidden_layers=4), NEW)
    assert sorted(codes(found)) == ["C102", "L203"]
    places = [f.place for f in found.findings if f.code == "L203"]
    assert places == ["sglang 0.5.23 :: model.layers.{1..3}.*"]


def test_an_ignored_flag_is_a_finding_and_convert_is_not_the_advice(make_drafter: Make) -> None:
    found = report(make_drafter(norm_before_residual=True), NEW, VLLM)
    assert codes(found) == ["N501"]
    assert "convert" not in found.findings[0].help


def test_a_size_that_cuts_a_tensor_is_found(make_drafter: Make) -> None:
    found = report(make_drafter(intermediate_size=8), NEW)
    assert "L204" in codes(found)


def test_a_tied_flag_replaces_the_head(make_drafter: Make) -> None:
    found = report(make_drafter(tie_word_embeddings=True), NEW)
    assert "V401" in codes(found)


@pytest.mark.parametrize("dtype", ["I8", "F8_E4M3"])
def test_weights_without_their_scale_are_found(make_drafter: Make, dtype: str) -> None:
    raw = {
        f"midlayer.mlp.{part}_proj.weight": TensorBytes(dtype=dtype, shape=(12, 8), data=bytes(96))
        for part in ("gate", "up")
    }
    found = report(make_drafter(tensors=raw), NEW, VLLM)
    assert codes(found) == ["L208"]
    assert [engine.outcome for engine in found.engines] == [Outcome.FAIL] * 2
    scaled = make_drafter("scaled", tensors=raw, quantization_config={"quant_method": "fp8"})
    assert "L208" not in codes(report(scaled, NEW))


@pytest.mark.parametrize(
    "scaling",
    [
        {"type": "mrope", "mrope_section": [1, 1]},
        {"type": "su", "short_factor": [1.0, 1.0], "long_factor": [2.0, 2.0]},
    ],
)
def test_an_older_name_of_a_rope_is_no_difference(
    make_drafter: Make, scaling: dict[str, object]
) -> None:
    found = report(make_drafter(rope_scaling=scaling), OLD, NEW, VLLM)
    assert "N503" not in codes(found)


def test_a_surplus_tensor_is_a_warning(make_drafter: Make) -> None:
    extra = {"verifier_norm.weight": TensorBytes(dtype="BF16", shape=(8,), data=b"\0" * 16)}
    found = report(make_drafter(tensors=extra), NEW)
    assert codes(found) == []
    assert codes(found, Severity.WARNING) == ["L206"]
    assert found.engines[0].outcome is Outcome.WARN
    assert (found.exit_code(), found.exit_code(fail_on=Severity.WARNING)) == (0, 1)


def test_an_own_embedding_that_is_replaced_is_a_note(make_drafter: Make) -> None:
    own = {"embed_tokens.weight": TensorBytes(dtype="BF16", shape=(32, 8), data=b"\0" * 512)}
    found = report(make_drafter(tensors=own), NEW)
    assert codes(found, Severity.INFO) == ["V405"]
    assert found.engines[0].outcome is Outcome.PASS


def test_a_reduced_vocabulary_without_a_map_is_wrong_everywhere(make_drafter: Make) -> None:
    found = report(make_drafter(without={"d2t", "t2d"}), NEW, VLLM)
    assert "V403" in codes(found)
    assert [e.outcome for e in found.engines] == [Outcome.FAIL] * 2


def test_a_map_that_leaves_the_vocabulary_is_found(make_drafter: Make) -> None:
    found = report(make_drafter(tensors=vocabulary_map(*[30] * 16)), NEW)
    assert "V404" in codes(found)


def test_absolute_ids_are_not_read_as_offsets_in_silence(make_drafter: Make) -> None:
    found = report(make_drafter(tensors=vocabulary_map(*range(0, 32, 2))), NEW)
    assert codes(found) == ["V402"]


def test_a_mask_that_disagrees_with_the_map_is_a_warning(make_drafter: Make) -> None:
    moved = TensorBytes(dtype="BOOL", shape=(32,), data=b"\x00\x01" + b"\x01\x00" * 15)
    found = report(make_drafter(tensors={"t2d": moved}), NEW)
    assert (codes(found), codes(found, Severity.WARNING)) == ([], ["V406"])


def test_a_mask_of_another_vocabulary_is_a_warning(make_drafter: Make) -> None:
    found = report(make_drafter(vocab_size=40), NEW)
    masks = [f for f in found.findings if f.code == "V406"]
    assert [f.message for f in masks] == [
        "t2d marks tokens of a vocabulary of 32, and vocab_size is 40"
    ]


def test_shifted_boundaries_need_the_runner_that_reads_them(make_drafter: Make) -> None:
    nested = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [2, 4, 7]}}
    found = report(make_drafter(**nested), NEW, f"{VLLM}:v1")
    assert codes(found) == ["B601"]
    assert found.findings[0].runner == "v1"


def test_default_boundaries_are_not_judged_without_a_target(
    make_drafter: Make, tmp_path: Path
) -> None:
    draft = make_drafter(eagle_aux_hidden_state_layer_ids=[2, 6, 9])
    blind = report(draft, NEW)
    assert [s.check for s in blind.skipped if s.engine == NEW] == ["B601 boundaries-shifted"]
    assert (blind.exit_code(), blind.exit_code(strict=True)) == (0, 1)
    assert blind.engines[0].outcome is Outcome.WARN
    assert codes(blind, Severity.WARNING) == ["B601"]
    assert "does not use the declared boundaries 2, 6, 9" in blind.findings[0].message
    same = report(draft, NEW, target=make_target(tmp_path / "same"))
    assert (codes(same), unasked(same)) == ([], [])
    other = report(draft, NEW, target=make_target(tmp_path / "deep", num_hidden_layers=20))
    assert codes(other) == ["B601"]


def test_graphs_that_put_the_default_in_place_are_no_pass_without_a_target(
    make_drafter: Make,
) -> None:
    nested = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 5, 8]}}
    found = report(make_drafter(**nested), OLD)
    assert codes(found, Severity.WARNING) == ["B601"]
    assert found.engines[0].outcome is Outcome.WARN


def test_ids_whose_meaning_depends_on_the_architecture_are_no_pass_without_it(
    make_drafter: Make, tmp_path: Path
) -> None:
    draft = make_drafter(
        eagle_aux_hidden_state_layer_ids=[3, 6, 9],
        eagle_config={"eagle_aux_hidden_state_layer_ids": [2, 5, 8]},
    )
    blind = report(draft, NEW)
    assert blind.engines[0].outcome is Outcome.WARN
    assert [s.engine for s in blind.skipped if "architecture" in s.reason] == [NEW]
    assert blind.exit_code(fail_on=Severity.WARNING) == 1
    known = report(draft, NEW, target=make_target(tmp_path / "llama"))
    assert not [s for s in known.skipped if s.engine]


def test_a_target_that_does_not_fit_is_an_error_finding(make_drafter: Make, tmp_path: Path) -> None:
    target = make_target(tmp_path / "wide", hidden_size=12, vocab_size=40)
    found = report(make_drafter(), VLLM, target=target)
    assert {"T701", "T702"} <= set(codes(found))
    assert found.exit_code() == 1


def test_default_boundaries_that_the_target_lacks_are_said_in_words(
    make_drafter: Make, tmp_path: Path
) -> None:
    found = report(make_drafter(), VLLM, target=make_target(tmp_path / "t", num_hidden_layers=4))
    outside = next(f for f in found.findings if f.code == "T703")
    assert outside.found.startswith("the default boundaries (2, L//2, L-3)")


def test_a_drafter_is_no_target(make_drafter: Make) -> None:
    with pytest.raises(TargetError, match="is itself a drafter"):
        report(make_drafter("a"), VLLM, target=make_drafter("b"))


def test_without_a_target_the_three_checks_of_its_fit_are_skipped(make_drafter: Make) -> None:
    found = report(make_drafter(), VLLM)
    assert set(unasked(found)) == {"T701", "T702", "T703"}


@pytest.mark.parametrize("others", [(), (NEW,)])
def test_a_version_without_a_contract_is_never_a_pass(
    make_drafter: Make, others: tuple[str, ...]
) -> None:
    found = report(make_drafter(), "sglang@0.9.0", *others)
    assert found.engines[0].outcome is Outcome.SKIP
    assert found.engines[0].reason
    assert found.exit_code() == (0 if others else 2)
    assert found.exit_code(strict=True) == (1 if others else 2)


def test_a_parallel_drafter_that_lands_wholly_is_no_pass(tmp_path: Path) -> None:
    draft = written(CASES / "l201-mask-state-on-sglang", tmp_path / "draft")
    found = report(draft, "vllm@0.33.0:v1")
    (engine,) = found.engines
    assert engine.coverage.landed == engine.coverage.total > 0
    assert engine.outcome is Outcome.SKIP
    assert engine.reason.startswith("what lands is in order, and eyas reads P-EAGLE drafters")
    assert found.exit_code() == 2


def test_a_faulty_block_drafter_says_that_its_arithmetic_is_not_judged(tmp_path: Path) -> None:
    draft = written(CASES / "m801-dflash-mask-of-a-resized-table", tmp_path / "draft")
    found = report(draft, "vllm@0.33.0:v2")
    assert codes(found) == ["M801"]
    assert found.engines[0].coverage.landed == found.engines[0].coverage.total == 14
    assert [(s.check, s.engine) for s in found.skipped if s.engine] == [
        ("arithmetic", "vllm@0.33.0:v2")
    ]


@pytest.mark.parametrize(
    ("form", "advice"), [(VocabMap.OFFSETS, "offsets"), (VocabMap.ABSOLUTE, "target ids, each")]
)
def test_a_broken_map_is_mended_in_its_own_form(
    make_drafter: Make, form: VocabMap, advice: str
) -> None:
    draft = make_drafter(tensors=vocabulary_map(*[40] * 16))
    trained = as_trained(open_checkpoint(draft), target=None)
    spec = replace(trained.spec, vocab_map=replace(trained.spec.vocab_map, value=form))
    (found,) = rule_of("V404").findings(replace(trained, spec=spec))
    assert advice in found.help


def test_a_nested_config_is_refused_by_one_engine_and_read_by_the_other(
    make_drafter: Make, tmp_path: Path
) -> None:
    flat = open_checkpoint(make_drafter(norm_before_residual=True))
    dialect, spec = dialects.read(flat)
    roles = dialect.roles(flat)
    config, names = speculators.write(spec, tuple(roles.values()))
    tensors = {
        names[role]: TensorBytes(
            dtype=flat.tensors[name].dtype,
            shape=flat.tensors[name].shape,
            data=flat.read_bytes(name),
        )
        for name, role in roles.items()
    }
    found = report(write_checkpoint(tmp_path / "nested", config, tensors), NEW, VLLM)
    assert codes(found) == ["C101"]
    assert [e.outcome for e in found.engines] == [Outcome.FAIL, Outcome.PASS]
