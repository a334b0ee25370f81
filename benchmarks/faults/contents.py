"""Tensors of the right name and shape that hold the wrong numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.faults.draft import FUSION, HEAD, LAYER, MAP, MASK, Draft
from benchmarks.faults.kind import Draw, Kind, Part, Sign, anywhere, choose
from benchmarks.faults.weights import Floats, held

_Q, _K, _V = LAYER[:3]
_MATRICES = (*LAYER, FUSION, HEAD)
_ALL = frozenset({Part.EVERYTHING})


def matrix_of_zeros(draft: Draft, draw: Draw) -> dict[str, Any]:
    """One matrix is all zero."""
    role = choose(draw, _MATRICES)
    draft.put(role, np.zeros_like(draft.floats(role)))
    return {"matrix": role}


def matrix_not_finite(draft: Draft, draw: Draw) -> dict[str, Any]:
    """One matrix holds numbers that overflowed, or were never ones."""
    role, odd = choose(draw, _MATRICES), choose(draw, (np.nan, np.inf))
    numbers = draft.floats(role)
    rows = draw.choice(len(numbers), max(1, int(draw.uniform(0.01, 0.5) * len(numbers))), False)
    numbers[rows] = odd
    draft.put(role, numbers)
    return {"matrix": role, "rows": len(rows), "value": str(odd)}


def matrix_at_init(draft: Draft, draw: Draw) -> dict[str, Any]:
    """One matrix was never trained: it is as its construction left it."""
    role = choose(draw, _MATRICES)
    numbers = draft.floats(role)
    manner = choose(draw, ("normal 0.02", "uniform by fan-in"))
    if manner == "normal 0.02":
        new = draw.normal(0, 0.02, numbers.shape)
    else:
        limit = 1 / np.sqrt(numbers.shape[1])
        new = draw.uniform(-limit, limit, numbers.shape)
    draft.put(role, new.astype(np.float32))
    return {"matrix": role, "manner": manner}


def rows_repeated(draft: Draft, draw: Draw) -> dict[str, Any]:
    """One matrix holds one row again and again."""
    role = choose(draw, (FUSION, HEAD, *LAYER))
    numbers = draft.floats(role)
    row = int(draw.integers(len(numbers)))
    draft.put(role, np.repeat(numbers[row : row + 1], len(numbers), axis=0))
    return {"matrix": role, "row": row}


def rows_in_llamacpp_order(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The rows of q and k come from a GGUF, whose rotary pairs are neighbours."""
    sizes = draft.sizes
    heads = {_Q: sizes["num_attention_heads"], _K: sizes["num_key_value_heads"]}
    for role, count in heads.items():
        draft.put(role, _interleaved(draft.floats(role), count))
    return {}


def _interleaved(rows: Floats, heads: int) -> Floats:
    """[heads, 2, half] rows as [heads, half, 2]."""
    return rows.reshape(heads, 2, -1, rows.shape[1]).swapaxes(1, 2).reshape(rows.shape)


def gate_and_up_exchanged(draft: Draft, draw: Draw) -> dict[str, Any]:
    """Gate and up stand under each other's name."""
    draft.swap("mlp.gate_proj.weight", "mlp.up_proj.weight")
    return {}


def key_and_value_exchanged(draft: Draft, draw: Draw) -> dict[str, Any]:
    """Keys and values stand under each other's name."""
    draft.swap(_K, _V)
    return {}


def barely_trained(draft: Draft, draw: Draw) -> dict[str, Any]:
    """Training ended early: of every matrix the strongest directions alone were learned."""
    share = float(np.round(draw.uniform(0.01, 0.05), 3))
    for role in (*LAYER, FUSION):
        numbers = draft.floats(role)
        kept = max(1, int(share * min(numbers.shape)))
        left, strengths, right = np.linalg.svd(numbers, full_matrices=False)
        draft.put(role, (left[:, :kept] * strengths[:kept]) @ right[:kept])
    return {"share of directions": share}


