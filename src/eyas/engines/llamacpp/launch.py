"""The launch options of llama.cpp's server that bear on a drafter."""

from __future__ import annotations

from eyas.engines.launch import LaunchKey

CONTEXT = "ctx_size"

LAUNCH_KEYS = (
    LaunchKey(
        name="spec_type",
        values=("draft-eagle3",),
        meaning="how drafts are made; the draft model itself is given with --model-draft",
        sound="draft-eagle3",
    ),
    LaunchKey(name=CONTEXT, values=None, meaning="longest sequence"),
)
