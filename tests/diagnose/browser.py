"""A headless Chromium on a pipe, by the DevTools protocol: opens a page and asks about it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO, Any

NAMES = ("chromium", "chromium-browser", "chromium-headless-shell", "google-chrome")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions")
# Messages end in a zero byte; the browser reads file 3 and writes file 4.
START = 'exec "$0" "$@" 3<&{read} 4>&{write}'
COMPLAINTS = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")


def chromium() -> str:
    """The browser: CHROMIUM, or the first that is installed."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise FileNotFoundError("no Chromium here: apt-get install chromium, or set CHROMIUM")
    return found


@dataclass(slots=True, kw_only=True)
class Tab:
    """An open page: everything that it said and asked for since it was opened."""

    to_browser: IO[bytes]
    from_browser: IO[bytes]
    session: str | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a command of the protocol."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        self.to_browser.write(json.dumps(message).encode() + b"\0")
        self.to_browser.flush()
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
            self.events.append(answer)

    def open(self, url: str) -> None:
        """Goes to `url` and waits until everything is loaded."""
        self.call("Page.navigate", url=url)
        while not self.of("Page.loadEventFired"):
            self.events.append(self._next())

    def of(self, *methods: str) -> list[dict[str, Any]]:
        """The parameters of the events of these kinds."""
        return [event["params"] for event in self.events if event.get("method") in methods]

    def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def picture(self, file: Path) -> None:
        """The whole page as a PNG."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def _next(self) -> dict[str, Any]:
        message = bytearray()
        while (byte := self.from_browser.read(1)) != b"\0":
            assert byte, "the browser is gone"
            message += byte
        found: dict[str, Any] = json.loads(message)
        return found


@contextmanager
def tab(profile: Path, *, width: int, scheme: str) -> Iterator[Tab]:
    """A tab `width` pixels wide that prefers the colour `scheme`, in a browser of its own."""
    read, to_browser = os.pipe()
    from_browser, write = os.pipe()
    start = START.format(read=read, write=write)
    flags = (*FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe")
    with (
        os.fdopen(to_browser, "wb") as sending,
        os.fdopen(from_browser, "rb") as hearing,
        subprocess.Popen(
            ["bash", "-c", start, chromium(), *flags],
            pass_fds=(read, write),
            stderr=subprocess.DEVNULL,
        ) as process,
    ):
        os.close(read)
        os.close(write)
        page = Tab(to_browser=sending, from_browser=hearing)
        try:
            target = page.call("Target.createTarget", url="about:blank")["targetId"]
            held = page.call("Target.attachToTarget", targetId=target, flatten=True)
            page.session = held["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                page.call(f"{domain}.enable")
            sizes = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
            page.call("Emulation.setDeviceMetricsOverride", **sizes)
            feature = {"name": "prefers-color-scheme", "value": scheme}
            page.call("Emulation.setEmulatedMedia", features=[feature])
            yield page
        finally:
            process.kill()
