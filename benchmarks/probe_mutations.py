"""Damage to sound drafters that a loader may or may not notice, by a seed."""

from __future__ import annotations

import copy
import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.fuzz_specimens import Specimen, Tensor, specimens

from eyas.checkpoint import write_sparse

_MOST = 2**20  # elements: every mutant is small, whatever its config says


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A drafter, what was done to it, and how it is launched; `runner` is None for engines of one.

    `number` and the seed give the same mutant again.
    """

    number: int
    what: str
    config: Mapping[str, Any]
    tensors: Mapping[str, Tensor]
    target: Mapping[str, Any]
    method: str | None = None
    runner: str | None = None

    def write(self, directory: Path) -> Path:
        """The drafter as a directory, with holes for weights."""
        headers = {name: (dtype, shape) for name, (dtype, shape, _) in self.tensors.items()}
        contents = {name: data for name, (_, _, data) in self.tensors.items() if data is not None}
        return write_sparse(directory, self.config, headers, contents)


def sound_drafters(workplace: Path) -> list[Specimen]:
    """The specimens that some engine loads: tiny ones, of EAGLE-3 and its kin."""
    found = [s for s in specimens(workplace) if not s.name.startswith(_LEFT_OUT) and not s.file]
    return [*found, *_rarer(found)]


def _rarer(found: list[Specimen]) -> Iterator[Specimen]:
    """Forms of the specimens that engines read another way."""
    named = {s.name: s for s in found}
    for name in ("midlayer as speculators", "qwen3 as speculators"):
        config, _ = _with(named[name].config, "rope_parameters", _ABSENT, nested=True)
        yield replace(named[name], name=f"{name}, no RoPE", config=config)
    config, _ = _with(
        named["qwen3"].config, "architectures", ["Eagle3Qwen3ForCausalLM"], nested=False
    )
    yield replace(named["qwen3"], name="Eagle3Qwen3", config=config)
    dflash = named["DFlashDraftModel"]
    tensors = {k: t for k, t in dflash.tensors.items() if not k.endswith(".hidden_norm.weight")}
    for part in "qk":
        tensors[f"layers.0.self_attn.{part}_norm.weight"] = ("BF16", (4,), None)
    for key, (_, shape, _) in dflash.tensors.items():
        if "self_attn" in key and "o_proj" not in key:  # one width goes into its attention
            tensors[key] = ("BF16", (shape[0], 8), None)
    tensors["hidden_norm.weight"] = ("BF16", (8,), None)
    yield replace(dflash, name="sound DFlash", tensors=tensors)


_LEFT_OUT = ("large", "native MTP")


def mutant(originals: list[Specimen], seed: int, number: int, runners: tuple[str, ...]) -> Mutant:
    """Mutant `number` of `seed`: one to three pieces of damage to one of `originals`."""
    random = Random(f"{seed}-{number}")
    original = originals[number % len(originals)]
    made = Mutant(
        number=number,
        what=original.name,
        config=copy.deepcopy(dict(original.config)),
        tensors=dict(original.tensors),
        target=original.target,
        runner=random.choice(runners) if runners else None,
    )
    for _ in range(random.choice((1, 1, 1, 2, 3))):
        change = random.choice(_CHANGES)
        done, made = change(made, random)
        made = replace(made, what=f"{made.what}; {done}")
    return made


Changed = tuple[str, Mutant]


def _rename(made: Mutant, random: Random) -> Changed:
    old, new = random.choice(_RENAMINGS)
    everywhere = random.random() < 0.5
    hit = [name for name in made.tensors if old in name]
    if not everywhere and hit:
        hit = [random.choice(hit)]
    renamed = {(n.replace(old, new, 1) if n in hit else n): t for n, t in made.tensors.items()}
    return f"rename {old!r} to {new!r} in {len(hit)}", replace(made, tensors=renamed)


_RENAMINGS = (
    ("midlayer.", "layers.0."),
    ("midlayer.", "decoder.0."),
    ("midlayer.", "layers.1."),
    ("layers.0.", "midlayer."),
    ("layers.0.", "layers.1."),
    ("layers.0.", "model.layers.0."),
    ("", "model."),
    ("model.", ""),
    ("q_proj", "wq"),
    ("gate_proj", "w1"),
    (".weight", ".weights"),
    (".weight", ".bias"),
    ("norm.weight", "norm.gamma"),
    ("lm_head", "head"),
    ("lm_head", "model.lm_head"),
    ("embed_tokens", "embed"),
    ("fc.", "fusion."),
    ("fc.", "model.fc."),
    ("d2t", "model.d2t"),
    ("d2t", "map"),
    ("d2t", "draft_id_to_target_id"),
    ("t2d", "t2d_mask"),
    ("hidden_norm", "input_norm"),
    ("input_layernorm", "embed_norm"),
    ("hidden_norm", "fc_norm.0"),
    ("post_attention_layernorm", "ffn_norm"),
    ("self_attn.", "attention."),
)


def _drop(made: Mutant, random: Random) -> Changed:
    names = sorted(made.tensors)
    if not names:
        return "nothing to drop", made
    part = random.choice(names)
    if random.random() < 0.3:
        part = random.choice(("self_attn", "mlp", "norm", "layers", "midlayer", "fc", "lm_head"))
    kept = {n: t for n, t in made.tensors.items() if part not in n}
    return f"drop {part!r}", replace(made, tensors=kept)


def _resize(made: Mutant, random: Random) -> Changed:
    names = sorted(n for n, (_, shape, _) in made.tensors.items() if shape)
    if not names:
        return "nothing to resize", made
    name = random.choice(names)
    dtype, shape, data = made.tensors[name]
    axis = random.randrange(len(shape))
    size = shape[axis]
    new = random.choice((size + 1, size - 1, size * 2, max(1, size // 2), size + 8, 0))
    sizes = [new if i == axis else s for i, s in enumerate(shape)]
    other = random.random()
    if other < 0.1:
        sizes = list(reversed(shape))
    elif other < 0.15:
        sizes = [1, *shape]
    elif other < 0.2:
        sizes = []
    tensor = (dtype, tuple(sizes), _cut(data, dtype, tuple(sizes)))
    changed = {**made.tensors, name: tensor}
    return f"resize {name} from {list(shape)} to {sizes}", replace(made, tensors=changed)


_WIDTHS = {"BOOL": 1, "I8": 1, "U8": 1, "I16": 2, "I32": 4, "I64": 8, "F32": 4, "F64": 8}


def _cut(data: bytes | None, dtype: str, shape: tuple[int, ...]) -> bytes | None:
    """`data` for another shape: cut, or filled up with ones."""
    if data is None:
        return None
    size = _WIDTHS[dtype]
    for extent in shape:
        size *= extent
    return (data + b"\1" * size)[:size]


def _retype(made: Mutant, random: Random) -> Changed:
    names = sorted(made.tensors)
    if not names:
        return "nothing to retype", made
    name = random.choice(names)
    dtype, shape, data = made.tensors[name]
    if data is None:
        new = random.choice(("F32", "F16", "F64", "I8", "F8_E4M3", "I32", "F8_E5M2"))
        tensor: Tensor = (new, shape, None)
    else:
        new = random.choice(("I32", "I16", "F32") if dtype == "I64" else ("U8", "I64"))
        tensor = (new, shape, _packed(new, _numbers(data, dtype)))
    return f"retype {name} to {new}", replace(made, tensors={**made.tensors, name: tensor})


_CODES = {"BOOL": "B", "U8": "B", "I16": "h", "I32": "i", "I64": "q", "F32": "f"}


def _numbers(data: bytes, dtype: str) -> list[int]:
    """The numbers in `data`; ones where it is of a type that no map has."""
    count = len(data) // _WIDTHS[dtype]
    if dtype not in _CODES:
        return [1] * count
    return [int(n) for n in struct.unpack(f"<{count}{_CODES[dtype]}", data)]


def _packed(dtype: str, numbers: list[int]) -> bytes:
    small = [n if abs(n) < 2**7 else 1 for n in numbers]  # what a damaged map may have is large
    return struct.pack(f"<{len(small)}{_CODES[dtype]}", *small)


def _duplicate(made: Mutant, random: Random) -> Changed:
    names = sorted(made.tensors)
    if not names:
        return "nothing to duplicate", made
    name = random.choice(names)
    copies = [f"model.{name}", f"{name}_2", f"x.{name}"]
    copies += [name.replace("midlayer.", "layers.0."), name.replace("layers.0.", "midlayer.")]
    copies += [name.replace("q_proj", "qkv_proj"), name.replace("gate_proj", "gate_up_proj")]
    new = random.choice([c for c in copies if c not in made.tensors])
    changed = {**made.tensors, new: made.tensors[name]}
    return f"duplicate {name} as {new}", replace(made, tensors=changed)


def _extra(made: Mutant, random: Random) -> Changed:
    hidden = _hidden(made)
    name, shape = random.choice(_extras(hidden, made))
    tensor: Tensor = ("BF16", shape, None)
    return f"add {name} {list(shape)}", replace(made, tensors={**made.tensors, name: tensor})


def _extras(hidden: int, made: Mutant) -> list[tuple[str, tuple[int, ...]]]:
    layer = "midlayer" if any("midlayer." in n for n in made.tensors) else "layers.0"
    return [
        ("verifier_norm.weight", (hidden,)),
        ("verifier_lm_head.weight", (16, hidden)),
        (f"{layer}.self_attn.rotary_emb.inv_freq", (2,)),
        (f"{layer}.self_attn.q_proj.bias", (8,)),
        (f"{layer}.self_attn.k_proj.bias", (4,)),
        (f"{layer}.self_attn.o_proj.bias", (hidden,)),
        (f"{layer}.mlp.down_proj.bias", (hidden,)),
        (f"{layer}.mlp.gate_proj.bias", (12,)),
        (f"{layer}.self_attn.q_norm.weight", (4,)),
        (f"{layer}.self_attn.k_norm.weight", (4,)),
        ("fc.bias", (hidden,)),
        ("lm_head.bias", (16,)),
        ("norm.bias", (hidden,)),
        ("mask_hidden", (1, 1, 3 * hidden)),
        ("embed_tokens.weight", (32, hidden)),
        ("embed_tokens.weight", (16, hidden)),
        ("fc_norm.0.weight", (hidden,)),
        ("fc_norm.3.weight", (hidden,)),
        ("input_norm.weight", (3 * hidden,)),
        ("layers.1.mlp.up_proj.weight", (12, hidden)),
        ("layers.1.input_layernorm.weight", (hidden,)),
        ("lm_head.weight", (32, hidden)),
        ("model.norm.weight", (hidden,)),
        ("enorm.weight", (hidden,)),
    ]


def _hidden(made: Mutant) -> int:
    layer = made.config.get("transformer_layer_config")
    config = layer if isinstance(layer, dict) else made.config
    size = config.get("hidden_size")
    return size if isinstance(size, int) and 0 < size < 1000 else 8


def _flag(made: Mutant, random: Random) -> Changed:
    key, values = random.choice(list(_FLAGS.items()))
    layer = made.config.get("transformer_layer_config")
    nested = isinstance(layer, dict) and random.random() < 0.5
    config, said = _with(made.config, key, random.choice((*values, _ABSENT)), nested=nested)
    return said, replace(made, config=config)


_ABSENT = object()
_FLAGS: Mapping[str, tuple[object, ...]] = {
    "norm_before_residual": (True, False, 1, None),
    "norm_before_fc": (True, False, None),
    "fc_norm": (True, False),
    "norm_output": (True, False),
    "bias": (True,),
    "attention_bias": (True, False, None),
    "mlp_bias": (True, False),
    "qkv_bias": (True,),
    "tie_word_embeddings": (True, False),
    "draft_vocab_size": (None, 16, 32, 17, 8, 64),
    "vocab_size": (32, 64, 33, None),
    "num_hidden_layers": (0, 1, 2, 3),
    "num_attention_heads": (1, 2, 3, 4, None),
    "num_key_value_heads": (None, 1, 2),
    "head_dim": (None, 4, 8, 2),
    "hidden_size": (8, 16, 4, "8", 8.0, None),
    "intermediate_size": (12, 16, 24, 6),
    "hidden_act": ("silu", "gelu", None),
    "rms_norm_eps": (1e-6, 1, None),
    "target_hidden_size": (8, 16, None),
    "num_aux_hidden_states": (1, 2, 3, 4, None),
    "num_aux_layers": (2, 3),
    "eagle_aux_hidden_state_layer_ids": (
        [1, 5, 8],
        [2, 6, 9],
        [0, 6, 12],
        [8, 5, 1],
        [1, 5],
        [1, 5, 8, 11],
        [1, 1, 5],
        [1, 5, 13],
        [],
        None,
    ),
    "target_layer_ids": ([1, 5, 8], [1, 5]),
    "eagle_config": (
        {},
        None,
        {"use_aux_hidden_state": True},
        {"use_aux_hidden_state": False},
        {"eagle_aux_hidden_state_layer_ids": [1, 5, 8]},
        {"eagle_aux_hidden_state_layer_ids": [1, 5]},
        {"eagle_aux_hidden_state_layer_ids": [1, 3, 5, 8], "use_aux_hidden_state": True},
        {"layer_ids": [1, 5, 8]},
        {"norm_before_fc": True},
    ),
    "rope_theta": (10000.0, 500000.0, None),
    "rope_scaling": (
        None,
        {"rope_type": "linear", "factor": 2.0},
        {"rope_type": "linear"},
        {"rope_type": "default", "rope_theta": 300.0},
        {"rope_type": "dynamic", "factor": 2.0},
        {"rope_type": "unheard", "factor": 2.0},
        {"type": "yarn", "factor": 2.0, "original_max_position_embeddings": 256},
        {
            "rope_type": "llama3",
            "factor": 8.0,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 256,
        },
    ),
    "rope_parameters": (
        {"rope_type": "default", "rope_theta": 50000.0},
        {"rope_type": "default"},
        {"rope_theta": 50000},
        {},
        None,
    ),
    "max_position_embeddings": (128, 4096, None),
    "model_type": ("llama", "qwen3", "qwen2", "mistral", "kimi_k2", None),
    "architectures": (
        ["LlamaForCausalLMEagle3"],
        ["LlamaForCausalLM"],
        ["Eagle3LlamaForCausalLM"],
        ["Eagle3Qwen3ForCausalLM"],
        ["Eagle3DeepseekV2ForCausalLM"],
        ["LlamaForCausalLMEagle"],
        ["EagleLlamaForCausalLM"],
        ["Eagle3DraftModel"],
        ["PEagleDraftModel"],
        ["Qwen3ForCausalLM"],
        [],
    ),
    "layer_types": (["sliding_attention"], ["full_attention"], ["full_attention"] * 2, None),
    "sliding_window": (64, None),
    "quantization_config": (None,),
    "torch_dtype": ("float32", "float16"),
    "mask_token_id": (31, None),
    "logit_scale": (0.5,),
    "speculators_model_type": ("eagle3", "eagle", "peagle", None),
}


def reflagged(originals: list[Specimen], runners: tuple[str, ...]) -> Iterator[Mutant]:
    """Every value of every key of `_FLAGS`, alone, in one of `originals` of each class."""
    number = 0
    for original in (o for o in originals if o.name in _REFLAGGED):
        layer = original.config.get("transformer_layer_config")
        for key, values in _FLAGS.items():
            for value in (*values, _ABSENT):
                for nested in (False, True) if isinstance(layer, dict) else (False,):
                    config, said = _with(original.config, key, value, nested=nested)
                    yield Mutant(
                        number=number,
                        what=f"{original.name}; {said}",
                        config=config,
                        tensors=original.tensors,
                        target=original.target,
                        runner=runners[number % len(runners)] if runners else None,
                    )
                    number += 1


_REFLAGGED = (
    "midlayer",
    "midlayer as speculators",
    "qwen3",
    "qwen3 as speculators",
    "3.1 as speculators",
    "latent",
    "DFlashDraftModel",
    "P-EAGLE",
    "midlayer as speculators, no RoPE",
    "qwen3 as speculators, no RoPE",
    "Eagle3Qwen3",
    "sound DFlash",
)


def _with(
    old: Mapping[str, Any], key: str, value: object, *, nested: bool
) -> tuple[dict[str, Any], str]:
    """`old` with another value for `key`, and the words for it."""
    config = copy.deepcopy(dict(old))
    place: dict[str, Any] = config["transformer_layer_config"] if nested else config
    if value is _ABSENT:
        place.pop(key, None)
    else:
        place[key] = copy.deepcopy(value)
    said = "absent" if value is _ABSENT else repr(value)
    return config, f"{key}{' in the layer' if nested else ''} is {said}"


def _method(made: Mutant, random: Random) -> Changed:
    method = random.choice(("eagle3", "eagle", "auto", "dflash"))
    return f"method {method}", replace(made, method=method)


_CHANGES: tuple[Callable[[Mutant, Random], Changed], ...] = (
    _rename,
    _rename,
    _drop,
    _drop,
    _resize,
    _resize,
    _retype,
    _duplicate,
    _extra,
    _extra,
    _flag,
    _flag,
    _flag,
    _flag,
    _method,
)
