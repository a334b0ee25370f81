"""Where the cache is on each platform."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from eyas.checkpoint import cache_dir


@pytest.fixture(autouse=True)
def bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("EYAS_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/a"))


def test_eyas_cache_is_taken_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYAS_CACHE", "/big/disk")
    assert cache_dir() == Path("/big/disk")


@pytest.mark.parametrize(
    ("platform", "variable", "value", "expected"),
    [
        ("linux", "", "", "/home/a/.cache/eyas"),
        ("linux", "XDG_CACHE_HOME", "/x", "/x/eyas"),
        ("linux", "XDG_CACHE_HOME", "relative", "/home/a/.cache/eyas"),
        ("darwin", "XDG_CACHE_HOME", "/x", "/home/a/Library/Caches/eyas"),
        ("win32", "LOCALAPPDATA", "/local", "/local/eyas"),
        ("win32", "", "", "/home/a/AppData/Local/eyas"),
    ],
)
def test_the_platforms_folder(
    monkeypatch: pytest.MonkeyPatch, platform: str, variable: str, value: str, expected: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    if variable:
        monkeypatch.setenv(variable, value)
    assert cache_dir() == Path(expected)
