"""``ptedge run --serve``: the live page, its pictures and numbers, and Prometheus' ``/metrics``, over HTTP.

By default only this machine can connect. Any other address needs a token. Nothing can be changed from outside: there is
only GET, of five fixed names. What is asked and whether it may be is settled before a place is taken, every request has
a deadline from its first byte to the last of its answer, and who waits takes no thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources

from ptedge.errors import InputError

from ..options import ServeOptions
from .pages import FORBIDDEN, UNAUTHORISED, Answer, Pages
from .request import LONGEST_HEAD, BadRequestError, Request, parse_request
from .status import RunStatus
from .view import LiveView

PLACES = 64  # requests that are let in and being answered; more get 503
OPEN = 256  # connections; of more, the one that has sent nothing for the longest goes
BACKLOG = 128  # connections that the system holds until they are taken
LINGER = 0.5  # seconds that a visitor has to read the last answer before what else it sent is cut off
HEAD_TIME = 10.0  # seconds for a whole request, and for the next one on the same connection
ANSWER_TIME = 20.0  # seconds to read an answer to its last byte
BUSY_AFTER = 1  # seconds after which a visitor may ask again when all places are taken

# what a browser may do with the page: run what is in it, ask this server, and nothing else
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
REASONS = {
    **{200: "OK", 204: "No Content", 400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found"},
    **{405: "Method Not Allowed", 413: "Content Too Large", 414: "URI Too Long"},
    **{431: "Request Header Fields Too Large", 500: "Internal Server Error", 503: "Service Unavailable"},
    505: "HTTP Version Not Supported",
}


class LiveServer:
    """Serves until closed, on a thread of its own.

    Attributes:
        address: to open in a browser, without the token.
    """

    def __init__(self, options: ServeOptions, status: RunStatus, view: LiveView, names: Sequence[str]) -> None:
        """Listen.

        Args:
            options: where, and for whom.
            status: of the run.
            view: its pictures.
            names: of the sources.

        Raises:
            InputError: the address is in use or not of this machine.
        """
        try:
            listener = _listen(options.host, options.port)
        except OSError as error:
            where = f"{options.shown_host}:{options.port}"
            raise InputError(f"cannot serve on {where}: {error.strerror or error}. Choose another port") from None
        self.address = f"http://{options.shown_host}:{listener.getsockname()[1]}/"
        keys = {name: name if len(names) > 1 else "" for name in names}
        page = resources.files(__package__).joinpath("live.html").read_bytes()
        self._drawers = ThreadPoolExecutor(2, "ptedge-page")
        self._loop = asyncio.new_event_loop()
        self._door = _Door(listener, Pages(status, view, keys, options.token, page, self._drawers))
        self._thread = threading.Thread(target=self._run, name="ptedge-serve", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End; open connections are cut."""
        self._loop.call_soon_threadsafe(self._door.closed.set)
        self._thread.join()
        self._drawers.shutdown(wait=False, cancel_futures=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._door.serve())


class _Door:
    """Takes connections in, reads what they ask, and answers.

    Attributes:
        closed: set to end.
    """

    def __init__(self, listener: socket.socket, pages: Pages) -> None:
        self.closed = asyncio.Event()
        self._listener, self._pages = listener, pages
        self._answering = 0
        # connections that have not asked yet, the one that has waited longest first
        self._asking: dict[asyncio.StreamWriter, None] = {}
        self._open = 0
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self) -> None:
        """Until closed."""
        server = await asyncio.start_server(self._visit, sock=self._listener, limit=LONGEST_HEAD, backlog=BACKLOG)
        await self.closed.wait()
        server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for _ in range(2):  # transports say goodbye in the rounds after that
            await asyncio.sleep(0)

    async def _visit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One connection, from its first request to its last; never raises."""
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open += 1
        writer.transport.set_write_buffer_limits(0)  # so that drain() waits for the last byte
        try:
            while await self._answer_one(reader, writer):
                pass
            writer.write_eof()
            await asyncio.wait_for(reader.read(LONGEST_HEAD), LINGER)
        except (OSError, TimeoutError, asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # a visitor who leaves in the middle, or is too slow, is no news
        finally:
            self._asking.pop(writer, None)
            self._open -= 1
            self._tasks.discard(task)
            writer.transport.abort() if writer.transport.get_write_buffer_size() else writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Read a request and answer it; whether another may follow."""
        self._asking[writer] = None
        if self._open > OPEN:
            longest = next(iter(self._asking))
            del self._asking[longest]
            longest.transport.abort()
        try:
            request = await asyncio.wait_for(_read(reader), HEAD_TIME)
        except BadRequestError as error:
            headers = {"Allow": "GET"} if error.code == 405 else {}
            await self._send(writer, Answer(error.code, "text/plain", f"{error}\n".encode(), headers), stays=False)
            return False
        finally:
            self._asking.pop(writer, None)
        answer = self._judge(request)
        if answer is None:
            self._answering += 1
            try:
                await self._send(writer, await self._pages.answer(request), request.stays)
            finally:
                self._answering -= 1
        else:
            await self._send(writer, answer, request.stays)
        return request.stays

    def _judge(self, request: Request) -> Answer | None:
        """What keeps a visitor out; ``None`` lets in."""
        if request.method != "GET":
            return Answer(405, "text/plain", b"only GET\n" if request.method != "HEAD" else b"", {"Allow": "GET"})
        if not self._pages.allowed(request):
            return UNAUTHORISED if self._pages.locked else FORBIDDEN
        if self._answering >= PLACES:
            return Answer(503, "text/plain", b"too many visitors\n", {"Retry-After": str(BUSY_AFTER)})
        return None

    async def _send(self, writer: asyncio.StreamWriter, answer: Answer, stays: bool) -> None:
        fields = {**HEADERS, **answer.headers}
        if answer.code != 204:
            fields |= {"Content-Type": answer.kind, "Content-Length": str(len(answer.body))}
        fields["Connection"] = "keep-alive" if stays else "close"
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"HTTP/1.1 {answer.code} {REASONS[answer.code]}\r\n{head}\r\n".encode("latin-1") + answer.body)
        await asyncio.wait_for(writer.drain(), ANSWER_TIME)


async def _read(reader: asyncio.StreamReader) -> Request:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise BadRequestError(431, f"a request may have {LONGEST_HEAD} bytes") from None
    return parse_request(head)


def _listen(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except BaseException:
        listener.close()
        raise
    return listener
