"""A real browser without a window, driven over two pipes: what a page shows, and a picture of it."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
# the browser expects the protocol on its file descriptors 3 and 4
LAUNCH = """
import os, sys
read, write = (os.dup(int(number)) for number in sys.argv[1:3])
read, write = os.dup(read), os.dup(write)
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find_browser() -> str | None:
    """Path of a browser; None where there is none."""
    return next((path for path in map(shutil.which, PROGRAMS) if path), None)


class Browser:
    """One page in one browser."""

    def __init__(self, folder: Path) -> None:
        """Start with an empty profile in ``folder``."""
        program = find_browser()
        assert program is not None
        read, self._to = os.pipe()
        self._from, write = os.pipe()
        command = [
            *(sys.executable, "-c", LAUNCH, str(read), str(write), program, "--headless", "--no-sandbox"),
            *("--disable-gpu", "--hide-scrollbars", "--no-proxy-server", "--remote-debugging-pipe"),
            f"--user-data-dir={folder}",
        ]
        nowhere = subprocess.DEVNULL
        self._process = subprocess.Popen(command, pass_fds=(read, write), stdout=nowhere, stderr=nowhere)
        os.close(read)
        os.close(write)
        self._rest, self._number, self._session = b"", 0, ""
        self._wanted: tuple[str, ...] = ()
        self._events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._to)
        self._process.kill()
        self._process.wait()
        os.close(self._from)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A call of the DevTools protocol; its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                data = os.read(self._from, 1 << 16)
                assert data, "the browser has ended"
                self._rest += data
            text, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(text)
            if answer.get("method") in self._wanted:
                self._events.append(answer)
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def collect(self, *events: str) -> list[dict[str, Any]]:
        """A list that events of these names are put into from now on, as they are read."""
        self._wanted = events
        for domain in {event.partition(".")[0] for event in events}:
            self.call(f"{domain}.enable")
        return self._events

    def open(self, address: str, width: int = 1280, height: int = 860, dark: bool = False) -> None:
        """Go to a page."""
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=address)

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression: str, seconds: float = 30) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.1)

    def screenshot(self, path: Path) -> None:
        """Write what is visible as PNG."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
