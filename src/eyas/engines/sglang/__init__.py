"""SGLang, 0.4.9 to 0.5.23."""

from eyas.engines.engine import Engine
from eyas.engines.sglang.contract import NEWEST, OLDEST
from eyas.engines.sglang.launch import LAUNCH_KEYS
from eyas.engines.sglang.metrics import METERED, metrics
from eyas.engines.sglang.reader import read

SGLANG = Engine(
    name="sglang",
    oldest=OLDEST,
    newest=NEWEST,
    runners=(),
    default_runner=None,
    launch_keys=LAUNCH_KEYS,
    reader=read,
    meter=metrics,
    metered=METERED,
)

__all__ = ["SGLANG"]
