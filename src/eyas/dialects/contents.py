"""What a checkpoint's tensors hold, by role, in the form that the drafter computes with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eyas.checkpoint import Checkpoint, Format
from eyas.checkpoint.rows import Gathered, Rows, StoredRows
from eyas.dialects.rope_rows import from_neighbours
from eyas.errors import CheckpointError
from eyas.spec import Mha, Mla

QKV, GATE_UP = "self_attn.qkv_proj.", "mlp.gate_up_proj."


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The rows of one role, unread, and the tensor that holds them; `part` where it holds more."""

    rows: Rows
    tensor: str
    part: bool = False


def contents(
    checkpoint: Checkpoint, roles: Mapping[str, str], attention: Mha | Mla
) -> dict[str, Content]:
    """Role → what its tensor holds; `roles` maps tensor names to roles.

    A tensor that holds several parts is split, and GGUF's q and k have their rows in the trained
    order; d2t and t2d are as they are stored. Raises CheckpointError where a fused tensor has other
    rows than its parts.
    """
    found: dict[str, Content] = {}
    for name, role in roles.items():
        rows: Rows = StoredRows(checkpoint, name)
        if checkpoint.format is Format.GGUF:
            rows = in_trained_order(rows, role, attention)
        parts = _parts(checkpoint.place(name), rows, role, attention)
        for part, where in parts.items():
            found[part] = Content(rows=Gathered(rows, where), tensor=name, part=True)
        if not parts:
            found[role] = Content(rows=rows, tensor=name)
    return found


def in_trained_order(rows: Rows, role: str, attention: Mha | Mla) -> Rows:
    """`rows` as a GGUF file stores them, in the order of Hugging Face: q and k have another."""
    if not isinstance(attention, Mha):
        return rows
    for part, heads in (("q_proj", attention.num_heads), ("k_proj", attention.num_kv_heads)):
        if role.endswith(f"self_attn.{part}.weight"):
            count, width = heads.value, attention.head_dim.value
            if rows.shape[:1] != (count * width,):
                raise CheckpointError(
                    f"{role} has the shape {list(rows.shape)}, and its heads {count} x {width}",
                    hint="correct the sizes in the file's keys",
                )
            return Gathered(rows, from_neighbours(count, width))
    return rows


def _parts(place: str, rows: Rows, role: str, attention: Mha | Mla) -> dict[str, range]:
    """The roles that a fused tensor of `role` holds, and which of its rows each is."""
    if GATE_UP in role:
        half = rows.shape[0] // 2
        sizes = {"mlp.gate_proj.": half, "mlp.up_proj.": half}
        fused = GATE_UP
    elif QKV in role and isinstance(attention, Mha):
        dim = attention.head_dim.value
        keys = attention.num_kv_heads.value * dim
        sizes = {
            "self_attn.q_proj.": attention.num_heads.value * dim,
            "self_attn.k_proj.": keys,
            "self_attn.v_proj.": keys,
        }
        fused = QKV
    else:
        return {}
    if sum(sizes.values()) != rows.shape[0]:
        parts = ", ".join(map(str, sizes.values()))
        raise CheckpointError(
            f"{place} has {rows.shape[0]} rows, and its parts {parts}",
            hint="correct the sizes in the config",
        )
    found = {}
    first = 0
    for part, size in sizes.items():
        found[role.replace(fused, part)] = range(first, first + size)
        first += size
    return found
