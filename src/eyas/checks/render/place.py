"""Where a finding is, as other programs name places: a file of the subject, a path, a URI."""

from __future__ import annotations

from pathlib import Path, PurePath
from urllib.parse import quote

from eyas.checkpoint import SINGLE_FILES
from eyas.checks.finding import Finding
from eyas.checks.report import Report, Subject

HUB = "https://huggingface.co"


def file_of(found: Finding, report: Report) -> str:
    """The file of the subject that `found` is about.

    A finding about a parameter of an engine, or about its launch, is about no file; what asks for
    the parameter is the config, the first of the subject's files.
    """
    file, names = found.place.partition(" :: ")[0], [f.name for f in report.subject.files]
    return file if file in names or not names else names[0]


def path_of(subject: Subject, file: str) -> str | None:
    """`file` of `subject` as a path with slashes; None where the subject is on the Hub."""
    if subject.revision is not None:
        return None
    at = Path(subject.path)
    return (at.parent / file if subject.path.endswith(SINGLE_FILES) else at / file).as_posix()


def uri_of(subject: Subject, file: str) -> str:
    """The URI of `file`: relative where the subject's path is, absolute otherwise."""
    path = path_of(subject, file)
    if path is None:
        repo = subject.path.removeprefix("hf://").partition("@")[0]
        return f"{HUB}/{quote(repo)}/blob/{subject.revision}/{quote(file)}"
    return PurePath(path).as_uri() if PurePath(path).is_absolute() else quote(path)
