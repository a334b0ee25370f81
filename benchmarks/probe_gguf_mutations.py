"""Damage to sound GGUF drafters that llama.cpp may or may not notice, by a seed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from benchmarks.probe_gguf import ARRAY, DTYPES, SCALARS, STRING, Drafter, GgufMutant

from eyas.checkpoint.gguf import GgufValue

Changed = tuple[str, GgufMutant]


def gguf_mutant(originals: list[Drafter], seed: int, number: int) -> GgufMutant:
    """Mutant `number` of `seed`: one to three pieces of damage to one of `originals`."""
    random = Random(f"gguf {seed}-{number}")
    original = originals[number % len(originals)]
    made = GgufMutant(
        number=number,
        what=original.name,
        keys=dict(original.keys),
        tensors=dict(original.tensors),
        target=original.target,
    )
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        done, made = random.choice(_CHANGES)(made, random)
        made = replace(made, what=f"{made.what}; {done}")
    return made


def _rename(made: GgufMutant, random: Random) -> Changed:
    old, new = random.choice(_RENAMINGS)
    hit = [name for name in made.tensors if old in name]
    if random.random() < 0.5 and hit:
        hit = [random.choice(hit)]
    renamed = {(n.replace(old, new, 1) if n in hit else n): t for n, t in made.tensors.items()}
    return f"rename {old!r} to {new!r} in {len(hit)}", replace(made, tensors=renamed)


_RENAMINGS = (
    ("blk.0.", "blk.1."),
    ("blk.0.", "layers.0."),
    ("blk.0.", "blk.00."),
    ("attn_norm_2", "attn_norm"),
    ("attn_norm.", "attn_norm_2."),
    ("attn_norm.", "attn_post_norm."),
    ("attn_output", "attn_out"),
    ("attn_q", "attn_qkv"),
    ("ffn_gate", "ffn_up"),
    ("ffn_down", "ffn_down_exps"),
    ("ffn_norm", "post_attention_norm"),
    (".weight", ".bias"),
    (".weight", ""),
    ("output.", "lm_head."),
    ("output.", "token_embd."),
    ("output_norm", "norm"),
    ("output_norm", "enc.output_norm"),
    ("token_embd", "embed_tokens"),
    ("token_embd.", "output."),
    ("fc.", "enc.fc."),
    ("fc.weight", "fc"),
    ("d2t", "d2t.weight"),
    ("d2t", "t2d"),
    ("d2t", "rope_freqs.weight"),
)


def _drop(made: GgufMutant, random: Random) -> Changed:
    part = random.choice(sorted(made.tensors))
    if random.random() < 0.2:
        part = random.choice(("attn", "ffn", "norm", "blk.0", "output", "token_embd", "d2t"))
    kept = {n: t for n, t in made.tensors.items() if part not in n}
    return f"drop {part!r}", replace(made, tensors=kept or made.tensors)


def _resize(made: GgufMutant, random: Random) -> Changed:
    name = random.choice(sorted(made.tensors))
    dtype, shape, data = made.tensors[name]
    axis = random.randrange(len(shape)) if shape else 0
    size = shape[axis] if shape else 1
    new = random.choice((size + 1, max(0, size - 1), size * 2, max(1, size // 2), size + 8, 0))
    sizes = [new if i == axis else s for i, s in enumerate(shape)]
    other = random.random()
    if other < 0.1:
        sizes = list(reversed(shape))
    elif other < 0.2:
        sizes = [1, *shape]
    elif other < 0.3:
        sizes = [*shape, 1]
    elif other < 0.35:
        sizes = []
    elif other < 0.4:
        sizes = [math.prod(shape)]
    tensor = (dtype, tuple(sizes[-4:]), data)
    said = f"resize {name} from {list(shape)} to {list(tensor[1])}"
    return said, replace(made, tensors={**made.tensors, name: tensor})


def _retype(made: GgufMutant, random: Random) -> Changed:
    name = random.choice(sorted(made.tensors))
    if "d2t" in made.tensors and random.random() < 0.15:
        name = "d2t"
    dtype, shape, _ = made.tensors[name]
    new = random.choice([one for one in DTYPES if one != dtype])
    if DTYPES[new][1] > 1 and random.random() < 0.8:  # most have no whole blocks in a row
        new = "F16" if dtype != "F16" else "BF16"
    return f"retype {name} to {new}", replace(
        made, tensors={**made.tensors, name: (new, shape, None)}
    )


def _add(made: GgufMutant, random: Random) -> Changed:
    name, shape = random.choice(_EXTRAS)
    dtype = random.choice(("F32", "F16")) if shape[1:] else "F32"
    tensors = {**made.tensors, name: (dtype, shape, None)}
    return f"add {name} {list(shape)}", replace(made, tensors=tensors)


_EXTRAS: tuple[tuple[str, tuple[int, ...]], ...] = (
    ("enc.output_norm.weight", (24,)),
    ("enc.output_norm.weight", (8,)),
    ("rope_freqs.weight", (2,)),
    ("rope_freqs.weight", (4,)),
    ("blk.0.rope_freqs.weight", (2,)),
    ("token_embd.weight", (32, 8)),
    ("token_embd.weight", (40, 8)),
    ("token_embd.weight", (16, 8)),
    ("token_embd.weight", (32, 16)),
    ("output.weight", (32, 8)),
    ("output.weight", (16, 8)),
    ("output.bias", (16,)),
    ("fc.bias", (8,)),
    ("blk.0.attn_q.bias", (8,)),
    ("blk.0.attn_q_norm.weight", (4,)),
    ("blk.0.ffn_down.bias", (8,)),
    ("blk.1.attn_norm.weight", (8,)),
    ("t2d", (32,)),
    ("fc_norm.0.weight", (8,)),
    ("output_norm.bias", (8,)),
)


def _twice(made: GgufMutant, random: Random) -> Changed:
    name = random.choice([*made.tensors, *made.keys])
    if name in made.tensors and random.random() < 0.5:
        copied = random.choice((f"{name}_2", f"x.{name}", name.replace("blk.0.", "blk.1.")))
        tensors = {**made.tensors, copied: made.tensors[name]}
        return f"copy {name} as {copied}", replace(made, tensors=tensors)
    return f"{name} twice", replace(made, twice=(*made.twice, name))


def _flag(made: GgufMutant, random: Random) -> Changed:
    key, values = random.choice(list(_FLAGS.items()))
    value = random.choice(values)
    old = made.keys.get(key)
    typed = GgufValue(value=value, kind=_kind(value, old), of=_of(value, old))
    return f"{key} is {value!r:.60}", replace(made, keys={**made.keys, key: typed})


def _kind(value: Any, old: GgufValue | None) -> int:
    """The type that `value` has in a sound file: what `old` has where it can be it."""
    if isinstance(value, list):
        return ARRAY
    if isinstance(value, bool):
        return 7
    if isinstance(value, int):
        return old.kind if old is not None and old.kind in (4, 5) and value >= 0 else _least(value)
    return 6 if isinstance(value, float) else STRING


def _least(value: int) -> int:
    return 4 if value >= 0 else 5


def _of(value: Any, old: GgufValue | None) -> int | None:
    if not isinstance(value, list):
        return None
    if value and isinstance(value[0], str):
        return STRING
    if old is not None and old.of == STRING:
        return 4
    return old.of if old is not None and old.of is not None else 5


_TOKENS = [f"t{i}" for i in range(64)]
_FLAGS: Mapping[str, tuple[Any, ...]] = {
    "general.architecture": ("llama", "eagle", "EAGLE3", "", "dflash", "qwen3"),
    "general.alignment": (32, 64, 16, 0, 33),
    "general.file_type": (0, 1, 7),
    "general.name": ("x", 3),
    "eagle3.context_length": (0, 1, 16, 4096),
    "eagle3.embedding_length": (8, 16, 4, 0, 7),
    "eagle3.embedding_length_out": (0, 4, 8, 16),
    "eagle3.block_count": (0, 1, 2, 3, 600),
    "eagle3.feed_forward_length": (12, 16, 0, [12], [12, 12]),
    "eagle3.attention.head_count": (1, 2, 4, 0, [2], [2, 2]),
    "eagle3.attention.head_count_kv": (0, 1, 2, 3, [1], [1, 1]),
    "eagle3.attention.key_length": (4, 8, 2, 0, 3),
    "eagle3.attention.value_length": (4, 8, 2, 0),
    "eagle3.attention.layer_norm_rms_epsilon": (1e-6, 1.0, 0.0, -1.0, 1),
    "eagle3.attention.causal": (True, False),
    "eagle3.attention.sliding_window": (16,),
    "eagle3.attention.scale": (0.5,),
    "eagle3.expert_count": (0, 2),
    "eagle3.expert_used_count": (0, 1),
    "eagle3.nextn_predict_layers": (0, 1, 2),
    "eagle3.pooling_type": (0, 1),
    "eagle3.rope.dimension_count": (4, 2, 3, 8, 0),
    "eagle3.rope.freq_base": (10000.0, 5e5, 0.0, 1),
    "eagle3.rope.scaling.type": ("none", "linear", "yarn", "longrope", "dynamic", ""),
    "eagle3.rope.scaling.factor": (2.0, 0.0, 0.5),
    "eagle3.rope.scaling.original_context_length": (128, 0),
    "eagle3.rope.scaling.attn_factor": (1.0, 2.0),
    "eagle3.rope.scaling.finetuned": (True, False),
    "eagle3.vocab_size": (32, 64, 0),
    "eagle3.target_layers": (
        [2, 6, 9],
        [9, 6, 2],
        [0, 6, 12],
        [2, 6, 13],
        [2, 2, 2],
        [-1, 6, 9],
        [2, 6],
        [2, 6, 9, 11],
        [],
        2,
        "2,6,9",
    ),
    "eagle3.target_hidden_size": (8, 16, 4, 0),
    "eagle3.norm_before_residual": (True, False, 1),
    "eagle3.norm_before_fc": (True, False, 1),
    "eagle3.norm_output": (True,),
    "tokenizer.ggml.model": ("gpt2", "llama", "none", "no_vocab", "bert", "t5", "unheard", 2),
    "tokenizer.ggml.pre": ("gpt-2", "qwen2", "default", "unheard", ""),
    "tokenizer.ggml.tokens": (
        _TOKENS[:32],
        _TOKENS,
        _TOKENS[:16],
        _TOKENS[:1],
        [*_TOKENS[:31], "t0"],
        [*_TOKENS[:31], ""],
        3,
    ),
    "tokenizer.ggml.token_type": ([1] * 32, [1] * 64, [1] * 8, [9] * 32),
    "tokenizer.ggml.merges": (["a b"], ["ab"], [""], [1], "a b"),
    "tokenizer.ggml.scores": ([0] * 32, [0] * 8),
    "tokenizer.ggml.bos_token_id": (0, 31, 99),
    "tokenizer.ggml.eos_token_id": (1, 99),
    "tokenizer.ggml.add_bos_token": (True, False, 1),
    "split.count": (0, 1, 2),
}


def _unset(made: GgufMutant, random: Random) -> Changed:
    key = random.choice(list(made.keys))
    kept = {name: value for name, value in made.keys.items() if name != key}
    return f"without {key}", replace(made, keys=kept)


def _rekind(made: GgufMutant, random: Random) -> Changed:
    """The same value as another of GGUF's types."""
    key = random.choice(list(made.keys))
    old = made.keys[key]
    if old.kind == ARRAY and old.of != STRING:
        of = random.choice([kind for kind in (*SCALARS,) if kind != old.of])
        cast = float if of in (6, 12) else int
        value = [cast(item) & 127 if cast is int else cast(item) for item in old.value]
        new = replace(old, value=[bool(v) for v in value] if of == 7 else value, of=of)
        return f"{key} as a list of type {of}", replace(made, keys={**made.keys, key: new})
    if old.kind in (ARRAY, STRING):
        new = GgufValue(value=1, kind=random.choice((0, 4, 5, 7)))
        return f"{key} as type {new.kind}", replace(made, keys={**made.keys, key: new})
    kind = random.choice([k for k in (*SCALARS, STRING) if k != old.kind])
    return f"{key} as type {kind}", replace(
        made, keys={**made.keys, key: GgufValue(value=_cast(old.value, kind), kind=kind)}
    )


