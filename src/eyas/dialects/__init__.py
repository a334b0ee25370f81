"""Dialects: how each producer writes a drafter, read to a DraftSpec and written from one.

A dialect is one module. Adding one is adding its file and its name to DIALECTS.
"""

from eyas.dialects.dialect import Dialect
from eyas.dialects.recognition import DIALECTS, read, recognise, unread_keys

__all__ = ["DIALECTS", "Dialect", "read", "recognise", "unread_keys"]
