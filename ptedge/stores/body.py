"""The body of a request that is sent at a limited rate."""

from __future__ import annotations

import io
from typing import Any

from ptedge.stores.pace import Pace


class PacedBody(io.BytesIO):
    """Bytes to be sent. They may be read before for a signature, which costs no time of the line.

    Args:
        content: to send.
        pace: to keep to.
    """

    def __init__(self, content: bytes, pace: Pace) -> None:
        super().__init__(content)
        self.sending = False
        self._pace = pace

    def read(self, size: int | None = -1, /) -> bytes:
        """As of any file; while sending, not sooner than the pace allows."""
        piece = super().read(size)
        if self.sending:
            self._pace.spend(len(piece))
        return piece


def begin_sending(request: Any, **_: object) -> None:
    """Told by the client when all is signed and the request goes out.

    Args:
        request: of botocore.
    """
    if isinstance(request.body, PacedBody):
        request.body.sending = True
