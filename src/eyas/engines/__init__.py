"""What each version of each engine makes of a drafter: loader, config reader and launch."""

from eyas.engines.catalogue import ENGINES, engines_for
from eyas.engines.engine import Engine
from eyas.engines.launch import Launch, LaunchKey
from eyas.engines.reading import read, require_covered
from eyas.engines.reference import EngineRef
from eyas.engines.version import Version

__all__ = [
    "ENGINES",
    "Engine",
    "EngineRef",
    "Launch",
    "LaunchKey",
    "Version",
    "engines_for",
    "read",
    "require_covered",
]
