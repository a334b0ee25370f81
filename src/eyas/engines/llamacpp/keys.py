"""The keys of a GGUF file of the architecture eagle3, as llama.cpp reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from eyas.checkpoint import Checkpoint, Format
from eyas.checkpoint.gguf_rope import read_rope
from eyas.engines.config import ConfigView
from eyas.engines.llamacpp import claims
from eyas.engines.llamacpp.conversion import command, losses
from eyas.engines.llamacpp.key_types import PREFIX, require_types
from eyas.engines.llamacpp.limits import require_limits
from eyas.engines.llamacpp.tokenizer import require_tokenizer, vocabulary_of
from eyas.engines.stop import NotCovered, Refused
from eyas.spec import Claim, Fact, Rope, Stage, assumed, declared

ARCHITECTURE = "general.architecture"
_IDS = "target_layers"
_EACH = ("intermediate_size", "num_attention_heads", "num_key_value_heads")

# What the file calls a key, by the name that the facts of a drafter have.
_NAMES: Mapping[str, str] = {
    "hidden_size": "eagle3.embedding_length",
    "target_hidden_size": "eagle3.target_hidden_size",
    "intermediate_size": "eagle3.feed_forward_length",
    "num_hidden_layers": "eagle3.block_count",
    "num_attention_heads": "eagle3.attention.head_count",
    "num_key_value_heads": "eagle3.attention.head_count_kv",
    "head_dim": "eagle3.attention.key_length",
    "value_length": "eagle3.attention.value_length",
    "rotated": "eagle3.rope.dimension_count",
    "max_position_embeddings": "eagle3.context_length",
    "rms_norm_eps": "eagle3.attention.layer_norm_rms_epsilon",
    "norm_before_residual": "eagle3.norm_before_residual",
    "norm_before_fc": "eagle3.norm_before_fc",
    _IDS: f"eagle3.{_IDS}",
    "rope_theta": "eagle3.rope.freq_base",
    "rope_type": "eagle3.rope.scaling.type",
}


def keys_of(checkpoint: Checkpoint, version: str, target_layers: int | None) -> ConfigView:
    """The keys of the file; refuses another architecture, or a key that is missing.

    A Hugging Face directory is refused where llama.cpp's own converter would lose something, and
    NotCovered where it would not: what counts is the file that comes of it.
    """
    raw, file = checkpoint.config, checkpoint.config_file
    if checkpoint.format is not Format.GGUF:
        lost = ", and ".join(losses(checkpoint, target_layers))
        if not lost:
            raise NotCovered(
                f"{file} is that of a Hugging Face directory, and llama.cpp reads GGUF files alone:"
                f" {command(checkpoint, version)}"
            )
        raise Refused(
            Stage.CONFIG,
            f"llama.cpp reads GGUF files alone, and its own convert_hf_to_gguf.py {lost}",
            claims.FORMAT,
        )
    if raw.get(ARCHITECTURE) != "eagle3":
        raise Refused(
            Stage.CONFIG,
            f"{file} :: {ARCHITECTURE} is {raw.get(ARCHITECTURE)!r}, and draft-eagle3 takes eagle3",
            claims.ARCHITECTURE,
        )
    values = {name: raw[key] for name, key in _NAMES.items() if key in raw}
    values["hidden_act"] = "silu"
    require_types(checkpoint)
    view = ConfigView(
        values=values,
        whose=f"llama.cpp {version}",
        stop=lambda message: Refused(Stage.CONFIG, message, claims.EAGLE3_KEYS),
        file=file,
        places=dict(_NAMES),
    )
    for name in ("max_position_embeddings", "hidden_size", "num_hidden_layers"):
        if not view.has(name):
            raise _missing(view.key(name), claims.GENERAL_KEYS)
    for name in ("rms_norm_eps", "target_hidden_size", _IDS):
        if not view.has(name):
            raise _missing(view.key(name), claims.EAGLE3_KEYS)
    boundaries_of(view)
    require_limits(checkpoint)
    require_tokenizer(checkpoint)
    tokens = vocabulary_of(checkpoint, view.whose)
    return replace(view, values=_plain(values) | {"vocab_size": tokens.value})


def _plain(values: Mapping[str, object]) -> dict[str, object]:
    """`values` with the number of the one layer in the place of a list of them."""
    first = {k: v for k in _EACH if isinstance(v := values.get(k), list) and v}
    return {**values, **{k: int(v[0]) for k, v in first.items()}}


def require_counted(view: ConfigView) -> None:
    """Refuse a file with a count that is 0, as where it is absent: no tensor has 0 rows."""
    for name in ("hidden_size", "intermediate_size", "num_attention_heads"):
        if not view.get(name):
            words = "is 0" if view.has(name) else "is missing and counts as 0"
            raise Refused(Stage.LOAD, f"{view.key(name)} {words}", claims.SHAPES)


def _missing(key: str, claim: Claim) -> Refused:
    return Refused(Stage.CONFIG, f"{key} is missing", claim)


def boundaries_of(view: ConfigView) -> Fact[tuple[int, ...]]:
    """The three captured boundaries, in the order of the list."""
    ids = view.ids(_IDS)
    if ids is None or len(ids) != 3:
        count = 0 if ids is None else len(ids)
        raise Refused(
            Stage.CONFIG,
            f"{view.key(_IDS)} has {count} entries, and there must be three",
            claims.EAGLE3_KEYS,
        )
    return declared(ids, view.key(_IDS))


def rope_of(view: ConfigView, checkpoint: Checkpoint, head_dim: int) -> Fact[Rope]:
    """Base and scaling; factors whose numbers the file does not state stay a tensor."""
    positions = view.whole("max_position_embeddings").value
    rope = read_rope(checkpoint, PREFIX, head_dim=head_dim, max_positions=positions)
    if not view.has("rope_theta"):
        return assumed(rope, view.key("rope_theta"), whose=view.whose)
    return declared(rope, view.real("rope_theta").key)
