"""The report for programs: one JSON object, and its schema."""

from __future__ import annotations

import json
from typing import Any

from eyas.check.report import Report


def render(report: Report) -> str:
    """The report as one JSON object."""
    from pydantic import TypeAdapter

    document = TypeAdapter(Report).dump_python(report, mode="json")
    return json.dumps(document, indent=2) + "\n"  # in ASCII, which every terminal shows


def schema() -> dict[str, Any]:
    """The JSON Schema of the report."""
    from pydantic import TypeAdapter

    return TypeAdapter(Report).json_schema(mode="serialization")
