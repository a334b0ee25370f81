"""What is asked of SGLang's contract, and what is known of the answer so far."""

from __future__ import annotations

from dataclasses import dataclass, field

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines.launch import Settings
from eyas.engines.sglang.contract import Contract
from eyas.engines.sglang.launch import WINDOW, serves_as_eagle
from eyas.spec import Claim, DraftSpec, Fact, Landing


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


@dataclass(slots=True, kw_only=True)
class Answer:
    """Filled in step by step, so that an engine that stops keeps what was known before."""

    spec: DraftSpec | None = None
    landing: Landing | None = None
    slides: Fact[bool] | None = None
    claims: list[Claim] = field(default_factory=list)
