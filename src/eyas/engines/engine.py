"""Engine: what every engine package offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines.launch import LaunchKey, Settings
from eyas.engines.metric import Meter
from eyas.engines.version import Version, version_of
from eyas.spec import Served

Reader = Callable[[str, str | None, Checkpoint, TargetFacts | None, Settings], Served]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine's name, what of it is known, and how its contract is read.

    `oldest` and `newest` are the first and last version of the contract. `reader` takes the
    version as typed, the runner, the checkpoint, the target and the validated launch settings; it
    may raise NotCovered. `meter` gives the engine's own numbers for counted rounds, as they are
    known from version `metered` on, or from `oldest` where that is None.
    """

    name: str
    reads_gguf: bool = False  # takes GGUF files, and no Hugging Face directory
    oldest: str
    newest: str
    runners: tuple[str, ...]
    default_runner: str | None
    launch_keys: tuple[LaunchKey, ...]
    reader: Reader
    meter: Meter
    metered: str | None = None

    def meters(self, version: Version) -> bool:
        """Whether it is known what `version` reports of itself."""
        return version_of(self.metered or self.oldest) <= version <= version_of(self.newest)

    def covers(self, version: Version) -> bool:
        """Whether `version` lies in the range that the contract was read from."""
        return version_of(self.oldest) <= version <= version_of(self.newest)
