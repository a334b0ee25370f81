"""Public drafters, written again in their own dialect: their tensors' names and their keys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from benchmarks.real_drafters import rebuilt
from tests.dialects.written import DIRECTORIES

from eyas import dialects
from eyas.checkpoint import Checkpoint, open_checkpoint, write_sparse
from eyas.convert.recheck import changes
from eyas.errors import ConversionError
from eyas.spec import Recognised

# The names that its converter has for vLLM, and that a drafter of two layers needs.
CHOICES: dict[str, dict[str, Any]] = {
    "lightseekorg__kimi-k2.5-eagle3": {"layer_prefix": "layers.0."},
    "lightseekorg__kimi-k2.5-eagle3-mla": {"layer_prefix": "layers.0."},
    "lightseekorg__kimi-k2.6-eagle3-mla": {"layer_prefix": "layers.0."},
    "lightseekorg__kimi-k2.6-eagle3.1-mla": {"layer_prefix": "layers.0."},
    "nm-testing__random-weights-llama3.1.8b-2layer-eagle3": {"layer_prefix": "layers.0."},
}
# midlayer.* and layers.0.* are both SpecForge's: these were flattened or repacked by others.
FLATTENED = "layers.0."
# Their producer's own code does not compute what they declare.
REFUSED = {"nebius__EAGLE3-gpt-oss-20b": "eagle cannot state RoPE of the kind yarn"}
# Keys that say nothing of a drafter, or what is so without them, by their section.
LEFT_OUT = {
    "": {
        "attention_bias",  # of latent attention, where it is false
        "confidence_head_with_markov",  # without such a head
        "markov_head_type",  # without such a head
        "max_window_layers",
        "num_target_layers",  # of the target, and given to the writer by who knows it
        "target_hidden_size",  # where it is hidden_size
        "use_sliding_window",  # where it is false
    },
    "dflash_config": {"block_size"},  # at the top instead, where most have it
}


@pytest.fixture(scope="module")
def drafters(shared: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Checkpoint]:
    place = tmp_path_factory.mktemp("real")
    folders = sorted(path for path in (shared / "cases" / "real").iterdir() if path.is_dir())
    return {path.name: open_checkpoint(rebuilt(path, place / path.name)) for path in folders}


def test_each_is_written_as_its_producer_did(
    drafters: dict[str, Checkpoint], tmp_path: Path
) -> None:
    of: dict[str, int] = {}
    for label, checkpoint in drafters.items():
        dialect, spec = dialects.read(checkpoint)
        if isinstance(spec, Recognised) or label in REFUSED:
            continue
        writer = dialects.WRITABLE[dialect.name]
        roles = dict(dialect.roles(checkpoint))
        choices = dict(CHOICES.get(label, {}))
        if dialect.name == "specforge" and any(n.startswith(FLATTENED) for n in roles):
            choices |= {"layer_prefix": FLATTENED}

        config, names = writer.write(spec, set(roles.values()), dtype="bfloat16", **choices)

        assert {name: names[role] for name, role in roles.items()} == {n: n for n in roles}, label
        assert _missing(checkpoint, dialect, config) == set(), label
        headers = {t.name: (t.dtype, t.shape) for t in checkpoint.tensors.values()}
        maps = {
            n: b"".join(checkpoint.chunks(n)) for n, role in roles.items() if role in ("d2t", "t2d")
        }
        again = open_checkpoint(write_sparse(tmp_path / label, config, headers, maps))
        assert dialects.recognise(again).name == dialect.name, label
        assert list(changes(spec, dialect.read(again))) == [], label
        of[dialect.name] = of.get(dialect.name, 0) + 1
    assert of.keys() == set(DIRECTORIES)
    assert sum(of.values()) == 42


@pytest.mark.parametrize("label", REFUSED)
def test_what_its_own_code_does_not_compute_is_refused(
    drafters: dict[str, Checkpoint], label: str
) -> None:
    dialect, spec = dialects.read(drafters[label])

    with pytest.raises(ConversionError, match=REFUSED[label]):
        dialect.write(spec, set(dialect.roles(drafters[label]).values()))


def _missing(checkpoint: Checkpoint, dialect: Any, config: dict[str, Any]) -> set[str]:
    """The producer's keys that eyas reads and did not write, beyond LEFT_OUT."""
    found = set()
    for section, read in dialect.keys(checkpoint).items():
        table = checkpoint.config.get(section) if section else checkpoint.config
        written = config.get(section, {}) if section else config
        for key, value in (table or {}).items():
            if key in read and value is not None and key not in LEFT_OUT.get(section, ()):
                found |= set() if key in written else {f"{section}.{key}"}
    return found