def file_of_an_earlier_day(draft: Draft, draw: Draw) -> dict[str, Any]:
    """A second weight file, from early in training, lies beside the right one and is read last."""
    name = choose(draw, ("step_2000.safetensors", "old.safetensors", "pytorch_model.safetensors"))
    older = {}
    for key, tensor in draft.weights.items():
        if tensor.dtype == "BF16" and len(tensor.shape) == 2:
            numbers = tensor.floats()
            older[key] = tensor.like(draw.normal(0, numbers.std(), numbers.shape))
        elif key not in (MAP, MASK):
            older[key] = tensor
    draft.beside[name] = older
    return {"file": name}


def scales_left_behind(draft: Draft, draw: Draw) -> dict[str, Any]:
    """Matrices of 8-bit numbers whose scales are in no file."""
    dtype, most = choose(draw, (("I8", 127.0), ("F8_E4M3", 448.0)))
    roles = LAYER if draw.random() < 0.5 else (choose(draw, LAYER),)
    for role in roles:
        numbers, name = draft.floats(role), draft.name(role)
        assert name is not None
        scaled = numbers * (most / np.abs(numbers).max(axis=1, keepdims=True))
        draft.weights[name] = held(np.rint(scaled) if dtype == "I8" else scaled, dtype)
    return {"dtype": dtype, "matrices": roles}


_LAYER = {"part": Part.LAYER, "shows": anywhere}
KINDS = (
    Kind(
        name="matrix-of-zeros",
        stands_for="K4",
        reports=("mlx-node#115",),
        sign=Sign.FILES,
        plant=matrix_of_zeros,
        destroys=True,
        **_LAYER,
    ),
    Kind(
        name="matrix-not-finite",
        stands_for="K26",
        reports=("vllm#55294",),
        sign=Sign.FILES,
        plant=matrix_not_finite,
        silences=_ALL,
        destroys=True,
        **_LAYER,
    ),
    Kind(
        name="matrix-at-init",
        stands_for="K4",
        reports=("GSQ#11", "vllm#35548"),
        sign=Sign.FILES,
        plant=matrix_at_init,
        destroys=True,
        **_LAYER,
    ),
    Kind(
        name="rows-repeated",
        stands_for="K4",
        reports=("GSQ#11",),
        sign=Sign.FILES,
        plant=rows_repeated,
        destroys=True,
        **_LAYER,
    ),
    Kind(
        name="rows-in-llamacpp-order",
        stands_for="K17",
        reports=("Automodel#2399",),
        sign=Sign.REPLAY,
        plant=rows_in_llamacpp_order,
        **_LAYER,
    ),
    Kind(
        name="gate-and-up-exchanged",
        stands_for="K4",
        reports=("GSQ#11",),
        sign=Sign.REPLAY,
        plant=gate_and_up_exchanged,
        **_LAYER,
    ),
    Kind(
        name="key-and-value-exchanged",
        stands_for="K4",
        reports=("GSQ#11",),
        sign=Sign.REPLAY,
        plant=key_and_value_exchanged,
        **_LAYER,
    ),
    Kind(
        name="barely-trained",
        stands_for="K31",
        reports=("EAGLE#227", "speculators#751"),
        part=Part.EVERYTHING,
        sign=Sign.REPLAY,
        plant=barely_trained,
        shows=anywhere,
        silences=_ALL,
        destroys=True,
    ),
    Kind(
        name="file-of-an-earlier-day",
        stands_for="K4",
        reports=("GSQ#11",),
        part=Part.EVERYTHING,
        sign=Sign.FILES,
        plant=file_of_an_earlier_day,
        shows=anywhere,
        silences=_ALL,
        destroys=True,
    ),
    Kind(
        name="scales-left-behind",
        stands_for="K24",
        reports=("sglang#35797",),
        sign=Sign.FILES,
        plant=scales_left_behind,
        destroys=True,
        **_LAYER,
    ),
)
