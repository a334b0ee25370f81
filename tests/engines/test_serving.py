"""The command that serves a drafter: one word each for a shell, and the options of its engine."""

from __future__ import annotations

import json
import shlex

from eyas.engines import EngineRef
from eyas.engines.serving import serving_command

DRAFT, TARGET = "./my draft's", "org/model"


def words(engine: str, steps: int = 3) -> list[str]:
    ref = EngineRef.parse(engine)
    return shlex.split(serving_command(ref, DRAFT, TARGET, steps=steps))


def test_sglang_drafts_a_chain() -> None:
    told = words("sglang@0.5.23", steps=5)
    options = dict(zip(told[3::2], told[4::2], strict=True))
    assert told[:3] == ["python", "-m", "sglang.launch_server"]
    assert options == {
        "--model-path": TARGET,
        "--speculative-algorithm": "EAGLE3",
        "--speculative-draft-model-path": DRAFT,
        "--speculative-num-steps": "5",
        "--speculative-eagle-topk": "1",
        "--speculative-num-draft-tokens": "6",
    }


def test_vllm_is_told_the_method_and_the_runner() -> None:
    told = words("vllm@0.33.0:v2")
    assert told[:4] == ["VLLM_USE_V2_MODEL_RUNNER=1", "vllm", "serve", TARGET]
    config = json.loads(told[-1])
    assert config == {"method": "eagle3", "model": DRAFT, "num_speculative_tokens": 3}
    assert words("vllm@0.33.0")[0] == "vllm"


def test_llama_cpp_is_told_the_kind() -> None:
    told = words("llamacpp@11549")
    assert told[:3] == ["llama-server", "--model", "TARGET.gguf"]  # a directory is none for it
    assert told[3:] == [
        "--spec-draft-model",
        DRAFT,
        "--spec-type",
        "draft-eagle3",
        "--spec-draft-n-max",
        "3",
    ]
