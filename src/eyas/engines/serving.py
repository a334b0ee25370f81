"""The command that serves a target with a drafter, for each engine, ready for a shell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from shlex import join
from types import MappingProxyType

from eyas.engines.reference import EngineRef

# The names of options are those of sglang/srt/server_args.py in 0.4.9 to 0.5.23, of vLLM 0.32.0's
# SpeculativeConfig (vllm/config/speculative.py) and of llama.cpp's common/arg.cpp:4140-4249 at
# 0c1e57098. A chain of drafts without a tree is what every engine can verify.


def serving_command(ref: EngineRef, draft: str, target: str, *, steps: int = 3) -> str:
    """What to type to serve `target` with the EAGLE-3 drafter at `draft` on engine `ref`.

    `steps` tokens are drafted in each round.
    """
    if ref.name == "sglang":
        words = ["python", "-m", "sglang.launch_server", "--model-path", target]
        words += ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", draft]
        words += ["--speculative-num-steps", str(steps), "--speculative-eagle-topk", "1"]
        return join([*words, "--speculative-num-draft-tokens", str(steps + 1)])
    if ref.name == "vllm":
        config = {"method": "eagle3", "model": draft, "num_speculative_tokens": steps}
        words = ["vllm", "serve", target, "--speculative-config", json.dumps(config)]
        return _RUNNERS.get(ref.runner or "", "") + join(words)
    model = target if target.endswith(".gguf") else "TARGET.gguf"  # it reads no other
    words = ["llama-server", "--model", model, "--spec-draft-model", draft]
    return join([*words, "--spec-type", "draft-eagle3", "--spec-draft-n-max", str(steps)])


# vLLM 0.32.0 picks a runner itself unless this variable says which (vllm/envs.py).
_RUNNERS: Mapping[str, str] = MappingProxyType(
    {"v1": "VLLM_USE_V2_MODEL_RUNNER=0 ", "v2": "VLLM_USE_V2_MODEL_RUNNER=1 "}
)
