"""eyas explain: the text behind a code."""

from __future__ import annotations

from typing import Annotated

import typer

from eyas.cli.output import hint, result


def explain(
    code: Annotated[
        str | None, typer.Argument(metavar="CODE", help="A rule's code or name, as L202.")
    ] = None,
) -> None:
    """Say what a rule checks, why it matters and how to fix it; without a code, list the rules.

    eyas explain L202

    eyas explain
    """
    from eyas.checks import RULES
    from eyas.checks import explain as explanation
    from eyas.checks.render import rules as listing

    if code is None:
        result(listing.render_human(RULES))
        hint("eyas explain CODE")
    else:
        result(explanation(code))
