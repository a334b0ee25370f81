"""Where the drafter that was trained here is: in an installed wheel, or in a clone."""

from __future__ import annotations

from pathlib import Path

from eyas.data.prompts import OWN_PROMPTS
from eyas.errors import CheckpointError

PROMPTS = OWN_PROMPTS


def trained_here() -> Path:
    """The drafter for SmolLM2-135M-Instruct; CheckpointError when its directory is missing."""
    package = Path(__file__).resolve().parents[1]
    clone = package.parents[1]
    for assets in (package / "assets", clone / "assets"):
        drafter = assets / "smollm2-eagle3"
        if (drafter / "config.json").is_file():
            return drafter
    raise CheckpointError(
        f"no drafter at {clone / 'assets' / 'smollm2-eagle3'}",
        hint="run the demo from a complete clone, or install a wheel of eyas",
    )
