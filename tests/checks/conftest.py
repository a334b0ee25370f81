"""What the tests of the checks share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def unsynced() -> Iterator[None]:
    """Files that nobody waits for to reach the disk: none of them outlives its test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda descriptor: None)
        yield
