"""Write the JSON Schema of `eyas check --format json` to docs/report.schema.json.

python scripts/report_schema.py
"""

from __future__ import annotations

import json
from pathlib import Path

from eyas.checks.render.json import schema

PUBLISHED = Path(__file__).resolve().parents[1] / "docs" / "report.schema.json"


def main() -> None:
    """Writes the schema."""
    PUBLISHED.write_text(json.dumps(schema(), indent=2) + "\n")


if __name__ == "__main__":
    main()
