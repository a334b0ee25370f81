"""Damaged copies of the drafter that was trained here, each with one fault that users met."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from eyas.checkpoint import Checkpoint, TensorBytes, write_checkpoint

Config = dict[str, Any]
Tensors = dict[str, TensorBytes]
Edit = Callable[[Config, Tensors], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One fault: what is done to the files, how they are launched, and what vLLM 0.32.0 then does.

    `flat` says whether it is done to the flat config, else to the drafter as it was saved. `kind`
    is where vLLM raises, or "silent" where it drafts otherwise than trained, or "sound". `memory`
    is what is found there by a matrix that nothing writes, None for what happens to be.
    """

    name: str
    edit: Edit
    kind: str
    method: str = "eagle3"
    flat: bool = True
    memory: int | None = None


def write_variant(variant: Variant, checkpoint: Checkpoint, directory: Path) -> Path:
    """`checkpoint` with the fault of `variant`, as the new `directory`."""
    config = dict(checkpoint.config)
    tensors = {
        name: TensorBytes(dtype=header.dtype, shape=header.shape, data=checkpoint.read_bytes(name))
        for name, header in checkpoint.tensors.items()
    }
    variant.edit(config, tensors)
    return write_checkpoint(directory, config, tensors)


def left_as_it_is(config: Config, tensors: Tensors) -> None:
    """Changes nothing: the launch is the fault."""


def without(*parts: str) -> Edit:
    """Drops the tensors whose names hold one of `parts`."""

    def edit(config: Config, tensors: Tensors) -> None:
        gone = [name for name in tensors if any(part in name for part in parts)]
        assert gone
        for name in gone:
            del tensors[name]

    return edit


def with_keys(**keys: Any) -> Edit:
    """Sets keys of the config."""

    def edit(config: Config, tensors: Tensors) -> None:
        config.update(keys)

    return edit


def shifted_ids(by: int) -> Edit:
    """Moves the captured layers."""

    def edit(config: Config, tensors: Tensors) -> None:
        key = "eagle_aux_hidden_state_layer_ids"
        config[key] = [layer + by for layer in config[key]]

    return edit


def renamed(old: str, new: str) -> Edit:
    """Writes `new` for `old` at the start of tensor names."""

    def edit(config: Config, tensors: Tensors) -> None:
        for name in [name for name in tensors if name.startswith(old)]:
            tensors[new + name.removeprefix(old)] = tensors.pop(name)

    return edit


def absolute_map(config: Config, tensors: Tensors) -> None:
    """Writes the map as target ids, where offsets to them are read."""
    offsets = np.frombuffer(_bytes(tensors["d2t"]), "<i8")
    ids = offsets + np.arange(len(offsets))
    tensors["d2t"] = TensorBytes(dtype="I64", shape=ids.shape, data=ids.astype("<i8").tobytes())


def fused_matrices(config: Config, tensors: Tensors) -> None:
    """Joins q, k, v and gate, up, as engines hold them."""
    for group, parts in {"self_attn.qkv_proj": "qkv", "mlp.gate_up_proj": ("gate", "up")}.items():
        room = group.partition(".")[0]
        names = [_only(tensors, f"{room}.{part}_proj.weight") for part in parts]
        pieces = [tensors.pop(name) for name in names]
        rows = sum(piece.shape[0] for piece in pieces)
        shape = (rows, pieces[0].shape[1])
        data = b"".join(_bytes(piece) for piece in pieces)
        assert len(data) == 2 * math.prod(shape)
        layer = names[0].partition(room)[0]
        tensors[f"{layer}{group}.weight"] = TensorBytes(
            dtype=pieces[0].dtype, shape=shape, data=data
        )


def _bytes(tensor: TensorBytes) -> bytes:
    assert isinstance(tensor.data, bytes)  # as `write_variant` read it
    return tensor.data


def _only(tensors: Mapping[str, TensorBytes], end: str) -> str:
    (name,) = (name for name in tensors if name.endswith(end))
    return name


ROPE = {"rope_theta": 1e4, "rope_parameters": {"rope_theta": 1e4, "rope_type": "default"}}

SILENT, SOUND, LOAD, REQUEST = "silent", "sound", "raises at load", "raises at first request"
VARIANTS = (
    Variant(name="no fc", edit=without("fc."), kind=SILENT),
    Variant(name="no layer", edit=without("midlayer.", "layers.0."), kind=SILENT),
    Variant(  # every number of its memory is 0.75
        name="no layer, full memory",
        edit=without("midlayer.", "layers.0."),
        kind=SILENT,
        memory=0xFF ^ 0x3F,
    ),
    Variant(name="no d2t", edit=without("d2t"), kind=SILENT),
    Variant(name="absolute d2t", edit=absolute_map, kind=REQUEST),
    Variant(name="ids + 1", edit=shifted_ids(1), kind=SILENT),
    Variant(name="ids - 1", edit=shifted_ids(-1), kind=SILENT),
    Variant(name="wrong residual", edit=with_keys(norm_before_residual=True), kind=SILENT),
    Variant(
        name="method eagle, nested", edit=left_as_it_is, kind=SILENT, method="eagle", flat=False
    ),
    Variant(name="method eagle, flat", edit=left_as_it_is, kind=LOAD, method="eagle"),
    Variant(name="no head", edit=without("lm_head"), kind=SILENT),
    Variant(name="wrong rope", edit=with_keys(**ROPE), kind=SILENT),
    Variant(name="layers.0 names", edit=renamed("midlayer.", "layers.0."), kind=SOUND),
    Variant(name="fused matrices", edit=fused_matrices, kind=SOUND),
    Variant(name="model. before names", edit=renamed("midlayer.", "model.layers.0."), kind=LOAD),
    Variant(name="an unknown layer name", edit=renamed("midlayer.", "decoder."), kind=LOAD),
)
