"""Mutations of a sound drafter's structure: its config, its tensors, its target, its launch."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Any

from benchmarks.fuzz_specimens import Specimen, Tensor

from eyas.checkpoint.header import DTYPE_BITS
from eyas.dialects.unread import DRAFTER_KEYS, LAYER_KEYS


@dataclass(slots=True, kw_only=True)
class Mutant:
    """A drafter that is being changed: two tensors may have one name.

    `recipe` says what was done.
    """

    config: Any
    tensors: list[tuple[str, Tensor]]
    target: Any
    recipe: list[str] = field(default_factory=list)


def copy_of(specimen: Specimen) -> Mutant:
    """`specimen` as a mutant without a mutation."""
    return Mutant(
        config=json.loads(json.dumps(specimen.config)),
        tensors=list(specimen.tensors.items()),
        target=json.loads(json.dumps(specimen.target)),
        recipe=[specimen.name],
    )


# The keys that the EAGLE-3 dialects read, and those that other kinds, engines or targets have.
_KEYS = tuple(
    sorted(
        LAYER_KEYS
        | DRAFTER_KEYS
        | {
            "aux_hidden_state_layer_ids",
            "aux_hidden_states_layer_ids",
            "block_size",
            "conv_kernel_size",
            "dflash_config",
            "eagle_aux_hidden_state_layer_ids",
            "eagle_config",
            "layer_ids",
            "layer_types",
            "logit_scale",
            "markov_rank",
            "mask_token_id",
            "mlp_bias",
            "moe_intermediate_size",
            "n_routed_experts",
            "next_layer_regular",
            "num_nextn_predict_layers",
            "num_target_layers",
            "parallel_draft_step",
            "parallel_drafting",
            "partial_rotary_factor",
            "pard_token",
            "projector_type",
            "ptd_token_id",
            "quantization_config",
            "return_hidden_post_norm",
            "rope_interleave",
            "sliding_window",
            "speculators_config",
            "speculators_model_type",
            "target_layer_ids",
            "text_config",
            "transformer_layer_config",
            "use_last_layernorm",
            "use_sliding_window",
            "verifier",
        }
    )
)
_WORDS = ("llama", "qwen3", "silu", "gelu", "yarn", "default", "linear", "llama3", "eagle3", "")
_CLASSES = (
    "LlamaForCausalLMEagle3",
    "Eagle3DraftModel",
    "Eagle3DeepseekV2ForCausalLM",
    "Eagle3LlamaForCausalLM",
    "LlamaForCausalLM",
    "Qwen3Eagle3Model",
    "PEagleDraftModel",
    "DFlashDraftModel",
    "DeepseekV3ForCausalLM",
    "GptOssForCausalLM",
    "MiniMaxM3SparseForConditionalGeneration",
    "Eagle3",
    "",
)
_NUMBERS = (0, 1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 32, 64, 65, 512, 999, 1000, 1001, 2**15, 2**31)
_EXTREMES = (-1, -7, 2**31 - 1, 2**32, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**18, 10**30)
_HUGE = (10**100, 10**309, 10**4299, -(10**400))
_REALS = (0.0, -0.0, 0.5, 1.0, 1.5, -2.5, 1e-6, 1e-300, 5e-324, 1e300, 1.7e308, 3.0)
_TEXTS = (
    "x" * 3000,
    "\x1b[2J",
    "a\nb",
    "\u202e",
    "\ud800",
    "\x00",
    "7",
    "true",
    "[1]",
    "é" * 9,
    "../..",
    "%s {0} {x} %(y)s",
    "[bold]x[/bold] [/]",
)


def value(dice: Random, depth: int = 0) -> Any:
    """Something that a JSON config can hold."""
    kinds: Sequence[Callable[[], Any]] = (
        lambda: None,
        lambda: dice.random() < 0.5,
        lambda: dice.choice(_NUMBERS),
        lambda: dice.choice(_NUMBERS),
        lambda: dice.choice(_EXTREMES),
        lambda: dice.choice(_HUGE) if dice.random() < 0.3 else dice.choice(_EXTREMES),
        lambda: dice.choice(_REALS),
        lambda: dice.choice(_WORDS),
        lambda: dice.choice(_CLASSES),
        lambda: dice.choice(_TEXTS),
        lambda: _list(dice, depth),
        lambda: _object(dice, depth),
    )
    return dice.choice(kinds)()


def _list(dice: Random, depth: int) -> list[Any]:
    roll = dice.random()
    if roll < 0.5 or depth > 2:
        return [dice.choice(_NUMBERS) for _ in range(dice.choice((0, 1, 2, 3, 3, 5, 64, 70)))]
    return [value(dice, depth + 1) for _ in range(dice.randint(0, 3))]


def _object(dice: Random, depth: int) -> dict[str, Any]:
    if dice.random() < 0.4 or depth > 2:
        keys = ("rope_type", "type", "rope_theta", "factor", "original_max_position_embeddings")
        return {key: dice.choice((1.0, 8, "yarn", 1e4, None, [])) for key in dice.sample(keys, 2)}
    return {dice.choice(_KEYS): value(dice, depth + 1) for _ in range(dice.randint(0, 3))}


def mutate_config(mutant: Mutant, dice: Random) -> None:
    """Retypes, removes, moves or adds a key of the config or of an object in it."""
    _mutate_object(mutant.config, "config", mutant, dice)


def mutate_target(mutant: Mutant, dice: Random) -> None:
    """The same for the target's config."""
    _mutate_object(mutant.target, "target", mutant, dice)


