"""Version: an engine's version, ordered as Python packages order theirs."""

from __future__ import annotations

import re
from dataclasses import dataclass

_PATTERN = re.compile(
    r"[vb]?(?P<release>\d+(?:\.\d+)*)"
    r"(?:(?P<pre>a|b|rc)(?P<pre_number>\d+))?"
    r"(?:\.post(?P<post>\d+))?"
    r"(?:\.dev(?P<dev>\d+))?"
    r"(?:\+[a-z0-9.]+)?",
    re.IGNORECASE,
)
_PRE_RELEASES = {"a": 0, "b": 1, "rc": 2}
_RELEASED, _POST, _DEV = 3, 4, -1


@dataclass(frozen=True, slots=True, order=True)
class Version:
    """A version's place in the order of PEP 440; a local part (``+cpu``) has no weight.

    `release` has no trailing zeros, so that 0.33 equals 0.33.0. A build number is a version of one
    part, written 11549 or b11549.
    """

    release: tuple[int, ...]
    phase: tuple[int, int]
    is_final: bool
    dev: int

    @classmethod
    def parse(cls, text: str) -> Version | None:
        """The version that `text` spells, or None when it spells none."""
        match = _PATTERN.fullmatch(text)
        if match is None:
            return None
        release = [int(part) for part in match["release"].split(".")]
        while release and release[-1] == 0:
            release.pop()
        if match["post"] is not None:
            phase = (_POST, int(match["post"]))
        elif match["pre"] is not None:
            phase = (_PRE_RELEASES[match["pre"].lower()], int(match["pre_number"]))
        else:
            phase = (_RELEASED if match["dev"] is None else _DEV, 0)
        dev = match["dev"]
        return cls(tuple(release), phase, dev is None, 0 if dev is None else int(dev))


def version_of(text: str) -> Version:
    """The version that one of this package's own constants spells."""
    version = Version.parse(text)
    if version is None:
        raise ValueError(f"{text!r} is no version")
    return version
