"""A target of Kimi-K2.5's size: the benchmark's is as large as the published one."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.kimi_target import BYTES, CONFIG, SHARDS, TENSORS, shards

from eyas.checkpoint import open_target
from eyas.checkpoint.header import tensor_nbytes
from eyas.checkpoint.layout import lay_out


def test_names_and_shapes_add_up_to_the_published_figures() -> None:
    files = list(shards())
    names = {name for headers in files for name in headers}
    expert = files[30]["language_model.model.layers.30.mlp.experts.383.down_proj.weight_packed"]

    assert len(files) == SHARDS == 64
    assert len(names) == sum(len(headers) for headers in files) == TENSORS == 208_550
    assert sum(tensor_nbytes(*header) for headers in files for header in headers.values()) == BYTES
    assert expert == ("I32", (7168, 256))
    # The largest header has half a megabyte, and 60 layers of experts have one each.
    assert 490_000 < len(lay_out(files[60])[0]) < 510_000


def test_its_config_is_read_through_the_wrapper(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))

    target = open_target(tmp_path)

    assert (target.hidden_size, target.num_layers, target.vocab_size) == (7168, 61, 163840)
    assert target.architectures == ("KimiK25ForConditionalGeneration",)
    assert (target.model_type, target.text_model_type) == ("kimi_k25", "kimi_k2")
