"""SGLang, 0.4.9 to 0.5.23."""

from eyas.engines.engine import Engine
from eyas.engines.sglang.contract import NEWEST, OLDEST
from eyas.engines.sglang.launch import LAUNCH_KEYS

SGLANG = Engine(
    name="sglang",
    package=__name__,
    oldest=OLDEST,
    newest=NEWEST,
    runners=(),
    default_runner=None,
    launch_keys=LAUNCH_KEYS,
    metered="0.5.8",
)

__all__ = ["SGLANG"]
