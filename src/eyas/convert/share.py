"""Share: what becomes of the embedding or the head."""

from __future__ import annotations

from enum import StrEnum


class Share(StrEnum):
    """Whether it is stored with the drafter or left to the target."""

    KEEP = "keep"  # as the drafter has it, unless the engine needs it otherwise
    ADD = "add"  # stored with the drafter, from the target where it was the target's
    LEAVE = "leave"  # left to the target, whose numbers it must have
