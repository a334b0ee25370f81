"""The launch options of vLLM that bear on a drafter."""

from __future__ import annotations

from eyas.engines.config import ConfigView
from eyas.engines.launch import LaunchKey, Settings

METHOD_KEY = "launch :: method"
CONTEXT = "max_model_len"
CONTEXT_KEY = f"launch :: {CONTEXT}"
_PARALLEL = "parallel_drafting"

LAUNCH_KEYS = (
    LaunchKey(
        name="method",
        values=("eagle3", "eagle", "dflash", "dspark", "auto"),
        meaning="that of the drafter's kind unless given; auto is what vLLM guesses from the path",
        sound="eagle3",
    ),
    LaunchKey(
        name=_PARALLEL,
        values=("true", "false"),
        meaning="all draft tokens in one pass; true for a peagle speculators directory, else false",
    ),
    LaunchKey(name=CONTEXT, values=None, meaning="longest sequence"),
)


def method_of(settings: Settings, location: str, *, native: str, speculators: bool) -> str:
    """The method under which the drafter is launched; `native` is the one of its kind."""
    typed = settings.get("method", native)
    if typed != "auto":
        return typed
    # A speculators directory locks its own method (vLLM 0.32.0, vllm/transformers_utils/config.py
    # 754-822).
    return native if speculators else guessed_method(location)


def guessed_method(location: str) -> str:
    """What vLLM takes a drafter at `location` for when no method is given."""
    path = location.lower()
    signs = {"eagle-": "eagle", "eagle3": "eagle3", "dflash": "dflash", "dspark": "dspark"}
    return next((method for sign, method in signs.items() if sign in path), "draft_model")


def drafts_in_parallel(settings: Settings, config: ConfigView, method: str) -> bool:
    """Whether the launch asks for all draft tokens of one pass.

    Methods dflash and dspark do (vLLM 0.32.0, vllm/config/speculative.py 1468-1469), and
    `vllm serve` on a peagle speculators directory sets it (vLLM 0.32.0,
    vllm/transformers_utils/configs/speculators/base.py 143-149), where it has put a pard_token.
    """
    if method in ("dflash", "dspark"):
        return True
    typed = settings.get(_PARALLEL)
    if typed is not None:
        return typed == "true"
    return config.places.get("pard_token") is not None
