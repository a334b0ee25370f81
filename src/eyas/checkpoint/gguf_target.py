"""A target's facts from the keys and tensors of a GGUF file."""

from __future__ import annotations

from typing import Any

from eyas.checkpoint.checkpoint import Checkpoint, open_checkpoint
from eyas.checkpoint.gguf import LongList
from eyas.checkpoint.gguf_rope import read_rope
from eyas.checkpoint.target import TargetFacts
from eyas.errors import CheckpointError, TargetError
from eyas.spec import Rope

_KIND = "general.architecture"
_DRAFTERS = ("eagle3", "dflash", "eagle")
# llama.cpp's name of an architecture, and the class and type of the configs that it is made from.
_CLASSES = {
    "llama": ("LlamaForCausalLM", "llama"),
    "qwen2": ("Qwen2ForCausalLM", "qwen2"),
    "qwen2moe": ("Qwen2MoeForCausalLM", "qwen2_moe"),
    "qwen3": ("Qwen3ForCausalLM", "qwen3"),
    "qwen3moe": ("Qwen3MoeForCausalLM", "qwen3_moe"),
    "gpt-oss": ("GptOssForCausalLM", "gpt_oss"),
}


def read_target(location: str) -> TargetFacts:
    """The facts of the target in the GGUF file at `location`, without reading a weight.

    Of an architecture that is not known here, the class and its type stay unsaid. Raises
    TargetError for a file that is unsound, is a drafter, or has a key of another type.
    """
    try:
        file = open_checkpoint(location)
        kind = file.config.get(_KIND)
        if not isinstance(kind, str):
            raise CheckpointError(f"{location} has no {_KIND}", hint="convert or fetch it again")
        if kind in _DRAFTERS:
            raise TargetError(
                f"{location} is itself a drafter: its {_KIND} is {kind}",
                hint="name the model that is served, whose tokens the drafter guesses",
            )
        return _facts(location, file, kind)
    except CheckpointError as error:
        raise TargetError(
            f"the target cannot be opened: {error.message}", hint=error.hint
        ) from None


def _facts(location: str, file: Checkpoint, kind: str) -> TargetFacts:
    def size(key: str) -> int | None:
        return _size(file, f"{kind}.{key}")

    class_name, model_type = _CLASSES.get(kind, (None, None))
    heads, hidden = size("attention.head_count"), size("embedding_length")
    rope = _rope(file, kind, size("attention.key_length"), heads, hidden, size("context_length"))
    embedding = file.tensors.get("token_embd.weight")
    return TargetFacts(
        location=location,
        directory=file.directory,
        architectures=() if class_name is None else (class_name,),
        model_type=model_type,
        text_model_type=model_type,
        hidden_size=hidden,
        intermediate_size=size("feed_forward_length"),
        num_layers=size("block_count"),
        num_attention_heads=heads,
        num_key_value_heads=size("attention.head_count_kv"),
        head_dim=size("attention.key_length"),
        vocab_size=embedding.shape[0] if embedding and embedding.shape else _tokens(file),
        max_position_embeddings=size("context_length"),
        rope_theta=None if rope is None else rope.theta,
        rope=None if rope is None or "factors" in rope.scaling else rope,
        dtype=None,
        tie_word_embeddings=None if embedding is None else "output.weight" not in file.tensors,
    )


def _rope(
    file: Checkpoint,
    kind: str,
    head_dim: int | None,
    heads: int | None,
    hidden: int | None,
    positions: int | None,
) -> Rope | None:
    """The rope where its base is stated, else None."""
    if f"{kind}.rope.freq_base" not in file.config:
        return None
    width = head_dim or (hidden // heads if hidden and heads else 0)
    return read_rope(file, f"{kind}.", head_dim=width, max_positions=positions)


def _tokens(file: Checkpoint) -> int | None:
    tokens = file.config.get("tokenizer.ggml.tokens")
    if isinstance(tokens, LongList):
        return tokens.length
    return len(tokens) if isinstance(tokens, list) else None


def _size(file: Checkpoint, key: str) -> int | None:
    """A number of the whole model; None where it is absent, or a list with one for each layer."""
    value: Any = file.config.get(key)
    if value is None or isinstance(value, list | LongList):
        return None
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TargetError(
            f"{file.config_file} says {key} is {value!r:.80} where a number is needed",
            hint="check that --target is a model's file",
        )
    return value
