"""The tokenizer of an eagle3 file, as llama.cpp's vocabulary takes or refuses it."""

from __future__ import annotations

from collections.abc import Mapping

from eyas.checkpoint import Checkpoint, LongList
from eyas.engines.llamacpp import claims
from eyas.engines.llamacpp.key_types import NO_VOCABULARY, PREFIX, listed
from eyas.engines.stop import NotCovered, Refused
from eyas.spec import Claim, Fact, Stage, assumed, declared, inferred

_MODEL, _PRE = "tokenizer.ggml.model", "tokenizer.ggml.pre"
_TOKENS, _MERGES = "tokenizer.ggml.tokens", "tokenizer.ggml.merges"
_EACH = ("tokenizer.ggml.scores", "tokenizer.ggml.token_type")  # at least one for each token
_BPE = ("gpt2", "hybriddna", "whitespace", "gemma4")
_KINDS = (*_BPE, *NO_VOCABULARY, "llama", "bert", "t5", "rwkv", "test", "plamo2")
_JUDGED = ("gpt2", "llama", *NO_VOCABULARY)


def require_tokenizer(checkpoint: Checkpoint) -> None:
    """Refuse a tokenizer that does not load; NotCovered for a kind that no drafter here has."""
    raw, file = checkpoint.config, checkpoint.config_file
    model = raw.get(_MODEL)
    if model is None:
        raise _refused(f"{file} :: {_MODEL} is missing", claims.TOKENIZER)
    if model not in _KINDS:
        raise _refused(
            f"{file} :: {_MODEL} is {model!r}, which is no tokenizer of llama.cpp",
            claims.TOKENIZER_KINDS,
        )
    if model in NO_VOCABULARY:
        return
    if model in _BPE:
        _require_bpe(checkpoint, raw)
    _require_tokens(checkpoint, raw)
    if model not in _JUDGED:
        raise NotCovered(f"{file} has a tokenizer of the kind {model}, which is not judged here")


def _require_tokens(checkpoint: Checkpoint, raw: Mapping[str, object]) -> None:
    file, tokens = checkpoint.config_file, raw.get(_TOKENS)
    if tokens is None:
        raise _refused(f"{file} :: {_TOKENS} is missing", claims.TOKENIZER_KEYS)
    for key in _EACH:
        if key in raw and _count(raw[key]) < _count(tokens):
            raise _refused(
                f"{file} :: {key} has {_count(raw[key])} entries for {_count(tokens)} tokens",
                claims.TOKENIZER_KEYS,
            )
    if isinstance(tokens, list):
        named = [token or f"[EMPTY_{index}]" for index, token in enumerate(tokens)]
        if len(set(named)) < len(named):
            raise _refused(f"{file} :: {_TOKENS} has a token twice", claims.TOKENS_ONCE)


def vocabulary_of(checkpoint: Checkpoint, whose: str) -> Fact[int]:
    """The number of tokens of the tokenizer in the file, which is the target's."""
    if checkpoint.config.get(_MODEL) in NO_VOCABULARY:
        key = f"{checkpoint.config_file} :: {PREFIX}vocab_size"
        size = checkpoint.config.get(f"{PREFIX}vocab_size")
        return assumed(0, key, whose=whose) if size is None else declared(int(size), key)
    tokens = _count(checkpoint.config.get(_TOKENS))
    return inferred(tokens, f"{checkpoint.config_file} :: {_TOKENS}")


def _require_bpe(checkpoint: Checkpoint, raw: Mapping[str, object]) -> None:
    file = checkpoint.config_file
    pre = raw.get(_PRE, "")
    if _MERGES not in raw:
        if pre != "kimi-k2" or raw[_MODEL] == "gemma4":
            raise _refused(f"{file} :: {_MERGES} is missing", claims.MERGES)
    elif not listed(checkpoint, _MERGES):
        raise _refused(f"{file} :: {_MERGES} is no list of texts", claims.MERGES)
    if pre and raw[_MODEL] != "gemma4" and pre not in _CUTS.split():
        raise _refused(
            f"{file} :: {_PRE} is {pre!r}, which is no way of cutting texts of llama.cpp",
            claims.CUTS,
        )


def _count(value: object) -> int:
    """How many entries there are, where the reader has kept them or at least their number."""
    if isinstance(value, LongList):
        return value.length
    return len(value) if isinstance(value, list) else 0


def _refused(message: str, claim: Claim) -> Refused:
    return Refused(Stage.CONFIG, message, claim)


# What src/llama-vocab.cpp (2208-2428) compares tokenizer.ggml.pre with.
_CUTS = """
a.x-4.0 afmoe bailingmoe bailingmoe2 bloom chameleon chatglm-bpe codeshell cohere2moe command-r dbrx
deepseek-coder deepseek-llm deepseek-r1-qwen deepseek-v3 default exaone exaone-moe exaone4 f2llmv2
falcon falcon-h1 falcon3 gemma4 gigachat glm4 glm5 gpt-2 gpt-4o gpt3-finnish granite-docling
granite-embed-multi-311m granite-embed-multi-97m grok-2 hunyuan hunyuan-dense hy_v4 jais jais-2
jina-de jina-es jina-v1-en jina-v2-code jina-v2-de jina-v2-es jina-v5-nano joyai-llm kanana2 kimi-k2
kormo laguna lfm2 llada-moe llama-bpe llama-v3 llama3 llama4 megrez mellum mellum2 midm-2.0
minerva-7b minicpm5 minimax-m2 modern-bert mpt olmo phi-2 pixtral poro-chat qwen2 qwen35 refact
roberta-bpe sarvam-moe seed-coder smaug-bpe smollm solar-open spark2_5 stablelm2 starcoder superbpe
talkie tekken tiny_aya trillion ufakzeka viking whitespace youtu
"""
