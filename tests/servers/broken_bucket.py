"""A server of one object that breaks its answers off, or knows no ranges."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@contextlib.contextmanager
def broken_bucket(content: bytes, most: int, ranges: bool) -> Iterator[tuple[str, list[str]]]:
    """Serve an object.

    Args:
        content: of the object, whatever its key.
        most: bytes after which an answer ends, though more was promised.
        ranges: whether parts are sent when asked for.

    Yields:
        Address of the endpoint, and the ranges that were asked for.
    """
    asked: list[str] = []

    class Answer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            wanted = self.headers.get("Range", "")
            asked.append(wanted)
            start = int(wanted.removeprefix("bytes=").partition("-")[0]) if wanted and ranges else 0
            self.send_response(206 if start else 200)
            self.send_header("Content-Length", str(len(content) - start))
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.end_headers()
            self.wfile.write(content[start : start + most])
            self.close_connection = True

        def log_message(self, format: str, *args: object) -> None:
            """Nothing on the terminal."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
