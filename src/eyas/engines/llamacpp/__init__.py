"""llama.cpp, by build: what its ``eagle3`` architecture takes from a GGUF file."""

from eyas.engines.engine import Engine
from eyas.engines.llamacpp.launch import LAUNCH_KEYS

LLAMACPP = Engine(
    name="llamacpp",
    package=__name__,
    oldest="11549",
    newest="11549",
    runners=(),
    default_runner=None,
    launch_keys=LAUNCH_KEYS,
    reads_gguf=True,
)

__all__ = ["LLAMACPP"]
