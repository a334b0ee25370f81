"""The launch options of SGLang that bear on a drafter."""

from __future__ import annotations

from eyas.engines.launch import LaunchKey, Settings

CONTEXT = "context_length"
WINDOW = "speculative_draft_window_size"
LONGER = "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN"

LAUNCH_KEYS = (
    LaunchKey(
        name="speculative_algorithm",
        values=("EAGLE3", "EAGLE", "NEXTN"),
        meaning="EAGLE3 unless given; NEXTN is an alias of EAGLE",
        sound="EAGLE3",
    ),
    LaunchKey(
        name="disable_cuda_graph",
        values=("false", "true"),
        meaning="up to 0.5.10.post1, graphs put the default layer ids in place",
    ),
    LaunchKey(name=CONTEXT, values=None, meaning="longest sequence"),
    LaunchKey(
        name=LONGER,
        values=("0", "1"),
        meaning="an environment variable: 1 lets the target be longer than the drafter's config",
        sound="1",
    ),
    LaunchKey(
        name=WINDOW,
        values=None,
        meaning="the drafter's attention sees so many tokens, from 0.5.12 on",
    ),
)

ALGORITHM_KEY = "launch :: speculative_algorithm"
WINDOW_KEY = f"launch :: {WINDOW}"
LONGER_KEY = f"launch :: {LONGER}"


def serves_as_eagle(settings: Settings) -> bool:
    """Whether the head is launched as an EAGLE-1/2 head."""
    return settings.get("speculative_algorithm", "EAGLE3") != "EAGLE3"


def uses_graphs(settings: Settings) -> bool:
    """Whether CUDA graphs are captured, as they are unless switched off."""
    return settings.get("disable_cuda_graph", "false") == "false"
