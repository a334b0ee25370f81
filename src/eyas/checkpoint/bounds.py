"""Bounds: what no drafter's config holds, be it a count that would take for ever to build."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eyas.errors import CheckpointError

# The largest public models have some 130 layers, 262,144 tokens, a width of 18,432 and 128 heads of
# 576 channels; the widest fusion takes 5 states.
_MOST = {
    "num_hidden_layers": 1000,
    "eagle3.block_count": 1000,
    "num_aux_hidden_states": 64,
    "vocab_size": 2**21,
    "draft_vocab_size": 2**21,
    "eagle3.vocab_size": 2**21,
    "hidden_size": 2**20,
    "target_hidden_size": 2**20,
    "eagle3.embedding_length": 2**20,
    "num_attention_heads": 2**16,
    "num_key_value_heads": 2**16,
    "eagle3.attention.head_count": 2**16,
    "eagle3.attention.head_count_kv": 2**16,
    "head_dim": 2**16,
    "eagle3.attention.key_length": 2**16,
}
_MOST_IDS = 64
_IDS = "layer_ids"


def require_bounded(config: Mapping[str, Any], file: str) -> None:
    """Raises CheckpointError where `config`, or an object in it, counts beyond every drafter.

    The same where `architectures` names what cannot be a class, and would break a line in two.
    """
    _require_class_names(config.get("architectures"), file)
    tables = {"": config, **{f"{k}.": v for k, v in config.items() if isinstance(v, Mapping)}}
    for prefix, table in tables.items():
        for key, most in _MOST.items():
            value = table.get(key)
            if isinstance(value, int) and value > most:
                raise _beyond(f"{file} :: {prefix}{key} is {_short(value)}", most)
        for key, value in table.items():
            if key.endswith(_IDS) and isinstance(value, list) and len(value) > _MOST_IDS:
                raise _beyond(f"{file} :: {prefix}{key} has {len(value)} ids", _MOST_IDS)


def _require_class_names(names: object, file: str) -> None:
    for name in names if isinstance(names, list) else ():
        if isinstance(name, str) and not name.isprintable():
            raise CheckpointError(
                f"{file} :: architectures names {name[:80]!r}, which is no class",
                hint="correct the config",
            )


def _short(value: int) -> str:
    text = str(value)
    return text if len(text) <= 20 else f"a number of {len(text)} digits"


def _beyond(what: str, most: int) -> CheckpointError:
    return CheckpointError(
        f"{what}, and eyas reads drafters of at most {most}", hint="correct the config"
    )