def _cast(value: Any, kind: int) -> Any:
    if kind == STRING:
        return str(value)
    if kind in (6, 12):
        return float(value)
    return bool(value) if kind == 7 else int(value) & 127


def _rekey(made: GgufMutant, random: Random) -> Changed:
    """A key under another name, its value where nothing looks, or an older name looks."""
    key = random.choice([name for name in made.keys if name.startswith("eagle3.")])
    bare = key.removeprefix("eagle3.")
    new = random.choice((f"llama.{bare}", bare, f"eagle3.{bare}s", _OLDER.get(bare, f"{key}_2")))
    keys = {(new if name == key else name): value for name, value in made.keys.items()}
    return f"{key} renamed {new}", replace(made, keys=keys)


_OLDER = {
    "target_layers": "eagle3.extract_layers",
    "rope.scaling.factor": "eagle3.rope.scale_linear",
    "attention.layer_norm_rms_epsilon": "eagle3.attention.layer_norm_epsilon",
}


def _retarget(made: GgufMutant, random: Random) -> Changed:
    key, value = random.choice(_TARGETS)
    return f"target's {key} {value}", replace(made, target={**made.target, key: value})


_TARGETS: tuple[tuple[str, Any], ...] = (
    ("hidden_size", 16),
    ("hidden_size", 4),
    ("num_hidden_layers", 9),
    ("num_hidden_layers", 8),
    ("num_hidden_layers", 40),
    ("vocab_size", 64),
    ("vocab_size", 24),
    ("tie_word_embeddings", True),
)


_CHANGES: tuple[Callable[[GgufMutant, Random], Changed], ...] = (
    _rename,
    _rename,
    _drop,
    _drop,
    _resize,
    _resize,
    _retype,
    _retype,
    _add,
    _add,
    _twice,
    _flag,
    _flag,
    _flag,
    _flag,
    _flag,
    _unset,
    _rekind,
    _rekey,
    _retarget,
)
