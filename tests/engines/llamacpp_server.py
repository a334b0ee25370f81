"""Runs llama.cpp with an eagle3 drafter in a process of its own, and prints what it counted.

    python llamacpp_server.py TARGET.gguf DRAFT.gguf PROMPTS.json TOKENS

PROMPTS.json is a list of texts, or of prompts as token ids, whose answers are token ids too. The
last line is JSON: the answers, and rounds, drafted and accepted tokens as the server's own /metrics
has them, in all and after each prompt. llama.cpp aborts the interpreter where a file breaks its
assumptions, which is why this is no function of a test.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import xllamacpp

STEPS = 3


def main(target: str, draft: str, prompts: str, tokens: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = target
    params.n_ctx, params.n_parallel, params.warmup = 1024, 1, False
    params.endpoint_metrics = True
    params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    kinds = xllamacpp.common_speculative_type
    params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3]
    drafts = params.speculative.draft
    drafts.mparams.path = draft
    drafts.cache_type_k = drafts.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    drafts.n_max, drafts.n_min, drafts.p_min = STEPS, 0, 0.0
    drafts.cpuparams.n_threads = drafts.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    answers, after = [], []
    for prompt in json.loads(Path(prompts).read_text(encoding="utf-8")):
        answers.append(answer(server, prompt, int(tokens)))
        after.append(counted(server))
    sys.stdout.write("\n" + json.dumps({"answers": answers, "after": after, **after[-1]}) + "\n")
    sys.stdout.flush()
    os._exit(0)  # its threads do not always end


def answer(server: Any, prompt: str | list[int], tokens: int) -> str | list[int]:
    """The greedy answer, as the prompt is given: a text, or token ids."""
    wanted = {"temperature": 0.0, "cache_prompt": False}
    if isinstance(prompt, str):
        messages = [{"role": "user", "content": prompt}]
        chat = {"messages": messages, "max_tokens": tokens, **wanted}
        return read(server.handle_chat_completions(chat))["choices"][0]["message"]["content"]
    plain = {"prompt": prompt, "n_predict": tokens, "logprobs": 1}
    (choice,) = read(server.handle_completions({**plain, **wanted}))["choices"]
    return [token["id"] for token in choice["logprobs"]["content"]]


def read(given: Any) -> Any:
    """What the server says, which may be JSON's text."""
    return given if isinstance(given, dict) else json.loads(given)


def counted(server: Any) -> dict[str, int]:
    """What its own metrics say so far."""
    found = dict(
        line.rsplit(" ", 1)
        for line in str(server.handle_metrics()).splitlines()
        if line.startswith("llamacpp:spec_decode_num_") and "{" not in line
    )
    names = {"rounds": "drafts", "drafted": "draft_tokens", "accepted": "accepted_tokens"}
    return {
        ours: int(found[f"llamacpp:spec_decode_num_{its}_total"]) for ours, its in names.items()
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
