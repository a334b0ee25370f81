"""The order of the rows of q and k: Hugging Face pairs halves of a head, llama.cpp neighbours.

Channel j of a head turns with channel j + D/2 in Hugging Face's Llama, and channel 2j with 2j + 1
in llama.cpp, so that its converter stores the rows in another order (`LlamaModel.permute`,
conversion/llama.py:120-127 of llama.cpp at 0c1e57098).
"""

from __future__ import annotations

from eyas.errors import CheckpointError


def to_neighbours(heads: int, head_dim: int) -> list[int]:
    """For each row as llama.cpp stores it, the trained row: ``stored[i] = trained[order[i]]``.

    `heads` are the key heads for k. Raises CheckpointError for an odd `head_dim`.
    """
    half = _half(head_dim)
    return [
        head * head_dim + part * half + pair
        for head in range(heads)
        for pair in range(half)
        for part in (0, 1)
    ]


def from_neighbours(heads: int, head_dim: int) -> list[int]:
    """For each trained row, llama.cpp's: ``trained[i] = stored[order[i]]``."""
    half = _half(head_dim)
    return [
        head * head_dim + 2 * pair + part
        for head in range(heads)
        for part in (0, 1)
        for pair in range(half)
    ]


def _half(head_dim: int) -> int:
    if head_dim % 2:
        raise CheckpointError(f"heads of {head_dim} channels cannot be rotated in pairs")
    return head_dim // 2
