"""Drafters of many shapes and sources, and what refuses them: a word of why, by engine."""

from __future__ import annotations

from typing import Any

from tests.convert.scene import Case


def case(source: str, order: str = "sorted", **facts: Any) -> Case:
    """A drafter of `source` whose facts are given with _ for each space."""
    return Case(
        source=source, order=order, facts={key.replace("_", " "): v for key, v in facts.items()}
    )


OWN = ("own", "own")
TIED = ("own", "tied")
TARGETS = ("target", "target")
CASES = {
    "plain": case("specforge"),
    "three states": case("specforge", states="three"),
    "plain, speculators": case("speculators"),
    "plain, EAGLE": case("eagle"),
    "plain, AngelSlim": case("angelslim"),
    "plain, gguf": case("gguf"),
    "descending": case("speculators", states="descending"),
    "descending, both norms": case("speculators", states="descending", norm_before_fc="both"),
    "two states": case("speculators", states="two"),
    "five states": case("speculators", states="five"),
    "the embeddings among the states": case("speculators", states="embeddings"),
    "normed residual": case("speculators", normed_residual=True),
    "normed residual, gguf": case("gguf", "unsorted", normed_residual=True),
    "normed feedback": case("specforge", normed_feedback=True),
    "a norm for each state": case("speculators", norm_before_fc="each"),
    "EAGLE-3.1": case("speculators", norm_before_fc="each", normed_feedback=True),
    "one norm before fc": case("speculators", norm_before_fc="all"),
    "bias of fc": case("specforge", bias_of_fc=True),
    "bias of q, k, v": case("specforge", attention="qkv"),
    "bias of q, k, v, o": case("speculators", attention="qkvo"),
    "norms on q and k": case("speculators", attention="normed"),
    "DeepSpec": case("deepspec", states="five", attention="normed", owners=OWN, vocabulary="whole"),
    "latent": case("torchspec", attention="latent", owners=OWN),
    "latent, the target's embedding": case("modelopt", attention="latent"),
    "second input_layernorm": case("speculators", layers="input_layernorm"),
    "second hidden_norm": case("specforge", layers="hidden_norm"),
    "unsorted map": case("modelopt", "unsorted"),
    "absolute map": case("specforge", "absolute, unsorted"),
    "whole vocabulary": case("specforge", vocabulary="whole"),
    "map of a whole vocabulary": case("specforge", "unsorted", vocabulary="mapped whole"),
    "no map": case("specforge", vocabulary="prefix"),
    "own embedding": case("automodel", owners=OWN),
    "own embedding, whole vocabulary": case("torchspec", owners=OWN, vocabulary="whole"),
    "tied head": case("specforge", owners=TIED, vocabulary="whole"),
    "the target's head": case("specforge", owners=TARGETS, vocabulary="whole"),
    "narrow": case("torchspec", width="other", owners=OWN),
    "llama3": case("modelopt", rope="llama3"),
    "yarn": case("modelopt", "unsorted", rope="yarn"),
    "linear": case("angelslim", rope="stretched"),
    "linear, another base": case("specforge", rope="stretched, another base"),
    "gelu": case("specforge", activation="gelu"),
}

OLD = ("sglang@0.4.9", "sglang@0.5.8", "sglang@0.5.10.post1")
SGLANG = (*OLD, "sglang@0.5.23")
VLLM = ("vllm@0.32.0:v1", "vllm@0.32.0:v2", "vllm@0.33.0:v1", "vllm@0.33.0:v2")
LLAMACPP = ("llamacpp@11549",)
_KEPT = (SGLANG, "reads tokens with the target's embedding")
_IDS = (OLD, "captures boundaries 2, 5, 7")
# Case → pairs of engines and what their refusal names.
REFUSED: dict[str, tuple[tuple[tuple[str, ...], str], ...]] = {
    "three states": (_IDS,),
    "descending": (_IDS,),
    "descending, both norms": ((OLD, "fc_norm"), (LLAMACPP, "captured state before fc")),
    "two states": ((OLD, "fuses 3 states"), (LLAMACPP, "captures three states")),
    "five states": ((OLD, "fuses 3 states"), (LLAMACPP, "captures three states")),
    "the embeddings among the states": ((SGLANG, "trained on 0, 4, 6"),),
    "normed residual": ((SGLANG, "norm_before_residual"),),
    "normed residual, gguf": ((SGLANG, "norm_before_residual"),),
    "normed feedback": ((OLD, "post-norm"), (LLAMACPP, "norm_output")),
    "a norm for each state": ((OLD, "fc_norm"), (LLAMACPP, "captured state before fc")),
    "EAGLE-3.1": ((OLD, "fc_norm"), (LLAMACPP, "norm_output")),
    "one norm before fc": ((OLD, "input_norm"),),
    "bias of fc": ((VLLM, r"fc\.bias"), (LLAMACPP, "bias on fc")),
    "bias of q, k, v": ((SGLANG, "bias"), (LLAMACPP, "bias on q, k and v")),
    "bias of q, k, v, o": ((SGLANG, "bias"), (LLAMACPP, "bias on q, k and v")),
    "norms on q and k": ((SGLANG, "norms on q and k"), (LLAMACPP, "norms on q and k")),
    "DeepSpec": ((SGLANG, "norms on q and k"), (LLAMACPP, "norms on q and k")),
    "latent": (
        (OLD, "model_type is kimi_k2"),
        (("sglang@0.5.23",), _KEPT[1]),
        (LLAMACPP, "latent attention"),
    ),
    "latent, the target's embedding": (
        (OLD, "model_type is kimi_k2"),
        (LLAMACPP, "latent attention"),
    ),
    "second input_layernorm": ((OLD, "builds one layer"), (LLAMACPP, "one decoder layer")),
    "second hidden_norm": ((OLD, "builds one layer"), (LLAMACPP, "one decoder layer")),
    "own embedding": (_KEPT,),
    "own embedding, whole vocabulary": (_KEPT,),
    "tied head": (_KEPT,),
    "gelu": (((*SGLANG, *VLLM), "hidden_act is gelu"), (LLAMACPP, "gelu")),
}


def refusals(name: str) -> dict[str, str]:
    """Engine → what its refusal of a case names."""
    return {engine: word for engines, word in REFUSED.get(name, ()) for engine in engines}
