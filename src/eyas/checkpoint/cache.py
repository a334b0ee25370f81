"""Where eyas keeps what it fetched or built."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_dir() -> Path:
    """eyas's cache folder: EYAS_CACHE as it is, else ``eyas`` in the platform's cache folder.

    The folder need not exist.
    """
    chosen = os.environ.get("EYAS_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    return _platform_cache() / "eyas"


def _platform_cache() -> Path:
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local) if local else Path.home() / "AppData" / "Local"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    # The XDG specification ignores a relative path.
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    return Path(xdg) if Path(xdg).is_absolute() else Path.home() / ".cache"
