"""Check, convert, train, run and measure speculative-decoding drafters.

    import eyas

    report = eyas.check("./draft", engines="sglang@0.5.23")

What is in __all__ is the library; a name is loaded when it is first used, so that the import costs
nothing. The errors are in eyas.errors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from eyas.__about__ import __version__

if TYPE_CHECKING:
    from eyas.checks import (
        CheckedFile,
        Coverage,
        EngineOutcome,
        Finding,
        Outcome,
        Report,
        Severity,
        Skip,
        Subject,
        Tool,
    )
    from eyas.checks.explain import explain
    from eyas.checks.render import Format, render
    from eyas.errors import EyasError
    from eyas.library import check

__all__ = [
    "CheckedFile",
    "Coverage",
    "EngineOutcome",
    "EyasError",
    "Finding",
    "Format",
    "Outcome",
    "Report",
    "Severity",
    "Skip",
    "Subject",
    "Tool",
    "__version__",
    "check",
    "explain",
    "render",
]

_HOMES = {
    "check": "eyas.library",
    "EyasError": "eyas.errors",
    "Format": "eyas.checks.render",
    "render": "eyas.checks.render",
}


def __getattr__(name: str) -> object:
    """A public name, from the module that defines it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "eyas.checks")), name)


def __dir__() -> list[str]:
    """Public names too that were not used yet."""
    return sorted({*globals(), *__all__})
