"""A checkpoint that is in no file yet: what a plan would write, to be read as if it had been."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eyas.checkpoint.checkpoint import Checkpoint, Format
from eyas.checkpoint.gguf import GgufValue
from eyas.checkpoint.header import TensorHeader, tensor_nbytes
from eyas.checkpoint.rows import Made, Rows, blocks

_INTEGERS = ("BOOL", "I", "U")
_FILES = {Format.SAFETENSORS: ("config.json", "model.safetensors"), Format.GGUF: ("d.gguf",) * 2}


def imagined(config: Mapping[str, Any], tensors: Mapping[str, Rows], form: Format) -> Checkpoint:
    """The checkpoint that writing `config` and `tensors` would make; its weights are not there.

    Its integer tensors, which tell what a vocabulary map is, have been read, and what was made for
    it is at hand.
    """
    config_file, file = _FILES[form]
    checkpoint = Checkpoint(
        location="the planned drafter",
        directory=Path("the-planned-drafter"),
        # a config is what JSON keeps of it
        config=json.loads(json.dumps(config)) if form is Format.SAFETENSORS else _plain(config),
        config_file=config_file,
        tensors={
            name: TensorHeader(
                name=name,
                dtype=rows.dtype,
                shape=rows.shape,
                file=file,
                nbytes=tensor_nbytes(rows.dtype, rows.shape),
            )
            for name, rows in tensors.items()
        },
        files=(file,),
        revision=None,
    )
    for name, rows in tensors.items():
        if rows.dtype.startswith(_INTEGERS) or isinstance(rows, Made):
            checkpoint.keep(name, b"".join(blocks(rows)))
    return checkpoint


def _plain(keys: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a GGUF file's keys without the types that they are written with."""
    return {
        key: value.value if isinstance(value, GgufValue) else value for key, value in keys.items()
    }
