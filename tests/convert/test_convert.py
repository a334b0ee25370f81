"""Conversions are exact both ways, or leave nothing behind."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from eyas import dialects
from eyas.checkpoint import Checkpoint, TensorBytes, open_checkpoint
from eyas.checks import check
from eyas.convert import conversion, convert, parse_goal, plan
from eyas.convert.recheck import changed_numbers, changes
from eyas.engines import EngineRef, Launch
from eyas.errors import CheckpointError, ConversionError, EngineError

Make = Callable[..., Path]
OLD = EngineRef.parse("sglang@0.5.10.post1")
NEW = EngineRef.parse("sglang@0.5.23")
VLLM = EngineRef.parse("vllm@0.33.0")


def outcomes(draft: Path, *refs: EngineRef) -> list[str]:
    report = check(open_checkpoint(draft), refs, launch=Launch())
    return [engine.outcome.value for engine in report.engines]


def contents(checkpoint: Checkpoint) -> dict[str, bytes]:
    roles = dialects.recognise(checkpoint).roles(checkpoint)
    return {roles[name]: checkpoint.read_bytes(name) for name in checkpoint.tensors}


def test_a_layer_that_an_old_engine_loses_lands_after_conversion(
    make_drafter: Make, tmp_path: Path
) -> None:
    draft = make_drafter(layer="layers.0.")
    assert outcomes(draft, OLD) == ["fail"]
    done = convert(open_checkpoint(draft), tmp_path / "out", OLD)
    assert outcomes(tmp_path / "out", OLD, NEW, VLLM) == ["pass"] * 3
    assert contents(open_checkpoint(tmp_path / "out")) == contents(open_checkpoint(draft))
    assert len(done.plan.renamed) == 10
    assert "none differs" in done.text()


def test_there_and_back_is_the_same_drafter(make_drafter: Make, tmp_path: Path) -> None:
    ids = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 4, 7]}}
    first = open_checkpoint(make_drafter(**ids))
    convert(first, tmp_path / "vllm", EngineRef.parse("vllm@0.33.0:v2"))
    there = open_checkpoint(tmp_path / "vllm")
    convert(there, tmp_path / "sglang", NEW)
    back = open_checkpoint(tmp_path / "sglang")
    before, after = dialects.read(first)[1], dialects.read(back)[1]
    assert list(changes(before, after)) == []
    assert contents(first) == contents(there) == contents(back)


@pytest.mark.parametrize("ref", [OLD, NEW], ids=str)
def test_a_nested_config_becomes_one_that_the_engine_reads(
    make_drafter: Make, tmp_path: Path, ref: EngineRef
) -> None:
    nested = tmp_path / "nested"
    convert(open_checkpoint(make_drafter()), nested, parse_goal("speculators"))
    assert outcomes(nested, ref) == ["fail"]
    convert(open_checkpoint(nested), tmp_path / "out", ref)
    assert outcomes(tmp_path / "out", ref) == ["pass"]


def test_what_an_engine_cannot_compute_is_refused_with_its_reason(
    make_drafter: Make, tmp_path: Path
) -> None:
    draft = open_checkpoint(make_drafter(norm_before_residual=True))
    with pytest.raises(ConversionError, match="norm_before_residual = false"):
        convert(draft, tmp_path / "made" / "out", NEW)
    assert [path.name for path in tmp_path.iterdir()] == ["draft"]


def test_a_version_without_a_contract_is_refused(make_drafter: Make, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"eyas knows sglang 0\.4\.9 to 0\.5\.23, and 9\.9\.9 is"):
        convert(open_checkpoint(make_drafter()), tmp_path / "out", EngineRef.parse("sglang@9.9.9"))
    assert not (tmp_path / "out").exists()


def test_a_refusal_names_all_that_stands_against_the_nearest_way(
    make_drafter: Make, tmp_path: Path
) -> None:
    draft = make_drafter(norm_before_residual=True, attention_bias=True)
    with pytest.raises(ConversionError) as caught:
        plan(open_checkpoint(draft), OLD)
    message, hint = caught.value.message, caught.value.hint
    assert "norm_before_residual = false, the drafter was trained with true" in message
    assert "; sglang 0.5.10.post1 computes with bias false; trained with true" in message
    assert hint == f"serve it on another engine; ask: eyas check {draft} --engine ENGINE@VERSION"


def test_a_target_is_asked_for_where_it_alone_is_wanting(
    make_drafter: Make, tmp_path: Path
) -> None:
    ids = {"eagle_aux_hidden_state_layer_ids": [2, 6, 9]}
    embeddings = {"eagle_aux_hidden_state_layer_ids": [0, 6, 9]}
    with pytest.raises(ConversionError, match="default") as caught:
        plan(open_checkpoint(make_drafter("a", eagle_config=ids, num_aux_hidden_states=3)), OLD)
    assert caught.value.hint == "name the target with --target"
    both = make_drafter("b", norm_before_residual=True, **embeddings)
    with pytest.raises(ConversionError) as caught:
        plan(open_checkpoint(both), OLD)
    assert "--target" not in str(caught.value)


def test_a_drafter_that_contradicts_itself_is_to_be_looked_at(make_drafter: Make) -> None:
    draft = make_drafter(draft_vocab_size=24)
    with pytest.raises(ConversionError, match="raises at load") as caught:
        plan(open_checkpoint(draft), NEW)
    assert caught.value.hint == f"look at what it says of itself: eyas inspect {draft}"


def test_a_limit_that_nothing_states_is_to_be_stated(make_drafter: Make) -> None:
    draft = open_checkpoint(make_drafter(max_position_embeddings=None))
    with pytest.raises(ConversionError, match="no max_position_embeddings is stated") as caught:
        plan(draft, NEW)
    place = "config.json :: max_position_embeddings"
    assert caught.value.hint == f"state {place}, if the drafter has that limit"


def test_norms_on_q_and_k_are_why_a_flat_config_cannot_be_written(make_drafter: Make) -> None:
    norm = TensorBytes(dtype="BF16", shape=(4,), data=b"\0\x3f" * 4)
    norms = {f"midlayer.self_attn.{part}_norm.weight": norm for part in "qk"}
    with pytest.raises(ConversionError, match="has no norms on q and k"):
        plan(open_checkpoint(make_drafter(tensors=norms)), NEW)


def test_an_existing_directory_is_never_overwritten(make_drafter: Make, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine").write_text("kept")
    with pytest.raises(CheckpointError, match="nothing is overwritten"):
        convert(open_checkpoint(make_drafter()), tmp_path / "out", NEW)
    assert (tmp_path / "out" / "mine").read_text() == "kept"


def test_a_tensor_of_unknown_part_is_not_carried_blindly(
    make_drafter: Make, tmp_path: Path
) -> None:
    extra = {"adapter.weight": TensorBytes(dtype="BF16", shape=(8,), data=b"\0" * 16)}
    with pytest.raises(ConversionError, match=r"adapter\.weight has no known part"):
        convert(open_checkpoint(make_drafter(tensors=extra)), tmp_path / "out", NEW)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("quantization_config", {"quant_method": "fp8"}),
        ("partial_rotary_factor", 0.5),
        ("attention_multiplier", 0.0078125),
        ("logit_scale", 0.25),
        ("sliding_window", 2048),
        ("layer_types", ["sliding_attention"]),
        ("mlp_bias", True),
        ("auto_map", {"AutoModel": "modeling_mine.Mine"}),
        ("eagle_config", {"use_last_layernorm": False}),
    ],
)
def test_a_key_that_convert_would_drop_is_refused(
    make_drafter: Make, tmp_path: Path, key: str, value: object
) -> None:
    with pytest.raises(ConversionError, match=rf"config\.json :: {key}.* is .*would be lost"):
        convert(open_checkpoint(make_drafter(**{key: value})), tmp_path / "out", NEW)
    assert not (tmp_path / "out").exists()


def test_keys_that_change_nothing_are_no_obstacle(make_drafter: Make, tmp_path: Path) -> None:
    inert = {
        "attention_dropout": 0.0,
        "auto_map": {"": "eagle3.Eagle3SpeculatorConfig"},
        "bos_token_id": 1,
        "eagle_config": {"use_last_layernorm": True, "use_mtp_layernorm": False},
        "layer_types": ["full_attention"],
        "logit_scale": 1.0,
        "mlp_bias": False,
        "quantization_config": None,
        "sliding_window": 4096,
        "transformers_version": "4.57.1",
        "use_sliding_window": False,
    }
    convert(open_checkpoint(make_drafter(**inert)), tmp_path / "out", NEW)
    assert outcomes(tmp_path / "out", NEW) == ["pass"]


@pytest.mark.parametrize("dtype", ["I8", "F8_E4M3"])
def test_weights_without_their_scale_are_refused(
    make_drafter: Make, tmp_path: Path, dtype: str
) -> None:
    name = "midlayer.mlp.up_proj.weight"
    raw = {name: TensorBytes(dtype=dtype, shape=(12, 8), data=bytes(96))}
    draft = make_drafter(tensors=raw)
    assert outcomes(draft, NEW, VLLM) == ["fail", "fail"]
    with pytest.raises(ConversionError, match=rf"up_proj\.weight holds {dtype} numbers"):
        convert(open_checkpoint(draft), tmp_path / "out", NEW)


def test_of_two_sets_of_weights_one_has_to_be_named(make_drafter: Make, tmp_path: Path) -> None:
    draft = make_drafter()
    stale = (make_drafter("stale") / "model.safetensors").read_bytes()
    (draft / "zz_stale.safetensors").write_bytes(stale)
    assert outcomes(draft, NEW) == ["fail"]  # it reads the stale file over the drafter
    with pytest.raises(ConversionError, match=r"also holds zz_stale\.safetensors") as caught:
        convert(open_checkpoint(draft), tmp_path / "out", NEW)
    assert caught.value.hint == f"name the file: {draft}/model.safetensors"
    convert(open_checkpoint(draft / "model.safetensors"), tmp_path / "out", NEW)
    assert outcomes(tmp_path / "out", NEW) == ["pass"]


@pytest.mark.parametrize(
    ("failure", "raised"),
    [(OSError(28, "No space left"), CheckpointError), (KeyboardInterrupt(), KeyboardInterrupt)],
    ids=repr,
)
def test_an_interruption_while_checking_leaves_nothing(
    make_drafter: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failure: BaseException,
    raised: type[BaseException],
) -> None:
    def interrupted(*_: object) -> list[str]:
        raise failure

    monkeypatch.setattr(conversion, "changed_numbers", interrupted)
    draft = open_checkpoint(make_drafter(layer="layers.0."))
    with pytest.raises(raised):
        convert(draft, tmp_path / "out", OLD)
    assert [path.name for path in tmp_path.iterdir()] == ["draft"]


STOPPED = """
import sys, time
from eyas.cli import program
from eyas.convert import conversion

