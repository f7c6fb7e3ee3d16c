"""What brings pushed lines to another machine, and how it says that it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class RefusedError(Exception):
    """The other side does not want these lines, now or later."""


class LaterError(OSError):
    """The other side cannot take lines now.

    Attributes:
        after: seconds that it asks to wait; 0 when it does not say.
    """

    def __init__(self, text: str, after: float = 0.0) -> None:
        super().__init__(text)
        self.after = after


class Transport(Protocol):
    """Brings lines somewhere."""

    def send(self, lines: Sequence[bytes]) -> None:
        """Send lines.

        Args:
            lines: JSON documents.

        Raises:
            OSError: not now; try again. With :class:`LaterError` not before its time.
            RefusedError: not these.
        """
        ...

    def close(self) -> None:
        """End the connection; from any thread."""
        ...
