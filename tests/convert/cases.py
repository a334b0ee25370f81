"""Drafters of many shapes and sources, each with the engines that an exact form of it exists for."""

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
    "tied head": case("specforge", owners=TIED, vocabulary="whole"),
    "the target's head": case("specforge", owners=TARGETS, vocabulary="whole"),
    "narrow": case("torchspec", width="other", owners=OWN),
    "llama3": case("torchspec", rope="llama3", owners=OWN),
    "yarn": case("modelopt", "unsorted", rope="yarn"),
    "linear": case("angelslim", rope="stretched"),
    "linear, another base": case("specforge", rope="stretched, another base"),
    "gelu": case("specforge", activation="gelu"),
}