def _mutate_object(top: dict[str, Any], label: str, mutant: Mutant, dice: Random) -> None:
    inner = [v for v in top.values() if isinstance(v, dict)]
    table = dice.choice(inner) if inner and dice.random() < 0.4 else top
    key = dice.choice(list(table)) if table and dice.random() < 0.7 else dice.choice(_KEYS)
    roll = dice.random()
    if roll < 0.2:
        table.pop(key, None)
        done = f"{label}: without {key}"
    elif roll < 0.3:
        other = dice.choice(_KEYS)
        table[other] = table.pop(key, None)
        done = f"{label}: {key} renamed to {other}"
    elif roll < 0.4 and table:
        table[key] = table[dice.choice(list(table))]
        done = f"{label}: {key} with another key's value"
    elif roll < 0.45:
        done = f"{label}: {_spoil_text(table, dice)} spoilt"
    elif roll < 0.5:
        section = dice.choice(("eagle_config", "transformer_layer_config", "text_config"))
        top[section] = {**top, key: value(dice)} if dice.random() < 0.5 else value(dice)
        done = f"{label}: {section} replaced"
    elif roll < 0.65 and isinstance(table.get(key), int) and abs(table[key]) < 2**64:
        table[key] += dice.choice((-1, 1, 7, -table[key], table[key]))
        done = f"{label}: {key} near by"
    else:
        table[key] = value(dice)
        done = f"{label}: {key} is {table[key]!r:.60}"
    mutant.recipe.append(done)


def _spoil_text(table: dict[str, Any], dice: Random) -> str:
    """Adds to a text of `table`, or to the name of a key, what a terminal would obey."""
    wild = dice.choice(_TEXTS)
    texts = [k for k, v in table.items() if isinstance(v, str) or (v and isinstance(v, list))]
    if not texts or dice.random() < 0.3:
        table["spoilt" + wild] = dice.choice((4, "x"))
        return "a new key"
    key = dice.choice(texts)
    old = table[key]
    table[key] = [f"{old[0]}{wild}"] if isinstance(old, list) else old + wild
    return key


_PIECES = ("model.", "module.", "_orig_mod.", "draft_model.", "midlayer.", "layers.0.", "mtp.")
_NAMES = (
    "fc.weight",
    "fc.bias",
    "d2t",
    "t2d",
    "norm.weight",
    "lm_head.weight",
    "embed_tokens.weight",
    "input_norm.weight",
    "fc_norm.0.weight",
    "fc_norm.7.weight",
    "aux_norm_mid.weight",
    "mask_hidden",
    "midlayer.self_attn.qkv_proj.weight",
    "layers.1.hidden_norm.weight",
    "layers.9999.hidden_norm.weight",
    "layers.00.hidden_norm.weight",
    "layers.0.self_attn.q_norm.weight",
    "midlayer.self_attn.rotary_emb.inv_freq",
    "model.fc.weight_scale",
    "",
    ".",
    "a" * 300,
    "a." * 250,
    "1." * 300,
    "layers." + "9" * 500 + ".hidden_norm.weight",
    "layers.٣.hidden_norm.weight",
    "é.weight",
    "\u202efc.weight",
    "x[red]y[/red]",
    "sub/../d2t",
)
_DTYPES = tuple(DTYPE_BITS)


def mutate_tensors(mutant: Mutant, dice: Random) -> None:
    """Renames, drops, duplicates, resizes, retypes or adds a tensor, or moves all of them."""
    if not mutant.tensors:
        mutant.tensors.append((dice.choice(_NAMES), ("BF16", (8,), None)))
        return
    place = dice.randrange(len(mutant.tensors))
    name, _ = mutant.tensors[place]
    action = dice.choice(_ACTIONS)
    mutant.recipe.append(f"{action.__name__[1:]} {name[:60]}")
    action(mutant, place, dice)


def _rename(mutant: Mutant, place: int, dice: Random) -> None:
    name, tensor = mutant.tensors[place]
    roll = dice.random()
    if roll < 0.4:
        new = dice.choice(_PIECES) + name
    elif roll < 0.6:
        new = name.partition(".")[2] or name
    elif roll < 0.8:
        new = dice.choice(_NAMES)
    else:
        at = dice.randrange(len(name) + 1)
        new = name[:at] + dice.choice(".0x_9") + name[at + dice.randint(0, 1) :]
    mutant.tensors[place] = (new, tensor)


