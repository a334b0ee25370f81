"""llama.cpp: the library as the wheel xllamacpp brings it, built for the CPU."""

from __future__ import annotations

from eyas.probe.recipes.recipe import Recipe, Step


def _steps(version: str, cuda: bool) -> tuple[Step, ...]:
    return (
        Step(title="making a virtual environment", work=lambda bench: bench.make_venv()),
        Step(
            title=f"installing xllamacpp {version}",
            work=lambda bench: bench.pip("install", f"xllamacpp=={version}"),
        ),
    )


RECIPE = Recipe(
    engine="llamacpp",
    newest="2026.10.11549",
    script="llamacpp_probe.py",
    steps=_steps,
    check="import xllamacpp",
)
