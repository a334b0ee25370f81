"""The library: eyas.check, which says what the command `eyas check` says."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from eyas.checks import Report


def check(
    draft: str | Path,
    *,
    target: str | Path | None = None,
    engines: str | Iterable[str] = (),
    launch: Mapping[str, str] | Iterable[str] = (),
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    values: bool = False,
) -> Report:
    """What engines will compute with the drafter at `draft`, against what was trained.

    `draft` and `target` are directories, files or Hub ids (``org/name@revision``); of the target
    the config is read. `engines` are texts such as ``"sglang@0.5.23,vllm@0.33.0:v2"``; without
    any, the newest version that eyas knows of each engine that takes such files. `launch` is how
    they are launched: ``{"speculative_algorithm": "EAGLE3"}`` or
    ``["speculative_algorithm=EAGLE3"]``.
    `select` and `ignore` take codes, prefixes or names of rules. With `values` the weights are
    read too, in pieces, and the target's embedding where it is at hand.

    Nothing here needs torch. Raises eyas.EyasError, whose subclasses in eyas.errors say what of
    the input cannot be used; a question that stays open is no error but a part of the report.

        report = eyas.check("./draft", target="./model", engines="sglang@0.5.23")
        for finding in report.findings:
            print(finding.code, finding.message, finding.help)
        raise SystemExit(report.exit_code())
    """
    from eyas.checkpoint import open_checkpoint
    from eyas.checks import Selection, open_fitting
    from eyas.checks import check as checked
    from eyas.convert import repair_of
    from eyas.engines import EngineRef, Launch

    selection = Selection.parse(_texts(select), _texts(ignore))
    typed = _texts(engines)
    named = EngineRef.parse_list(",".join(typed)) if typed else ()
    settings = [f"{k}={v}" for k, v in launch.items()] if isinstance(launch, Mapping) else launch
    setting = Launch.parse(_texts(settings))
    checkpoint = open_checkpoint(draft)
    facts = None if target is None else open_fitting(target, checkpoint)
    refs = named or EngineRef.newest_for(checkpoint)
    return checked(
        checkpoint,
        refs,
        target=facts,
        launch=setting,
        selection=selection,
        values=values,
        repair=repair_of(checkpoint, facts),
    )


def _texts(given: str | Iterable[str]) -> list[str]:
    """`given` as a list: a single text is one of them, not its letters."""
    return [given] if isinstance(given, str) else list(given)
