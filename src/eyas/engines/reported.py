"""What engines would say of rounds that were counted here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import wrap

from eyas.engines.catalogue import engine_named
from eyas.engines.metric import Metric, Tally
from eyas.engines.reference import EngineRef
from eyas.engines.version import version_of
from eyas.errors import EngineError

WIDTH = 100  # characters
# Either side of 0.5.11, where SGLang's accept rate changed its meaning, and vLLM.
USUAL = (
    EngineRef(name="sglang", version="0.5.10.post1"),
    EngineRef(name="sglang", version="0.5.23"),
    EngineRef(name="vllm", version="0.33.0"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reported:
    """The numbers of one engine version for given rounds; none where nobody knows them."""

    engine: EngineRef
    metrics: tuple[Metric, ...]

    def named(self, name: str) -> Metric | None:
        """The first metric called `name`, or None."""
        return next((metric for metric in self.metrics if metric.name == name), None)


def reported(tally: Tally, refs: Iterable[EngineRef] = USUAL) -> tuple[Reported, ...]:
    """What each of `refs` would say of `tally`; EngineError for a version eyas does not know."""
    return tuple(_by(ref, tally) for ref in refs)


def _by(ref: EngineRef, tally: Tally) -> Reported:
    engine = engine_named(ref.name)
    if engine is None or not engine.covers(version_of(ref.version)):
        raise EngineError(f"eyas does not know what {ref} would report")
    version = version_of(ref.version)
    metrics = engine.meter(version, tally) if engine.meters(version) else ()
    return Reported(engine=ref, metrics=metrics)


def text_of(reports: Iterable[Reported]) -> str:
    """One paragraph an engine: its names and numbers, and where a number misleads."""
    lines: list[str] = []
    for report in reports:
        if not report.metrics:
            lines.append(f"eyas does not know what {report.engine} would say")
            continue
        lines.append(f"{report.engine} would say")
        for place in dict.fromkeys(metric.where for metric in report.metrics):
            shown = [metric for metric in report.metrics if metric.where == place]
            lines += _wrapped(f"{place}: " + ", ".join(f"{m.name} {m.text}" for m in shown), 2)
            for caution in dict.fromkeys(m.caution for m in shown if m.caution):
                lines += _wrapped(f"({caution})", 6)
    return "\n".join(lines) + "\n"


def _wrapped(text: str, indent: int) -> list[str]:
    return wrap(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * 6,
        break_long_words=False,
        break_on_hyphens=False,
    )
