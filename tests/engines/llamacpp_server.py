"""Runs llama.cpp with an eagle3 drafter in a process of its own, and prints what it counted.

    python llamacpp_server.py TARGET.gguf DRAFT.gguf PROMPTS.json TOKENS

PROMPTS.json is a list of texts. The last line is JSON: the answers, and rounds, drafted and
accepted tokens as the server's own /metrics has them. llama.cpp aborts the interpreter where a file
breaks its assumptions, which is why this is no function of a test.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import xllamacpp

STEPS = 3


def main(target: str, draft: str, prompts: str, tokens: str) -> None:
    params = xllamacpp.CommonParams()
    params.model.path = target
    params.n_ctx, params.n_parallel, params.warmup = 1024, 1, False
    params.endpoint_metrics = True
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    kinds = xllamacpp.common_speculative_type
    params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3]
    drafts = params.speculative.draft
    drafts.mparams.path = draft
    drafts.n_max, drafts.n_min, drafts.p_min = STEPS, 0, 0.0
    drafts.cpuparams.n_threads = drafts.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    answers = []
    for text in json.loads(Path(prompts).read_text(encoding="utf-8")):
        answer = server.handle_chat_completions(
            {
                "messages": [{"role": "user", "content": text}],
                "temperature": 0.0,
                "max_tokens": int(tokens),
                "cache_prompt": False,
            }
        )
        answer = answer if isinstance(answer, dict) else json.loads(answer)
        answers.append(answer["choices"][0]["message"]["content"])
    counted = dict(
        line.rsplit(" ", 1)
        for line in str(server.handle_metrics()).splitlines()
        if line.startswith("llamacpp:spec_decode_num_") and "{" not in line
    )
    names = {"rounds": "drafts", "drafted": "draft_tokens", "accepted": "accepted_tokens"}
    numbers = {
        ours: int(counted[f"llamacpp:spec_decode_num_{its}_total"]) for ours, its in names.items()
    }
    sys.stdout.write("\n" + json.dumps({"answers": answers, **numbers}) + "\n")
    sys.stdout.flush()
    os._exit(0)  # its threads do not always end


if __name__ == "__main__":
    main(*sys.argv[1:])
