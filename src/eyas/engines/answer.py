"""What an engine makes of a checkpoint, as far as it is known."""

from __future__ import annotations

from dataclasses import dataclass, field

from eyas.engines.stop import Refused
from eyas.spec import Claim, DraftSpec, Fact, Landing, LongContext, Refusal, Served


@dataclass(slots=True, kw_only=True)
class Answer:
    """Filled in step by step, so that an engine that stops keeps what was known before."""

    spec: DraftSpec | None = None
    landing: Landing | None = None
    slides: Fact[bool] | None = None
    long_context: Fact[LongContext] | None = None
    refusal: Refusal | None = None
    claims: list[Claim] = field(default_factory=list)

    def refuse(self, end: Refused) -> None:
        """End here: the engine raises."""
        self.refusal = end.refusal
        self.claims.append(end.refusal.claim)

    def served(
        self, engine: str, version: str, runner: str | None, *, context: Fact[int] | None
    ) -> Served:
        """The answer in full; a claim that was made twice is in it once."""
        return Served(
            engine=engine,
            version=version,
            runner=runner,
            spec=self.spec,
            landing=self.landing,
            slides=self.slides,
            refusal=self.refusal,
            claims=tuple(dict.fromkeys(self.claims)),
            context=context,
            long_context=self.long_context,
        )
