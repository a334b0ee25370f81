"""eyas inspect: what a drafter is."""

from __future__ import annotations

from shlex import quote

from eyas.cli.options import Color, ColorOption, Draft, FormatOption, Plainness
from eyas.cli.output import hint, result, style_of


def inspect(
    draft: Draft,
    form: FormatOption = Plainness.HUMAN,
    color: ColorOption = Color.AUTO,
) -> None:
    """Say what a drafter is: every fact with the key it came from, every tensor with its role.

    eyas inspect ./draft

    eyas inspect org/name --format json
    """
    from eyas import dialects
    from eyas.check import as_trained
    from eyas.check.render import facts
    from eyas.checkpoint import open_checkpoint
    from eyas.engines import engines_for

    checkpoint = open_checkpoint(draft)
    trained = as_trained(checkpoint, target=None)
    reasons = (dialect.recognise(checkpoint) for dialect in dialects.DIALECTS)
    why = next(reason for reason in reasons if reason is not None)
    if form is Plainness.JSON:
        result(facts.render_json(trained, why))
    else:
        result(facts.render_human(trained, why, style_of(color)))
    newest = ",".join(f"{engine.name}@{engine.newest}" for engine in engines_for(checkpoint))
    hint(f"eyas check {quote(draft)} --engine {newest}")
