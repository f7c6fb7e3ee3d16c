"""What there is to see, by path, and for whom."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field

from ..options import is_loopback
from .request import Request
from .status import CONTENT_TYPE, RunStatus
from .view import LiveView

PICTURE_WAIT = 2.0  # seconds that a request for a picture waits for a newer one
LOOK_EVERY = 0.05  # seconds between its looks


@dataclass(frozen=True)
class Answer:
    """What a visitor gets.

    Attributes:
        code: HTTP status.
        kind: content type.
        body: content.
        headers: further ones.
    """

    code: int
    kind: str
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


NOT_FOUND = Answer(404, "text/plain", b"not found\n")
FORBIDDEN = Answer(403, "text/plain", b"not for this host name\n")
UNAUTHORISED = Answer(401, "text/plain", b"a token is needed: open /?token=TOKEN\n", {"WWW-Authenticate": "Bearer"})


class Pages:
    """The five names, and who may see them.

    Attributes:
        locked: a token is needed.
    """

    def __init__(
        self,
        status: RunStatus,
        view: LiveView,
        keys: Mapping[str, str],
        token: str | None,
        page: bytes,
        drawers: Executor,
    ) -> None:
        """Put together.

        Args:
            status: of the run.
            view: its pictures.
            keys: name of a source -> its name in the view.
            token: that visitors must show; ``None`` for none.
            page: the live page.
            drawers: draw and encode pictures.
        """
        self.locked = token is not None
        self._status, self._view, self._keys, self._page, self._drawers = status, view, keys, page, drawers
        self._token = _digest(token or "")

    def allowed(self, request: Request) -> bool:
        """Whether a visitor may come in.

        Without a token, the address in the browser must be this machine: a page from elsewhere may give its own name
        the address 127.0.0.1 and so reach servers that listen there alone. Tokens are compared by their hashes, in a
        time that tells neither their content nor their length.
        """
        if self.locked:
            return request.offered is not None and hmac.compare_digest(_digest(request.offered), self._token)
        return is_loopback(request.host)

    async def answer(self, request: Request) -> Answer:
        """Answer one who may come in; a fault of ours is an answer, too."""
        try:
            return await self._page_of(request)
        except Exception as error:
            return Answer(500, "text/plain", f"{type(error).__name__}\n".encode())

    async def _page_of(self, request: Request) -> Answer:
        path = request.path
        if path == "/":
            return Answer(200, "text/html; charset=utf-8", self._page)
        if path == "/status.json":
            document = {**self._status.to_json(), "pictures": self._view.numbers(self._keys)}
            return Answer(200, "application/json; charset=utf-8", json.dumps(document, ensure_ascii=False).encode())
        if path == "/metrics":
            return Answer(200, CONTENT_TYPE, self._status.metrics().encode())
        if path == "/frame.jpg":
            return await self._picture(request.query)
        return Answer(204, "image/x-icon", b"") if path == "/favicon.ico" else NOT_FOUND

    async def _picture(self, query: Mapping[str, list[str]]) -> Answer:
        """The newest picture of a source; nobody is held up while this waits for one."""
        source = query.get("source", [next(iter(self._keys))])[0]
        after = query.get("after", ["-1"])[0]
        plain = after.removeprefix("-")
        if source not in self._keys or not (plain.isascii() and plain.isdecimal()) or len(after) > 18:
            return NOT_FOUND
        key, loop = self._keys[source], asyncio.get_running_loop()
        end = loop.time() + (0.0 if query.get("wait") == ["0"] else PICTURE_WAIT)
        while not self._view.has_newer(key, int(after)):
            if self._view.ended or loop.time() >= end:
                return Answer(204, "image/jpeg", b"")
            await asyncio.sleep(LOOK_EVERY)
        picture = await loop.run_in_executor(self._drawers, self._view.picture, key, int(after), 0.0)
        if picture is None:
            return Answer(204, "image/jpeg", b"")
        return Answer(200, "image/jpeg", picture.jpeg, {"X-Frame-Number": str(picture.number)})


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
