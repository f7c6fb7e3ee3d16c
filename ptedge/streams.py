"""stdin, stdout and stderr that outlive who is at their other end.

A log reader that goes away (logger, multilog, a container's log driver), a closed descriptor, a full disk under the log
or a terminal that is gone must not end a detection or a training of months. So everything that is said on stderr, by
whatever function or library, goes through one place here that loses the text instead of failing. What is written to
stdout is asked for, so there a failure is an error, told in one sentence, after all files are finished.
"""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys

from ptedge.errors import OutputError

STUCK = 1.0  # seconds that a reader who does not read is waited for
PIECE = 4096  # bytes that a pipe takes whole or not at all (PIPE_BUF)


def guard() -> None:
    """Put the guarded streams in place of the interpreter's own; streams that somebody has replaced stay.

    A descriptor that is closed is opened on nothing: the next file would get its number, and with it the messages of
    C libraries.
    """
    for number in (0, 1, 2):
        _open_if_closed(number)
    if sys.stderr is None or sys.stderr is sys.__stderr__:
        sys.stderr = _text(LostOutput(2), sys.stderr, "backslashreplace")
    if sys.stdout is None or sys.stdout is sys.__stdout__:
        sys.stdout = _text(ToldOutput(1), sys.stdout, "surrogateescape")


class _Output(io.RawIOBase):
    """Bytes to a descriptor that stays open."""

    def __init__(self, number: int) -> None:
        self._number = number

    def writable(self) -> bool:
        """It is."""
        return True

    def fileno(self) -> int:
        """The descriptor."""
        return self._number

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return os.isatty(self._number)


class LostOutput(_Output):
    """Bytes to a descriptor; what does not get through is dropped, and nobody has to wait for it for long.

    Attributes:
        lost: bytes that were dropped.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._stuck = False
        self._waits = _may_wait(number)
        self.lost = 0

    def write(self, data: bytes | memoryview) -> int:  # type: ignore[override]
        """Write all, or drop what does not go."""
        view = memoryview(data).cast("B")
        done = 0
        try:
            while done < len(view) and self._ready():
                done += os.write(self._number, view[done : done + PIECE])
        except OSError:
            pass
        self.lost += len(view) - done
        return len(view)

    def _ready(self) -> bool:
        """Whether writing would not wait: a reader who has stopped reading gets a second, once."""
        if not self._waits:
            return True
        try:
            _, ready, _ = select.select([], [self._number], [], 0.0 if self._stuck else STUCK)
        except (OSError, ValueError):
            return True
        self._stuck = not ready
        return bool(ready)


class ToldOutput(_Output):
    """Bytes to a descriptor; what cannot be written is an error that a user understands.

    A reader who has seen enough (``| head``) remains a ``BrokenPipeError``, which ends a command without a word.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self._failed = False

    def write(self, data: bytes | memoryview) -> int:  # type: ignore[override]
        """Write.

        Raises:
            OutputError: it does not go; the rest is dropped, so that this is said once.
        """
        if self._failed:
            return len(data)
        try:
            return self._write(data)
        except BrokenPipeError:
            self._failed = True
            raise
        except OSError as error:
            self._failed = True
            full = error.errno == errno.ENOSPC
            what = "the disk is full" if full else error.strerror or str(error)
            raise OutputError(f"cannot write to stdout: {what}. Files that were written are whole") from None

    def _write(self, data: bytes | memoryview) -> int:
        while True:
            try:
                return os.write(self._number, data)
            except BlockingIOError:  # whoever began this process has set it so
                select.select([], [self._number], [])


def _open_if_closed(number: int) -> None:
    try:
        os.fstat(number)
    except OSError:
        opened = os.open(os.devnull, os.O_RDWR)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)


def _may_wait(number: int) -> bool:
    """Whether writing may wait for a reader; a terminal that was halted (Ctrl-S) is left to its user."""
    try:
        mode = os.fstat(number).st_mode
    except OSError:
        return False
    return os.name == "posix" and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


def _text(raw: io.RawIOBase, before: io.TextIOBase | None, errors: str) -> io.TextIOWrapper:
    """A text stream on raw bytes, with the encoding that the interpreter has chosen."""
    encoding = getattr(before, "encoding", None) or "utf-8"
    line_wise = raw.isatty() or isinstance(raw, LostOutput)
    return io.TextIOWrapper(
        io.BufferedWriter(raw), encoding, getattr(before, "errors", None) or errors, line_buffering=line_wise
    )
