"""vLLM, 0.32.0 and 0.33.0."""

from eyas.engines.engine import Engine
from eyas.engines.vllm.launch import LAUNCH_KEYS
from eyas.engines.vllm.metrics import metrics
from eyas.engines.vllm.reader import read

VLLM = Engine(
    name="vllm",
    oldest="0.32.0",
    newest="0.33.0",
    runners=("v1", "v2"),
    default_runner="v2",
    launch_keys=LAUNCH_KEYS,
    reader=read,
    meter=metrics,
)

__all__ = ["VLLM"]
