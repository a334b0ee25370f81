"""The house is as docs/structure.md says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "eyas"
MODULES = sorted(SOURCE.rglob("*.py"))
NAMES_THAT_EXPLAIN_NOTHING = {
    "utils",
    "util",
    "common",
    "helpers",
    "helper",
    "manager",
    "base",
    "misc",
}


def rooms() -> list[tuple[str, str]]:
    """Each row of the table of packages: (package, the file to start reading at)."""
    text = (ROOT / "docs" / "structure.md").read_text(encoding="utf-8")
    return re.findall(r"^\| `(\w+)/` \|.*?\| `(\w+\.py)`", text, re.MULTILINE)


@pytest.mark.parametrize(("package", "first"), rooms())
def test_a_noun_is_where_the_page_says(package: str, first: str) -> None:
    assert (SOURCE / package / first).is_file()


def test_every_package_is_on_the_page() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages == {package for package, _ in rooms()}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_module_is_small_and_named_for_what_it_holds(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= 400
    assert module.stem not in NAMES_THAT_EXPLAIN_NOTHING


def test_the_product_does_not_know_the_folder_of_recorded_cases() -> None:
    for module in MODULES:
        assert "EYAS_SHARED" not in module.read_text(encoding="utf-8"), module