def _rename_all(mutant: Mutant, place: int, dice: Random) -> None:
    old, new = dice.sample(_PIECES, 2)
    if dice.random() < 0.5:
        mutant.tensors = [(new + name, tensor) for name, tensor in mutant.tensors]
    else:
        mutant.tensors = [(name.replace(old, new), tensor) for name, tensor in mutant.tensors]


def _drop(mutant: Mutant, place: int, dice: Random) -> None:
    del mutant.tensors[place : place + dice.choice((1, 1, 1, 2, 5))]


def _duplicate(mutant: Mutant, place: int, dice: Random) -> None:
    name, tensor = mutant.tensors[place]
    prefix = dice.choice(("", *_PIECES))
    mutant.tensors.append((prefix + name, tensor))


def _resize(mutant: Mutant, place: int, dice: Random) -> None:
    name, (dtype, shape, _) = mutant.tensors[place]
    sizes = list(shape)
    roll = dice.random()
    if roll < 0.15 or not sizes:
        sizes.insert(dice.randint(0, len(sizes)), dice.choice((1, 1, 2, 0)))
    elif roll < 0.3:
        del sizes[dice.randrange(len(sizes))]
    elif roll < 0.4:
        sizes.reverse()
    else:
        axis = dice.randrange(len(sizes))
        old = sizes[axis]
        sizes[axis] = dice.choice((0, 1, old - 1, old + 1, 2 * old, old // 2, 3 * old, 4096, 50000))
    mutant.tensors[place] = (name, (dtype, tuple(max(0, size) for size in sizes), None))


def _retype(mutant: Mutant, place: int, dice: Random) -> None:
    name, (_, shape, _) = mutant.tensors[place]
    mutant.tensors[place] = (name, (dice.choice(_DTYPES), shape, None))


def _swap(mutant: Mutant, place: int, dice: Random) -> None:
    other = dice.randrange(len(mutant.tensors))
    (a, x), (b, y) = mutant.tensors[place], mutant.tensors[other]
    mutant.tensors[place], mutant.tensors[other] = (a, y), (b, x)


def _add(mutant: Mutant, place: int, dice: Random) -> None:
    shape = dice.choice(((), (8,), (8, 24), (16,), (0,), (3, 3, 3), (1, 1, 24), (50000,)))
    mutant.tensors.append((dice.choice(_NAMES), (dice.choice(_DTYPES), shape, None)))


def _add_layers(mutant: Mutant, place: int, dice: Random) -> None:
    layers = dice.choice((1, 2, 3, 12, 40))
    inside = [(n.partition(".")[2], t) for n, t in mutant.tensors if n.startswith("midlayer.")]
    inside += [(n[9:], t) for n, t in mutant.tensors if n.startswith("layers.0.")]
    for layer in range(1, layers + 1):
        mutant.tensors.extend((f"layers.{layer}.{name}", tensor) for name, tensor in inside)


_INTEGERS = {"I64": "q", "U64": "Q", "I32": "i", "U32": "I", "I16": "h", "U8": "B"}


def _remap(mutant: Mutant, place: int, dice: Random) -> None:
    """Puts other numbers, perhaps of another type, where the vocabulary map is."""
    found = [i for i, (name, _) in enumerate(mutant.tensors) if name.endswith(("d2t", "t2d"))]
    if not found:
        return
    place = dice.choice(found)
    name, (dtype, shape, _) = mutant.tensors[place]
    if dice.random() < 0.4:
        dtype = dice.choice(tuple(_INTEGERS))
    code = _INTEGERS.get(dtype, "B")
    count = prod(shape)
    if count > 4096:
        return
    bits = 8 * struct.calcsize(f"<{code}")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1)) if code.islower() else (0, 2**bits)
    kind = dice.randrange(5)
    numbers = {
        0: lambda: list(range(count)),
        1: lambda: [0] * count,
        2: lambda: [dice.randrange(low, high) for _ in range(count)],
        3: lambda: [dice.choice((low, high - 1, 0, 1, 31, 32)) for _ in range(count)],
        4: lambda: [dice.randrange(0, 32) for _ in range(count)],
    }[kind]()
    data = struct.pack(f"<{count}{code}", *(min(max(n, low), high - 1) for n in numbers))
    mutant.tensors[place] = (name, (dtype if code != "B" else "U8", shape, data))


_ACTIONS = (
    _rename,
    _rename,
    _rename_all,
    _drop,
    _drop,
    _duplicate,
    _resize,
    _resize,
    _retype,
    _swap,
    _add,
    _add_layers,
    _remap,
    _remap,
)
