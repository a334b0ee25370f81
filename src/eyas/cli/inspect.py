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
    from eyas.checkpoint import open_checkpoint
    from eyas.checks import as_trained
    from eyas.checks.render import facts
    from eyas.engines import EngineRef

    checkpoint = open_checkpoint(draft)
    trained = as_trained(checkpoint, target=None)
    reasons = (dialect.recognise(checkpoint) for dialect in dialects.DIALECTS)
    why = next(reason for reason in reasons if reason is not None)
    unread = dialects.unread_keys(checkpoint)
    if form is Plainness.JSON:
        result(facts.render_json(trained, why, unread=unread))
    else:
        result(facts.render_human(trained, why, style_of(color), unread=unread))
    newest = ",".join(map(str, EngineRef.newest_for(checkpoint)))
    hint(f"eyas check {quote(draft)} --engine {newest}")
