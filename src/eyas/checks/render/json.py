"""The report for programs: one JSON object, or one that says why there is none; the schema."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

from eyas.checks.report import SCHEMA_VERSION, ErrorDocument, ErrorText, Report

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def render(report: Report) -> str:
    """The report as one JSON object."""
    document = _adapter().dump_python(report, mode="json")
    return json.dumps(document, indent=2) + "\n"  # in ASCII, which every terminal shows


@cache  # building one takes as long as a check
def _adapter() -> TypeAdapter[Report]:
    from pydantic import TypeAdapter

    return TypeAdapter(Report)


def render_error(error: ErrorText) -> str:
    """The object that stands where a report would, so that what is written always parses."""
    from dataclasses import asdict

    document = ErrorDocument(schema_version=SCHEMA_VERSION, error=error)
    return json.dumps(asdict(document), indent=2) + "\n"


def schema() -> dict[str, Any]:
    """The JSON Schema of what `eyas check --format json` writes: a report, or why there is none."""
    from pydantic import TypeAdapter

    kinds: TypeAdapter[Report | ErrorDocument] = TypeAdapter(Report | ErrorDocument)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"eyas check --format json, schema_version {SCHEMA_VERSION}",
        **kinds.json_schema(mode="serialization"),
    }
