"""How an eagle3 GGUF stores the tensors of a drafter, by role.

Rows of q and k change places, d2t holds the ids themselves, and vectors are float32, which
llama.cpp's converter makes of them (conversion/llama.py:213-280, 327-355 of llama.cpp at
0c1e57098). `dialects.contents` has the way back.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from eyas.checkpoint.gguf_rope import FACTORS, stored_rope
from eyas.checkpoint.rows import Cast, Gathered, Made, Rows, blocks
from eyas.dialects.rope_rows import to_neighbours
from eyas.errors import CheckpointError, ConversionError
from eyas.spec import Eagle3Spec, Mha, Mla

if TYPE_CHECKING:
    import numpy as np

_MATRICES = ("F32", "F16", "BF16")
_INTEGERS = {"I8": "i1", "U8": "u1", "I16": "i2", "U16": "u2", "I32": "i4", "U32": "u4"} | {
    "I64": "i8",
    "U64": "u8",
}
_MAP = "d2t"
_TURNED = ("self_attn.q_proj.weight", "self_attn.k_proj.weight")
_EXPORT = "export the drafter in bfloat16"


def stored(spec: Eagle3Spec, role: str, rows: Rows) -> Rows:
    """The tensor with `role` as the file has it; d2t is given as offsets.

    Raises ConversionError for a type that is no plain float, and for a map that is none.
    """
    if role == _MAP:
        return _absolute(rows, spec.vocab_size.value)
    if rows.dtype not in _MATRICES:
        raise ConversionError(
            f"{role} holds {rows.dtype} numbers, and eyas writes F32, F16 and BF16 into GGUF",
            hint=_EXPORT,
        )
    if len(rows.shape) == 1:
        return Cast(rows, "F32")
    heads = _heads(spec.attention, role, rows)
    return rows if heads is None else Gathered(rows, to_neighbours(*heads))


def offsets(rows: Rows) -> Rows:
    """A file's d2t, which holds the ids themselves, as offsets."""
    import numpy as np

    ids = _integers(rows)
    numbers = ids - np.arange(len(ids), dtype=np.int64)
    return Made("I64", (len(ids),), numbers.astype("<i8").tobytes())


def made(spec: Eagle3Spec) -> dict[str, Rows]:
    """The tensors by name that no role has: the factors of llama3's RoPE, where it is that."""
    attention, positions = spec.attention, spec.max_position_embeddings.value
    if isinstance(attention, Mla) or positions is None:
        return {}
    head_dim = attention.head_dim.value
    factors = stored_rope(spec.rope.value, head_dim=head_dim, max_positions=positions).factors
    if factors is None:
        return {}
    raw = struct.pack(f"<{len(factors)}f", *factors)
    return {FACTORS: Made("F32", (len(factors),), raw)}


def _heads(attention: Mha | Mla, role: str, rows: Rows) -> tuple[int, int] | None:
    """How many heads `role` has rows of, and their width; None where rows stay in their order."""
    if isinstance(attention, Mla) or not role.endswith(_TURNED):
        return None
    count = attention.num_heads if role.endswith(_TURNED[0]) else attention.num_kv_heads
    heads, width = count.value, attention.head_dim.value
    if rows.shape[:1] != (heads * width,):
        raise CheckpointError(
            f"{role} has the shape {list(rows.shape)}, and {heads} heads of {width} rows are said"
        )
    return heads, width


def _absolute(rows: Rows, vocab_size: int) -> Rows:
    import numpy as np

    numbers = _integers(rows)
    ids = numbers + np.arange(len(numbers), dtype=np.int64)
    if len(ids) and not (ids.min() >= 0 and ids.max() < vocab_size):
        raise ConversionError(
            f"d2t leads to the ids {ids.min()} to {ids.max()}, and the target has {vocab_size}",
            hint="export the drafter again with its own vocabulary map",
        )
    if len(np.unique(ids)) != len(ids):
        raise ConversionError(
            "d2t leads to one id twice, and llama.cpp would keep the logit of one of the two",
            hint="export the drafter again with its own vocabulary map",
        )
    return Made("I64", (len(ids),), ids.astype("<i8").tobytes())


def _integers(rows: Rows) -> np.ndarray[Any, Any]:
    import numpy as np

    kind = _INTEGERS.get(rows.dtype)
    if kind is None or len(rows.shape) != 1:
        raise CheckpointError(
            f"d2t holds {rows.dtype} numbers of the shape {list(rows.shape)} where a row of whole"
            " numbers is needed",
            hint="export it as int64",
        )
    return np.frombuffer(b"".join(blocks(rows)), f"<{kind}").astype(np.int64)
