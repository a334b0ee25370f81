"""What the tests share: the embedded target, the drafter in assets/, and the folder of records."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The embedded target's directory; made on first use."""
    from eyas.model.smollm2 import ensure_smollm2

    return ensure_smollm2()


@pytest.fixture(scope="session")
def trained_here() -> Path:
    """The drafter that was trained here, as the trainer saved it."""
    return ROOT / "assets" / "smollm2-eagle3"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of recorded cases, beside the clone or in EYAS_SHARED; without it, an open skip."""
    folder = Path(os.environ.get("EYAS_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip(f"no recorded cases at {folder}; set EYAS_SHARED to score against them")
    return folder
