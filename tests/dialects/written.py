"""What a dialect wrote, read back: exact, or refused in one sentence."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from eyas import dialects
from eyas.checkpoint import open_checkpoint, write_sparse
from eyas.convert.recheck import changes
from eyas.dialects import WRITABLE, Writable
from eyas.errors import ConversionError
from eyas.spec import DraftSpec

# The dialects that are written as a Hugging Face directory.
DIRECTORIES = tuple(name for name in WRITABLE if name != "gguf")

Headers = dict[str, tuple[str, tuple[int, ...]]]


def exact(
    dialect: Writable, spec: DraftSpec, headers: Headers, maps: dict[str, bytes], **choices: Any
) -> dict[str, Any]:
    """The config that `dialect` writes; asserts that it reads back as `spec` in that dialect."""
    config, names = dialect.write(spec, headers, dtype="bfloat16", **choices)
    dropped = set(headers) - set(names)
    assert dropped <= ({"t2d"} if "t2d" not in dialect.maps else set())
    with tempfile.TemporaryDirectory() as folder:
        place = write_sparse(
            Path(folder) / "drafter",
            config,
            {names[role]: header for role, header in headers.items() if role in names},
            {names[role]: raw for role, raw in maps.items() if role in names},
        )
        checkpoint = open_checkpoint(place)
        found, again = dialects.read(checkpoint)
        roles = {role: name for name, role in found.roles(checkpoint).items()}
        unread = dialects.unread_keys(checkpoint)
    assert found.name == dialect.name
    assert list(changes(spec, again)) == []
    assert roles == names
    assert unread == ()
    return config


def exact_or_refused(
    dialect: Writable, spec: DraftSpec, headers: Headers, maps: dict[str, bytes]
) -> bool:
    """Whether `dialect` wrote `spec`, which is then exact; else it said why in one sentence."""
    try:
        exact(dialect, spec, headers, maps)
    except ConversionError as refused:
        message = refused.message
    else:
        return True
    assert "\n" not in message
    assert message[:1].strip()
    assert not message.endswith(".")
    return False
