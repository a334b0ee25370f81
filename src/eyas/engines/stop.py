"""The two ways in which reading an engine's contract ends early."""

from __future__ import annotations

from eyas.errors import one_line
from eyas.spec import Claim, Refusal, Stage


class Refused(Exception):  # noqa: N818 - the engine's outcome, not an error of eyas
    """The engine raises: caught where the outcome is put together."""

    def __init__(self, stage: Stage, message: str, claim: Claim, hint: str | None = None) -> None:
        super().__init__(message)
        self.refusal = Refusal(stage=stage, message=one_line(message), claim=claim, hint=hint)


class NotCovered(Exception):  # noqa: N818 - as above
    """The contract does not reach this far: the outcome is NotChecked with this reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = one_line(reason)
