"""Each key that eyas reads, with values of every other type: a report or a sentence, never more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmarks.fuzz_specimens import specimens

from eyas.checkpoint import open_checkpoint, open_target, write_sparse
from eyas.checks import as_trained, report_on, require_fit
from eyas.checks.render import Format, render
from eyas.dialects.block import BLOCK_KEYS
from eyas.dialects.unread import DRAFTER_KEYS, LAYER_KEYS
from eyas.engines import EngineRef, Launch, read
from eyas.errors import CheckpointError, EyasError, NotADrafterError, TargetError

# JSON, as a file spells it.
VALUES = (
    "null",
    "true",
    "0",
    "-1",
    "1.5",
    "9" * 299,
    '""',
    '"\\u001b[2J\\ud800"',
    "[]",
    "[true, false, true]",
    "[[1], {}]",
    "[" + "1," * 63 + "1]",
    "{}",
    '{"rope_type": ["yarn"], "rope_theta": "1e4", "factor": {}}',
)
ENGINES = EngineRef.parse_list("sglang@0.5.23,vllm@0.33.0:v1")
_IDS = frozenset({"eagle_aux_hidden_state_layer_ids"})
READ: dict[str, dict[str, frozenset[str]]] = {
    "specforge": {
        "": LAYER_KEYS | DRAFTER_KEYS | _IDS | {"eagle_config", "target_layer_ids"},
        "eagle_config": DRAFTER_KEYS | _IDS,
    },
    "speculators": {
        "": DRAFTER_KEYS
        | _IDS
        | {"architectures", "speculators_model_type", "transformer_layer_config"},
        "transformer_layer_config": LAYER_KEYS,
        "speculators_config": frozenset({"speculators_config", "verifier", "algorithm"}),
    },
    "block": {
        "": LAYER_KEYS | BLOCK_KEYS,
        "dflash_config": BLOCK_KEYS | {"dflash_config", "projector_type"},
    },
}
PLACES = [
    (form, section, key)
    for form, sections in READ.items()
    for section, keys in sections.items()
    for key in sorted(keys)
]
TARGET_KEYS = (
    "architectures",
    "dtype",
    "head_dim",
    "hidden_size",
    "intermediate_size",
    "max_position_embeddings",
    "model_type",
    "num_attention_heads",
    "num_hidden_layers",
    "num_key_value_heads",
    "rope_parameters",
    "rope_theta",
    "text_config",
    "tie_word_embeddings",
    "torch_dtype",
    "vocab_size",
)
TARGET = {"architectures": ["LlamaForCausalLM"], "hidden_size": 8, "num_hidden_layers": 12}


def judge(draft: Path, target: Path | None = None) -> str | None:
    """The message where eyas refuses; None where it reports."""
    try:
        facts = None if target is None else open_target(target)
        trained = as_trained(open_checkpoint(draft), target=facts)
        require_fit(trained)
        served = [read(ref, trained.checkpoint, target=facts, launch=Launch()) for ref in ENGINES]
        report = report_on(trained, served)
    except (CheckpointError, NotADrafterError, TargetError) as error:
        return sentence(error)
    json.loads(render(report, Format.JSON))
    assert all(found.message.isprintable() for found in report.findings)
    return None


def sentence(error: EyasError) -> str:
    """The message of `error`, which is one line and comes with what to do."""
    assert error.message.isprintable()
    assert len(error.message) < 600
    assert error.hint
    return error.message


def with_value(config: dict[str, Any], section: str, key: str, value: str) -> str:
    """`config` as JSON, with `value` under `key` of `section`, or as the section itself."""
    marked = json.loads(json.dumps(config))
    (marked if section in ("", key) else marked.setdefault(section, {}))[key] = "@"
    return json.dumps(marked).replace('"@"', value)


@pytest.fixture(scope="module")
def drafters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A sound drafter in each form; a test leaves another config in it."""
    folder = tmp_path_factory.mktemp("keys")
    found = {specimen.name: specimen for specimen in specimens(folder / "specimens")}
    drafters = {}
    for form in READ:
        specimen = found["Qwen3DSparkModel" if form == "block" else f"nested ids as {form}"]
        headers = {name: (dtype, shape) for name, (dtype, shape, _) in specimen.tensors.items()}
        drafters[form] = write_sparse(folder / form, specimen.config, headers)
        (drafters[form] / "sound.json").write_text(json.dumps(specimen.config))
    return drafters


@pytest.mark.parametrize(("form", "section", "key"), PLACES)
def test_a_key_of_the_drafter(drafters: dict[str, Path], form: str, section: str, key: str) -> None:
    draft = drafters[form]
    sound = json.loads((draft / "sound.json").read_text())
    for value in VALUES:
        (draft / "config.json").write_text(with_value(sound, section, key, value))
        message = judge(draft)
        assert message is None or "config.json" in message or str(draft) in message


@pytest.mark.parametrize("key", TARGET_KEYS)
def test_a_key_of_the_target(drafters: dict[str, Path], tmp_path: Path, key: str) -> None:
    draft = drafters["specforge"]
    (draft / "config.json").write_text((draft / "sound.json").read_text())
    for value in VALUES:
        (tmp_path / "config.json").write_text(with_value(TARGET, "", key, value))
        message = judge(draft, tmp_path)
        assert message is None or str(tmp_path) in message


def test_the_drafters_are_sound(drafters: dict[str, Path]) -> None:
    for draft in drafters.values():
        (draft / "config.json").write_text((draft / "sound.json").read_text())
        assert judge(draft) is None
