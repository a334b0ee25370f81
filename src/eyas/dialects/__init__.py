"""Dialects: how each producer writes a drafter, read to a DraftSpec and written from one.

A dialect is one module. Adding one is adding its file and its name to DIALECTS, and to WRITABLE
where it is written too.
"""

from eyas.dialects.dialect import Dialect, Maps, Writable
from eyas.dialects.recognition import (
    DIALECTS,
    WRITABLE,
    named_dialect,
    read,
    recognise,
    unread_keys,
)

__all__ = [
    "DIALECTS",
    "WRITABLE",
    "Dialect",
    "Maps",
    "Writable",
    "named_dialect",
    "read",
    "recognise",
    "unread_keys",
]