def wait(*_):
    print("written", flush=True)
    time.sleep(60)

conversion.changed_numbers = wait
sys.exit(program.main())
"""


def test_a_polite_stop_leaves_nothing(make_drafter: Make, tmp_path: Path) -> None:
    draft = make_drafter(layer="layers.0.")
    command = [sys.executable, "-c", STOPPED, "convert", draft, tmp_path / "out", "--to", str(OLD)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        process.terminate()
        _, told = process.communicate(timeout=30)
    assert process.returncode == 130
    assert b"Traceback" not in told
    assert [path.name for path in tmp_path.iterdir()] == ["draft"]


def test_a_changed_byte_is_noticed(make_drafter: Make) -> None:
    one = open_checkpoint(make_drafter("one"))
    other_path = make_drafter("other")
    weights = other_path / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(bytes(raw))
    chosen = plan(one, NEW)
    assert len(changed_numbers(chosen, open_checkpoint(other_path))) == 1
    assert changed_numbers(chosen, open_checkpoint(make_drafter("same"))) == []


def test_the_model_card_goes_where_the_weights_go(make_drafter: Make, tmp_path: Path) -> None:
    draft = make_drafter()
    (draft / "README.md").write_text("# card\n")
    convert(open_checkpoint(draft), tmp_path / "out", NEW)
    assert (tmp_path / "out" / "README.md").read_text() == "# card\n"


def test_a_model_card_that_is_a_link_elsewhere_is_not_followed(
    make_drafter: Make, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("mine")
    draft = make_drafter()
    (draft / "README.md").symlink_to(tmp_path / "secret")
    with pytest.raises(CheckpointError, match="link that leaves its directory"):
        convert(open_checkpoint(draft), tmp_path / "out", NEW)
    assert not (tmp_path / "out").exists()


def test_a_plan_writes_nothing(make_drafter: Make, tmp_path: Path) -> None:
    draft = make_drafter(layer="layers.0.")
    text = plan(open_checkpoint(draft), OLD).text()
    assert "layers.0.mlp.up_proj.weight → midlayer.mlp.up_proj.weight" in text
    assert [path.name for path in tmp_path.iterdir()] == ["draft"]
