"""Sizes and names in the config that are not those of the tensors."""

from __future__ import annotations

from typing import Any

from benchmarks.faults.draft import Draft
from benchmarks.faults.kind import Draw, Kind, Part, Sign, anywhere, choose
from benchmarks.faults.setting import Setting

_ALL = frozenset({Part.EVERYTHING})


def depth_of_the_target(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The number of layers was copied from the target."""
    layers = draft.facts()["num_hidden_layers"]
    draft.sizes["num_hidden_layers"] = layers
    return {"num_hidden_layers": layers}


def fewer_heads(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The config has fewer heads than the matrices: what is over is cut off in silence."""
    sizes = draft.sizes
    heads, shared = sizes["num_attention_heads"], sizes["num_key_value_heads"]
    sizes.setdefault("head_dim", sizes["hidden_size"] // heads)
    count = choose(draw, list(range(shared, heads, shared)))
    sizes["num_attention_heads"] = count
    return {"num_attention_heads": count}


def narrower_inside(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The config's feed-forward part is narrower than the matrices: the rest is cut off."""
    width = draft.sizes["intermediate_size"]
    narrow = int(choose(draw, (1, 2, 3)) * width // 4)
    draft.sizes["intermediate_size"] = narrow
    return {"intermediate_size": narrow}


def vocabulary_of_the_target(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The size of the draft vocabulary is the target's, and the head has fewer rows."""
    draft.config["draft_vocab_size"] = draft.facts()["vocab_size"]
    return {"draft_vocab_size": draft.config["draft_vocab_size"]}


def class_nobody_knows(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The config names a class that the engine does not have."""
    name = choose(draw, ("LlamaEagle3DraftModel", "Qwen3Eagle3Model", "EagleLlamaModelForDraft"))
    draft.config["architectures"] = [name]
    return {"architectures": name}


def class_of_the_target(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The config names the target's class, and the engine builds a plain language model."""
    draft.config["architectures"] = list(draft.facts()["architectures"])
    return {"architectures": draft.config["architectures"]}


def _deep(setting: Setting) -> bool:
    return setting.engine == "vllm" or setting.since("0.5.12")


def _flat(setting: Setting) -> bool:
    return not setting.nested and setting.form == "specforge"


def _sglang(setting: Setting) -> bool:
    return setting.engine == "sglang"


KINDS = (
    Kind(
        name="depth-of-the-target",
        stands_for="K23",
        reports=("sglang#33966", "SpecForge#129"),
        part=Part.LAYER,
        sign=Sign.FILES,
        plant=depth_of_the_target,
        shows=_deep,
        silences=_ALL,
    ),
    Kind(
        name="fewer-heads",
        stands_for="K5",
        reports=("EAGLE#223",),
        part=Part.HEADS,
        sign=Sign.FILES,
        plant=fewer_heads,
        shows=anywhere,
        silences=frozenset({Part.LAYER}),
    ),
    Kind(
        name="narrower-inside",
        stands_for="K5",
        reports=("Model-Optimizer#398",),
        part=Part.LAYER,
        sign=Sign.FILES,
        plant=narrower_inside,
        shows=anywhere,
    ),
    Kind(
        name="vocabulary-of-the-target",
        stands_for="K5",
        reports=("EAGLE#249", "speculators#188"),
        part=Part.HEAD,
        sign=Sign.FILES,
        plant=vocabulary_of_the_target,
        shows=anywhere,
        silences=_ALL,
        refuses=True,
    ),
    Kind(
        name="class-nobody-knows",
        stands_for="K21",
        reports=("vllm#30987", "Automodel#2841"),
        part=Part.EVERYTHING,
        sign=Sign.FILES,
        plant=class_nobody_knows,
        shows=_flat,
        silences=_ALL,
        refuses=True,
    ),
    Kind(
        name="class-of-the-target",
        stands_for="K21",
        reports=("sglang#33966",),
        part=Part.EVERYTHING,
        sign=Sign.FILES,
        plant=class_of_the_target,
        shows=_sglang,
        silences=_ALL,
        refuses=True,
    ),
)
