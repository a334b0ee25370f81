"""Every error that eyas raises on purpose.

    EyasError                 base; exit code 2
    ├── UsageError            a command line, option or argument that cannot be used
    ├── CheckpointError       a checkpoint that cannot be opened or trusted
    ├── NotADrafterError      a readable checkpoint that is no known drafter
    ├── TargetError           a target that cannot be opened or does not fit
    ├── EngineError           an engine or version that eyas does not know
    ├── ConversionError       a conversion that would not be exact
    ├── UnsupportedError      a known fact that this version of eyas cannot compute with
    ├── FetchError            a download that failed or came back wrong
    └── ProbeError            an engine that cannot be installed, started or asked

A message is one sentence: what is wrong, and where. `hint` is what to type next.
"""

from __future__ import annotations


def one_line(text: str) -> str:
    """`text` as part of one line: what would break it, or steer a terminal, is spelt out.

    Messages quote names and values as files have them, and a file may have anything.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class EyasError(Exception):
    """A failure that the user can act on: `message` says what and where, `hint` what to do."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        message = one_line(message)
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """Message and hint in one line."""
        return self.message if self.hint is None else f"{self.message}; {self.hint}"


class UsageError(EyasError):
    """A command line, option or argument that cannot be used."""


class CheckpointError(EyasError):
    """A checkpoint that cannot be opened or trusted."""


class NotADrafterError(EyasError):
    """A readable checkpoint that is no known drafter."""


class TargetError(EyasError):
    """A target that cannot be opened, or whose sizes do not fit the drafter."""


class EngineError(EyasError):
    """An engine or version that eyas does not know."""


class ConversionError(EyasError):
    """A conversion that would not be exact."""


class UnsupportedError(EyasError):
    """A known fact of a drafter that this version of eyas cannot compute with."""


class FetchError(EyasError):
    """A download that failed or came back wrong."""


class ProbeError(EyasError):
    """An engine that cannot be installed, started or asked."""


def reason_of(error: OSError) -> str:
    """Why the system refused, as the end of a sentence has it: ``no such file or directory``."""
    return (error.strerror or type(error).__name__).lower()
