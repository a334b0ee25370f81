"""Engine: what every engine package offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines.launch import LaunchKey, Settings
from eyas.engines.metric import Meter
from eyas.engines.version import Version, version_of
from eyas.spec import Served

Reader = Callable[[str, str | None, Checkpoint, TargetFacts | None, Settings], Served]


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """An engine's name, what of it is known, and how its contract is read.

    `oldest` and `newest` are the first and last version of the contract; what the engine reports
    of itself is known from version `metered` on, or from `oldest` where that is None. Of `package`
    the modules ``reader`` and ``metrics`` are imported when they are asked for, so that a question
    about one engine does not pay for the others.
    """

    name: str
    package: str
    reads_gguf: bool = False  # takes GGUF files, and no Hugging Face directory
    oldest: str
    newest: str
    runners: tuple[str, ...]
    default_runner: str | None
    launch_keys: tuple[LaunchKey, ...]
    metered: str | None = None

    @property
    def reader(self) -> Reader:
        """Reads the contract; takes the version as typed, and may raise NotCovered."""
        read: Reader = import_module(f"{self.package}.reader").read
        return read

    @property
    def meter(self) -> Meter:
        """The engine's own numbers for counted rounds."""
        metrics: Meter = import_module(f"{self.package}.metrics").metrics
        return metrics

    def meters(self, version: Version) -> bool:
        """Whether it is known what `version` reports of itself."""
        return version_of(self.metered or self.oldest) <= version <= version_of(self.newest)

    def covers(self, version: Version) -> bool:
        """Whether `version` lies in the range that the contract was read from."""
        return version_of(self.oldest) <= version <= version_of(self.newest)
