"""What is asked of SGLang's contract."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines.launch import Settings
from eyas.engines.sglang.contract import Contract
from eyas.engines.sglang.launch import WINDOW, serves_as_eagle


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One checkpoint under one launch of one version, with or without its target."""

    checkpoint: Checkpoint
    target: TargetFacts | None
    settings: Settings
    contract: Contract

    @property
    def eagle(self) -> bool:
        """Whether it is launched as an EAGLE-1/2 head."""
        return serves_as_eagle(self.settings)

    @property
    def windowed(self) -> bool:
        """Whether the launch narrows the drafter's attention to a window."""
        return WINDOW in self.settings
