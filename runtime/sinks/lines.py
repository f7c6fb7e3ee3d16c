"""A file of lines that grows: whole whatever happens, begun once, gone on with or divided where that is asked for."""

from __future__ import annotations

import contextlib
import io
import os
import re
from pathlib import Path

from ptedge.errors import OutputError
from ptedge.files import cut_last_line, write_error
from ptedge.folders import is_at


class LineFile:
    """A text file that holds whole lines only, whatever happens: each goes to the system at once, without a buffer.

    A kill loses no finished line. What a full disk leaves of a line is cut off again.
    """

    def __init__(self, path: Path, *, append: bool = False, rotate: int | None = None, head: str = "") -> None:
        """Begin the file, or go on with it.

        Args:
            path: of the file; one that is there is never begun anew.
            append: go on after its last whole line.
            rotate: bytes after which it gets a number in its name (``detections.1.jsonl``) and a new one is begun.
            head: first line of each file.

        Raises:
            OutputError: not writable; it is there and ``append`` is off; it has another head.
        """
        self.path = path
        self._rotate, self._head, self._append = rotate, head.encode("utf-8"), append
        try:
            self._file = self._open()
        except OSError as error:
            raise write_error(path, error) from None

    def _open(self) -> io.FileIO:
        if self._append and self.path.exists():
            cut_last_line(self.path)
        file = io.FileIO(self.path, "r+" if self._append and self.path.exists() else "x")
        if file.seek(0, os.SEEK_END) == 0:
            file.write(self._head)
        else:
            file.seek(0)
            if file.read(len(self._head)) != self._head:
                file.close()
                raise OutputError(f"{self.path} has other columns than this run. Choose another --out")
            file.seek(0, os.SEEK_END)
        return file

    def append(self, lines: str) -> None:
        """Add lines, all or none.

        Raises:
            OutputError: the disk is full, or somebody took the file away.
        """
        data = memoryview(lines.encode("utf-8", "backslashreplace"))
        if not data:
            return
        if not is_at(self.path, self._file.fileno()):
            raise OutputError(
                f"{self.path} was removed or replaced while the run was writing to it. Start the run anew"
            )
        start = self._file.tell()
        if self._rotate is not None and start > len(self._head) and start + len(data) > self._rotate:
            self._begin_next()
            start = self._file.tell()
        try:
            while data:  # a nearly full disk takes a part and refuses the rest
                data = data[self._file.write(data) or 0 :]
        except OSError as error:
            with contextlib.suppress(OSError):
                self._file.seek(start)
                self._file.truncate()
            raise write_error(self.path, error) from None

    def close(self) -> None:
        """Close the file."""
        try:
            self._file.close()
        except OSError as error:
            raise write_error(self.path, error) from None

    def _begin_next(self) -> None:
        """Give the full file its number, one above those that are there, and begin another."""
        numbers = [number for number, _ in rotated_files(self.path)]
        try:
            os.rename(self.path, self.path.with_suffix(f".{max(numbers, default=0) + 1}{self.path.suffix}"))
            self._file.close()
            self._file = self._open()
        except OSError as error:
            raise write_error(self.path, error) from None


def taken_away(path: Path) -> str:
    """The sentence for a file or folder that somebody removed, or put another in its place."""
    return f"{path} was removed or replaced while the run was writing to it. Start the run anew"


def rotated_files(path: Path) -> list[tuple[int, Path]]:
    """The full files that came before a file of lines: (number, file), oldest first.

    Args:
        path: ``detections.jsonl``; its elder ones are ``detections.1.jsonl``, ``detections.2.jsonl``...
    """
    form = re.compile(rf"{re.escape(path.stem)}\.([1-9]\d*){re.escape(path.suffix)}")
    found = [(form.fullmatch(entry.name), entry) for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    return sorted((int(match[1]), entry) for match, entry in found if match)
