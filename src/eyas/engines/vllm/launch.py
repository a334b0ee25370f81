"""The launch options of vLLM that bear on a drafter."""

from __future__ import annotations

from eyas.engines.launch import LaunchKey, Settings

METHOD_KEY = "launch :: method"
CONTEXT = "max_model_len"

LAUNCH_KEYS = (
    LaunchKey(
        name="method",
        values=("eagle3", "eagle", "auto"),
        meaning="eagle3 unless given; auto is what vLLM guesses from the path",
        sound="eagle3",
    ),
    LaunchKey(name=CONTEXT, values=None, meaning="longest sequence"),
)


def method_of(settings: Settings, location: str, *, speculators: bool) -> str:
    """The method under which the drafter is launched."""
    typed = settings.get("method", "eagle3")
    if typed != "auto":
        return typed
    # A speculators directory locks its own method (vLLM 0.32.0, vllm/transformers_utils/config.py
    # 754-822).
    return "eagle3" if speculators else guessed_method(location)


def guessed_method(location: str) -> str:
    """What vLLM takes a drafter at `location` for when no method is given."""
    path = location.lower()
    if "eagle-" in path:
        return "eagle"
    return "eagle3" if "eagle3" in path else "draft_model"
