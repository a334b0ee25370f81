"""vLLM, 0.32.0 and 0.33.0."""

from eyas.engines.engine import Engine
from eyas.engines.vllm.launch import LAUNCH_KEYS

VLLM = Engine(
    name="vllm",
    package=__name__,
    oldest="0.32.0",
    newest="0.33.0",
    runners=("v1", "v2"),
    default_runner="v2",
    launch_keys=LAUNCH_KEYS,
)

__all__ = ["VLLM"]
