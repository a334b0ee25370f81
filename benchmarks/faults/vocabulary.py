"""The map of draft ids, the rows of the head that it names, the head and the embedding."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.faults.draft import EMBEDDING, HEAD, MAP, MASK, Draft
from benchmarks.faults.kind import Draw, Kind, Part, Sign, anywhere, choose
from benchmarks.faults.setting import Setting
from benchmarks.faults.weights import Held, held


def map_of_ids(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The map holds the target's ids where offsets are meant, as GGUF alone has it."""
    offsets = draft.held(MAP).whole()
    draft.put(MAP, offsets + np.arange(len(offsets)))
    return {}


def map_of_own_indices(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The map counts 0, 1, 2 …: a default that stands for identity elsewhere."""
    draft.put(MAP, np.arange(len(draft.held(MAP).whole())))
    return {}


def map_of_zeros(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The map is a buffer that was never filled: the first ids of the target's."""
    draft.put(MAP, np.zeros_like(draft.held(MAP).whole()))
    _mark(draft)
    return {}


def map_of_another_drafter(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The vocabulary was chosen again, on other data, and the head was not trained again."""
    ids = _ids(draft)
    changed = float(np.round(draw.uniform(0.05, 0.6), 3))
    others = np.setdiff1d(np.arange(_vocabulary(draft)), ids)
    count = max(1, int(changed * len(ids)))
    gone = draw.choice(ids, count, replace=False)
    new = np.sort(np.concatenate([np.setdiff1d(ids, gone), draw.choice(others, count, False)]))
    _put_ids(draft, new)
    return {"share of new ids": changed}


def map_rolled(draft: Draft, draw: Draw) -> dict[str, Any]:
    """Each row has the id of a row some places further."""
    ids = _ids(draft)
    by = int(draw.integers(1, len(ids) // 4))
    _put_ids(draft, np.roll(ids, by))
    return {"rolled by": by}


def map_in_another_order(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The right ids in the wrong order: each row of the head stands for another's token."""
    ids = _ids(draft)
    _put_ids(draft, draw.permutation(ids))
    return {}


def head_rows_in_another_order(draft: Draft, draw: Draw) -> dict[str, Any]:
    """A warm start gave the head's rows new labels: they are permuted, and the map is not."""
    rows = draft.floats(HEAD)
    share = float(np.round(draw.uniform(0.6, 1.0), 2))
    moved = draw.choice(len(rows), int(share * len(rows)), replace=False)
    rows[np.sort(moved)] = rows[moved]
    draft.put(HEAD, rows)
    return {"share of rows": share}


def head_tied(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The config says that the head is the embedding, as the target's config does."""
    draft.sizes["tie_word_embeddings"] = True
    return {"tie_word_embeddings": True}


def embedding_at_init(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The exporter saved an embedding of random numbers."""
    own = _embedding(draft)
    scale = choose(draw, (0.02, 0.05, 1.0))
    draft.weights[_embedding_name(draft)] = own.like(
        draw.normal(0, scale, own.shape).astype(np.float32)
    )
    return {"std": scale}


def embedding_of_zeros(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The exporter saved an embedding that was never filled."""
    own = _embedding(draft)
    draft.weights[_embedding_name(draft)] = Held(own.dtype, own.shape, bytes(len(own.data)))
    return {}


def embedding_of_another_target(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The embedding belongs to another tokenizer: its rows are other tokens'."""
    own = _embedding(draft)
    rows = own.floats()
    by = int(draw.integers(1, len(rows)))
    draft.weights[_embedding_name(draft)] = own.like(np.roll(rows, by, axis=0))
    return {"rolled by": by}


def _vocabulary(draft: Draft) -> int:
    return int(draft.facts()["vocab_size"])


def _ids(draft: Draft) -> Any:
    offsets = draft.held(MAP).whole()
    return offsets + np.arange(len(offsets))


def _put_ids(draft: Draft, ids: Any) -> None:
    draft.put(MAP, ids - np.arange(len(ids)))
    _mark(draft)


def _mark(draft: Draft) -> None:
    """The mask over the target's vocabulary, where there is one, to agree with the map."""
    if draft.has(MASK):
        kept = np.zeros(_vocabulary(draft), np.bool_)
        kept[_ids(draft)] = True
        draft.weights[MASK] = held(kept, "BOOL")


def _embedding(draft: Draft) -> Held:
    return draft.held(EMBEDDING) if draft.has(EMBEDDING) else draft.target_embedding()


def _embedding_name(draft: Draft) -> str:
    return draft.name(EMBEDDING) or EMBEDDING


def _own(setting: Setting) -> bool:
    """Whether the engine keeps an embedding that the drafter brings."""
    return setting.engine == "vllm" and setting.nested


def _tied(setting: Setting) -> bool:
    return setting.engine == "sglang"  # vLLM does not read the switch


_ROWS = {"part": Part.ROWS, "shows": anywhere}
_EMBEDDING = {
    "stands_for": "K4",
    "reports": ("TorchSpec#38",),
    "part": Part.EMBEDDING,
    "shows": _own,
    "destroys": True,
}

KINDS = (
    Kind(
        name="map-of-ids",
        stands_for="K12",
        reports=("llama.cpp#18039",),
        sign=Sign.FILES,
        plant=map_of_ids,
        **_ROWS,
    ),
    Kind(
        name="map-of-own-indices",
        stands_for="K12",
        reports=("verl-SpeCo#67",),
        sign=Sign.FILES,
        plant=map_of_own_indices,
        destroys=True,
        **_ROWS,
    ),
    Kind(
        name="map-of-zeros",
        stands_for="K13",
        reports=("verl-SpeCo#66",),
        sign=Sign.FILES,
        plant=map_of_zeros,
        destroys=True,
        **_ROWS,
    ),
    Kind(
        name="map-of-another-drafter",
        stands_for="K30",
        reports=("SpecForge#534",),
        sign=Sign.REPLAY,
        plant=map_of_another_drafter,
        destroys=True,
        **_ROWS,
    ),
    Kind(
        name="map-rolled",
        stands_for="K30",
        reports=("SpecForge#300",),
        sign=Sign.REPLAY,
        plant=map_rolled,
        destroys=True,
        **_ROWS,
    ),
    Kind(
        name="map-in-another-order",
        stands_for="K30",
        reports=("SpecForge#534",),
        sign=Sign.REPLAY,
        plant=map_in_another_order,
        destroys=True,
        **_ROWS,
    ),
    Kind(
        name="head-rows-in-another-order",
        stands_for="K30",
        reports=("SpecForge#534",),
        sign=Sign.REPLAY,
        plant=head_rows_in_another_order,
        destroys=True,
        **_ROWS,
    ),
    Kind(
        name="head-tied",
        stands_for="K16",
        reports=("SpecForge#139", "vllm#27732"),
        part=Part.HEAD,
        sign=Sign.FILES,
        plant=head_tied,
        shows=_tied,
        silences=frozenset({Part.ROWS}),
    ),
    Kind(name="embedding-at-init", sign=Sign.FILES, plant=embedding_at_init, **_EMBEDDING),
    Kind(name="embedding-of-zeros", sign=Sign.FILES, plant=embedding_of_zeros, **_EMBEDDING),
    Kind(
        name="embedding-of-another-target",
        sign=Sign.FILES,
        plant=embedding_of_another_target,
        **_EMBEDDING,
    ),
)
