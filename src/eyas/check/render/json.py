"""The report for programs: one JSON object, and its schema."""

from __future__ import annotations

from typing import Any

from eyas.check.report import Report


def render(report: Report) -> str:
    """The report as one JSON object."""
    from pydantic import TypeAdapter

    return TypeAdapter(Report).dump_json(report, indent=2).decode() + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of the report."""
    from pydantic import TypeAdapter

    return TypeAdapter(Report).json_schema(mode="serialization")
