"""A Hub on this machine: what huggingface_hub asks for, from files in memory or on disk.

It counts what it was asked and how many bytes it sent, and misbehaves on request.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" * 6 + "abcd"
REPOSITORY = "org/drafter"

Files = dict[str, bytes | Path]

_DESCRIBED = re.compile(r"/api/models/(?P<repo>[^/]+/[^/]+)(?:/revision/(?P<revision>.+))?")
_LISTED = re.compile(r"/api/models/(?P<repo>[^/]+/[^/]+)/tree/(?P<revision>[^/]+)")
_RESOLVED = re.compile(r"/(?P<repo>[^/]+/[^/]+)/resolve/(?P<revision>[^/]+)/(?P<file>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request, and the number of bytes of the body that answered it."""

    method: str
    path: str
    range: str | None
    token: str | None
    sent: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """An answer that is not what was asked for; `path` is a pattern of the paths that get it."""

    path: str
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    cut: int = 0  # bytes that are announced and not sent
    whole: bool = False  # the file from its start, whatever range was asked for


@dataclass(slots=True, kw_only=True)
class Hub:
    """Repositories, what was asked for, and what goes wrong."""

    files: Files  # of org/drafter
    others: dict[str, Files] = field(default_factory=dict)
    tags: tuple[str, ...] = ("main", "v1.0")
    describes: bytes | None = None  # instead of the description of the repository
    faults: list[Fault] = field(default_factory=list)
    storage: str | None = None  # the address of a store that large files are redirected to
    asked: list[Asked] = field(default_factory=list)
    address: str = ""

    def files_of(self, repo: str) -> Files | None:
        """The files of a repository; None where there is none of that name."""
        return self.files if repo == REPOSITORY else self.others.get(repo)

    def sent(self, name: str) -> int:
        """The bytes of a file that were sent, by the Hub or its store."""
        return sum(asked.sent for asked in self.asked if asked.path.endswith(name))

    def ranges(self, name: str) -> list[str | None]:
        """The ranges of a file that were asked for, in order."""
        return [a.range for a in self.asked if a.path.endswith(name) and a.method == "GET"]


@contextmanager
def serve(hub: Hub) -> Iterator[Hub]:
    """`hub` at an address of its own, until the block ends."""

    class Handler(_Handler):
        served = hub

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    served: Hub
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Nothing: the test's output is pytest's."""

    def _answer(self) -> None:
        path = unquote(urlsplit(self.path).path)
        fault = next((f for f in self.served.faults if re.search(f.path, path)), None)
        if fault is not None and fault.status is not None:
            self._send(fault.status, fault.headers, fault.body)
        elif path == "/api/agent-harnesses":  # the library's own business, at times
            self._send(404, {}, b"", noted=False)
        elif match := _LISTED.fullmatch(path):
            self._list(match["repo"])
        elif match := _DESCRIBED.fullmatch(path):
            self._describe(match["repo"], match["revision"] or "main")
        elif path.startswith("/store/"):
            self._file(self.served.files, path.removeprefix("/store/"), fault)
        elif match := _RESOLVED.fullmatch(path):
            self._resolve(match["repo"], match["revision"], match["file"], fault)
        else:
            self._send(404, {}, b"")

    def _describe(self, repo: str, revision: str) -> None:
        files = self.served.files_of(repo)
        if files is None:
            self._send(404, {"X-Error-Code": "RepoNotFound"}, b"")
        elif revision not in (*self.served.tags, COMMIT):
            self._send(404, {"X-Error-Code": "RevisionNotFound"}, b"")
        elif self.served.describes is not None:
            self._send(200, {}, self.served.describes)
        else:
            siblings = [{"rfilename": name} for name in files]
            told = {"id": repo, "sha": COMMIT, "siblings": siblings}
            self._send(200, {"Content-Type": "application/json"}, json.dumps(told).encode())

    def _list(self, repo: str) -> None:
        files = self.served.files_of(repo) or {}
        entries = [
            {"type": "file", "path": name, "size": _size(content), "oid": f"{i:040x}"}
            for i, (name, content) in enumerate(files.items())
        ]
        self._send(200, {"Content-Type": "application/json"}, json.dumps(entries).encode())

    def _resolve(self, repo: str, revision: str, file: str, fault: Fault | None) -> None:
        files = self.served.files_of(repo) or {}
        if revision not in (*self.served.tags, COMMIT) or file not in files:
            headers = {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": COMMIT}
            self._send(404, headers, b"")
        elif self.served.storage is not None and file.endswith(".safetensors"):
            headers = {
                "Location": f"{self.served.storage}/store/{file}",
                "X-Repo-Commit": COMMIT,
                "X-Linked-ETag": f'"{file}"',
                "X-Linked-Size": str(_size(files[file])),
            }
            self._send(302, headers, b"")
        else:
            self._file(files, file, fault)

    def _file(self, files: Files, file: str, fault: Fault | None) -> None:
        content = files[file]
        size = _size(content)
        headers = {"X-Repo-Commit": COMMIT, "ETag": f'"{file}"', "Accept-Ranges": "bytes"}
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if self.command == "HEAD":
            self._send(200, headers | {"Content-Length": str(size)}, b"")
        elif asked is None or (fault is not None and fault.whole):
            self._send(200, headers, _bytes(content, 0, size))
        elif int(asked[1]) >= size:
            self._send(416, headers | {"Content-Range": f"bytes */{size}"}, b"")
        else:
            start, stop = int(asked[1]), min(int(asked[2]) + 1, size)
            headers["Content-Range"] = f"bytes {start}-{stop - 1}/{size}"
            headers["Content-Length"] = str(stop - start)
            if fault is not None:
                headers |= fault.headers
                stop -= fault.cut
            self._send(206, headers, _bytes(content, start, stop))

    def _send(
        self, status: int, headers: Mapping[str, str], body: bytes, *, noted: bool = True
    ) -> None:
        # No connection outlives its answer, so that no thread outlives its test.
        announced = {"Content-Length": str(len(body)), "Connection": "close"} | dict(headers)
        asked = Asked(
            method=self.command,
            path=self.path,
            range=self.headers.get("Range"),
            token=self.headers.get("Authorization"),
            sent=0 if self.command == "HEAD" else len(body),
        )
        if noted:
            self.served.asked.append(asked)
        self.send_response(status)
        for name, value in announced.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            with suppress(ConnectionError):  # a client may hang up on what it did not ask for
                self.wfile.write(body)


def _size(content: bytes | Path) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def _bytes(content: bytes | Path, start: int, stop: int) -> bytes:
    if isinstance(content, bytes):
        return content[start:stop]
    with content.open("rb") as opened:
        opened.seek(start)
        return opened.read(stop - start)
