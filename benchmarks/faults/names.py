"""Tensors that an engine does not find: renamed, or not there."""

from __future__ import annotations

from typing import Any

from benchmarks.faults.draft import FUSION, HEAD, LAYER, MAP, MASK, NORMS, Draft
from benchmarks.faults.kind import Draw, Kind, Part, Sign, anywhere, choose
from benchmarks.faults.setting import Setting

_INSIDE = frozenset({Part.LAYER, Part.HEADS, Part.NORMS, Part.ROPE, Part.RESIDUAL})


def layer_of_a_newer_engine(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The layer is called layers.0, and this SGLang's is still called midlayer."""
    draft.rename_layer("layers.0.")
    return {"prefix": "layers.0."}


def layer_under_a_strange_name(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The layer has a prefix that no loader knows."""
    prefix = choose(draw, ("decoder.layers.0.", "draft_layer.", "drafter.midlayer.", "layer."))
    draft.rename_layer(prefix)
    return {"prefix": prefix}


def matrix_missing(draft: Draft, draw: Draw) -> dict[str, Any]:
    """One matrix of the layer is not in the file."""
    role = choose(draw, LAYER)
    draft.drop([role])
    return {"matrix": role}


def norm_missing(draft: Draft, draw: Draw) -> dict[str, Any]:
    """One of the layer's norms is not in the file."""
    role = choose(draw, NORMS)
    draft.drop([role])
    return {"norm": role}


def fusion_missing(draft: Draft, draw: Draw) -> dict[str, Any]:
    """Fc is not in the file."""
    draft.drop([FUSION])
    return {}


def head_missing(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The head over the draft vocabulary is not in the file."""
    draft.drop([HEAD])
    return {}


def map_missing(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The vocabulary map is not in the file: it stayed in the trainer's cache."""
    draft.drop([MAP, MASK])
    return {}


def _skips(setting: Setting) -> bool:
    return setting.engine == "sglang"


def _old(setting: Setting) -> bool:
    return _skips(setting) and not setting.since("0.5.12")


KINDS = (
    Kind(
        name="layer-of-a-newer-engine",
        stands_for="K1",
        reports=("sglang#24663",),
        part=Part.LAYER,
        sign=Sign.FILES,
        plant=layer_of_a_newer_engine,
        shows=_old,
        silences=_INSIDE,
    ),
    Kind(
        name="layer-under-a-strange-name",
        stands_for="K1",
        reports=("EAGLE#130", "Automodel#2841"),
        part=Part.LAYER,
        sign=Sign.FILES,
        plant=layer_under_a_strange_name,
        shows=_skips,  # vLLM raises
        silences=_INSIDE,
    ),
    Kind(
        name="matrix-missing",
        stands_for="K2",
        reports=("sglang#16235",),
        part=Part.LAYER,
        sign=Sign.FILES,
        plant=matrix_missing,
        shows=anywhere,
        destroys=True,
    ),
    Kind(
        name="norm-missing",
        stands_for="K2",
        reports=("sglang#16235",),
        part=Part.NORMS,
        sign=Sign.FILES,
        plant=norm_missing,
        shows=anywhere,
        destroys=True,
    ),
    Kind(
        name="fusion-missing",
        stands_for="K2",
        reports=("sglang#16235",),
        part=Part.FUSION,
        sign=Sign.FILES,
        plant=fusion_missing,
        shows=anywhere,
        silences=frozenset({Part.BOUNDARIES}),
        destroys=True,
    ),
    Kind(
        name="head-missing",
        stands_for="K2",
        reports=("sglang#27908",),
        part=Part.HEAD,
        sign=Sign.FILES,
        plant=head_missing,
        shows=anywhere,
        silences=frozenset({Part.ROWS}),
        destroys=True,
    ),
    Kind(
        name="map-missing",
        stands_for="K13",
        reports=("vllm#18909", "Automodel#2447"),
        part=Part.ROWS,
        sign=Sign.FILES,
        plant=map_missing,
        shows=anywhere,
        destroys=True,
    ),
)
