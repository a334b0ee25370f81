"""Configs that are missing, broken, or no drafter's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from eyas.errors import CheckpointError, NotADrafterError

DEEP = 100_000


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"hello", "not valid JSON"),
        (b"{'a': 1}", "not valid JSON"),
        (b'{"a": 1} {"b": 2}', "not valid JSON"),
        (b"[1, 2]", "holds a JSON list instead of an object"),
        (b"null", "holds a JSON NoneType instead of an object"),
        (b'"text"', "holds a JSON str instead of an object"),
        (b'{"hidden_size": NaN}', "NaN is no number"),
        (b'{"hidden_size": -Infinity}', "-Infinity is no number"),
        (b'{"hidden_size": 1e999}', "1e999 is too large for a number"),
        (b'{"hidden_size": ' + b"9" * 5000 + b"}", "not valid JSON"),
        (b'{"hidden_size": -' + b"9" * 301 + b"}", "… is too large for a number"),
        (b'{"hidden_size": 4, "hidden_size": 8}', "the key 'hidden_size' occurs twice"),
        (b'{"a": "\xff"}', "is not UTF-8 text (byte 7)"),
        (b"\xef\xbb\xbf{}", "not valid JSON"),
        ('{"a": 1}'.encode("utf-16"), "is not UTF-8 text"),
        (b'{"a":' * DEEP + b"1" + b"}" * DEEP, "nests JSON too deeply"),
        (b"[" * DEEP, "nests JSON too deeply"),
        (b" " * (17 * 2**20), "is larger than 16777216 bytes"),
    ],
    ids=lambda value: repr(value[:20]) if isinstance(value, bytes) else "",
)
def test_a_broken_config(drafter: Path, refused: Any, raw: bytes, message: str) -> None:
    (drafter / "config.json").write_bytes(raw)

    error = refused(drafter, CheckpointError)

    assert message in error.message
    assert "config.json" in error.message


def test_a_missing_config(drafter: Path, refused: Any) -> None:
    (drafter / "config.json").unlink()

    error = refused(drafter, CheckpointError)

    assert error.message.endswith("config.json cannot be opened: no such file or directory")


@pytest.mark.parametrize("kind", ["directory", "fifo"])
def test_a_config_that_is_no_file(drafter: Path, refused: Any, kind: str) -> None:
    (drafter / "config.json").unlink()
    if kind == "directory":
        (drafter / "config.json").mkdir()
    else:
        os.mkfifo(drafter / "config.json")

    assert "is not a regular file" in refused(drafter, CheckpointError).message


@pytest.mark.parametrize(
    "location",
    [
        "",
        " ",
        "/no/such/place",
        "no-such-place",
        "a\0b",
        "x" * 5000,
        "../..//nothing",
        "~nobody9/x",
    ],
)
def test_a_place_that_is_not_there(refused: Any, location: str) -> None:
    refused(location, CheckpointError)


def test_a_file_that_is_no_checkpoint(drafter: Path, refused: Any) -> None:
    error = refused(drafter / "config.json", CheckpointError)

    assert "is neither a directory nor a .safetensors, .bin or .gguf file" in error.message


def test_an_empty_directory(tmp_path: Path, refused: Any) -> None:
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", CheckpointError)


def test_a_plain_target_is_no_drafter(drafter: Path, refused: Any) -> None:
    # The weights are spoilt as well: only names make this one a drafter, and they are a target's.
    config = {"architectures": ["LlamaForCausalLM"], "num_hidden_layers": 30}
    (drafter / "config.json").write_text(json.dumps(config))

    error = refused(drafter, NotADrafterError)

    assert "a 'LlamaForCausalLM' model of 30 layers" in error.message
    assert "--target" in str(error.hint)


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": [["LlamaForCausalLMEagle3"]]},
        {"architectures": {"0": "LlamaForCausalLMEagle3"}},
        {"architectures": None},
        {"architectures": 7, "num_hidden_layers": "\n"},
    ],
)
def test_names_that_are_none(drafter: Path, refused: Any, config: dict[str, Any]) -> None:
    (drafter / "config.json").write_text(json.dumps(config))

    refused(drafter, NotADrafterError)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"num_hidden_layers": 10**6}, "num_hidden_layers is 1000000, and eyas reads"),
        ({"num_hidden_layers": 10**30}, "num_hidden_layers is a number of 31 digits, and"),
        ({"num_aux_hidden_states": 10**7}, "num_aux_hidden_states is 10000000, and eyas"),
        ({"vocab_size": 10**12}, "vocab_size is 1000000000000, and eyas reads"),
        ({"head_dim": 10**9}, "head_dim is 1000000000, and eyas reads"),
        (
            {"transformer_layer_config": {"num_hidden_layers": 1001}},
            "transformer_layer_config.num_hidden_layers is 1001, and",
        ),
        (
            {"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1] * 65}},
            "eagle_config.eagle_aux_hidden_state_layer_ids has 65 ids, and",
        ),
    ],
)
def test_counts_that_would_take_for_ever(
    drafter: Path, refused: Any, config: dict[str, Any], message: str
) -> None:
    sound = json.loads((drafter / "config.json").read_text())
    (drafter / "config.json").write_text(json.dumps(sound | config))

    assert message in refused(drafter, CheckpointError).message


@pytest.mark.parametrize("wild", ["\x1b[31m", "\n", "\0", "\u202e", "\ud800"])
def test_a_class_name_that_steers_the_terminal(drafter: Path, refused: Any, wild: str) -> None:
    config = {"architectures": ["LlamaForCausalLM", f"LlamaForCausalLMEagle3{wild}"]}
    (drafter / "config.json").write_text(json.dumps(config))

    assert "which is no class" in refused(drafter, CheckpointError).message


@pytest.mark.parametrize(
    "config",
    [
        {"architectures": ["LlamaForCausalLMEagle3"]},
        {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": 10**30},
        {"architectures": ["LlamaForCausalLMEagle3"], "hidden_size": "\x1b[2J" * 50},
        {"architectures": ["LlamaForCausalLMEagle3"], "rope_scaling": [[]]},
        {"transformer_layer_config": "llama"},
        {"transformer_layer_config": {}, "speculators_config": 7},
        {"speculators_config": {}},
    ],
)
def test_configs_without_sense(drafter: Path, refused: Any, config: dict[str, Any]) -> None:
    (drafter / "config.json").write_text(json.dumps(config))

    assert "config.json" in refused(drafter, CheckpointError).message
