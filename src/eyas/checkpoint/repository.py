"""A Hub repository's files, read in ranges: the header of a shard, the bytes of one tensor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from eyas.checkpoint.answer import connection_error, failure, refusal
from eyas.checkpoint.header import PREFIX, TensorHeader, header_length, parse_headers
from eyas.errors import CheckpointError, FetchError

# The bound of huggingface_hub's own reader (constants.SAFETENSORS_MAX_HEADER_LENGTH); the largest
# header of Kimi-K2.5 has half a megabyte.
MAX_HEADER = 25_000_000
ANSWER_SECONDS = 10
_CONTENT_RANGE = re.compile(r"bytes (?:(\d{1,19})-\d{1,19}|\*)/(\d{1,19})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    """A repository at a commit, and the names of all its files."""

    name: str
    commit: str
    files: frozenset[str]

    def headers(self, file: str) -> tuple[dict[str, TensorHeader], int]:
        """The tensor headers of `file` and its size; two requests, and no byte of a weight.

        Raises CheckpointError for a file that is not sound, FetchError when the Hub fails.
        """
        where = f"{self.name}/{file}"
        with self._opened(file, 0, PREFIX) as (size, pieces):
            prefix = b"".join(pieces)
        length = header_length(prefix, size=size, where=where, most=MAX_HEADER)
        text = b"".join(self.chunks(file, PREFIX, length))
        return parse_headers(text, file=file, size=size, where=where), size

    def chunks(self, file: str, start: int, nbytes: int) -> Iterator[bytes]:
        """The `nbytes` bytes of `file` from `start` on, in pieces."""
        if not nbytes:
            return
        with self._opened(file, start, nbytes) as (size, pieces):
            if size < start + nbytes:
                raise CheckpointError(
                    f"{self.name}/{file} has {size} bytes where {start + nbytes} are needed",
                    hint="try again, or export it again",
                )
            yield from pieces

    @contextmanager
    def _opened(self, file: str, start: int, nbytes: int) -> Iterator[tuple[int, Iterator[bytes]]]:
        """The size of `file`, and its bytes from `start` on: `nbytes`, or fewer where it ends."""
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

        what = f"{file} of {self.name}"
        stop = start + nbytes
        headers = build_hf_headers()
        headers |= {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
        url = hf_hub_url(self.name, file, revision=self.commit)
        try:
            with get_session().stream(
                "GET", url, headers=headers, timeout=ANSWER_SECONDS
            ) as response:
                size = _size(response.status_code, response.headers, start, what)
                yield size, _exactly(response.iter_raw(), min(stop, size) - start, what)
        except (connection_error(), OSError) as error:
            raise failure(error, what) from None


def _size(status: int, headers: Mapping[str, str], start: int, what: str) -> int:
    """The size of the whole file; raises for an answer that is not the range asked for."""
    if status == 200:
        raise FetchError(
            f"the server does not answer in ranges: it would send all of {what}",
            hint="fetch it with hf download, and name the directory",
        )
    if status not in (206, 416):
        raise refusal(status, headers, what)
    match = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
    if match is None or (status == 206 and match[1] != str(start)):
        raise FetchError(
            f"the server answered with another range of {what} than it was asked for",
            hint="fetch it with hf download, and name the directory",
        )
    return int(match[2])


def _exactly(pieces: Iterator[bytes], nbytes: int, what: str) -> Iterator[bytes]:
    left = max(nbytes, 0)
    if not left:
        return
    for piece in pieces:
        left -= len(piece)
        if left < 0:
            break
        yield piece
    if left:
        raise FetchError(
            f"the server sent {'more' if left < 0 else 'fewer'} bytes of {what} than it announced",
            hint="try again",
        )
