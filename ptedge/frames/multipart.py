"""Taking pictures out of ``multipart/x-mixed-replace``, the way cameras send Motion JPEG over HTTP."""

from __future__ import annotations

import re

from ptedge.frames.formats.jpeg import JPEG_END, JPEG_START, jpeg_end, jpeg_has_end

LONGEST_PART = 64 << 20  # bytes; more without a boundary is no picture
LONGEST_HEAD = 64 << 10

LONGEST_BOUNDARY = 200

# a line before what looks like the head of a part, or directly before a picture: the boundary, whatever was announced
_HEAD = re.compile(
    rb"(?:\A|\n)(?:-*([\x20-\x39\x3b-\x7e]{1,200})\r?\n(?:[^\r\n]{1,500}\r?\n){0,20}?content-(?:type|length)[ \t]*:"
    rb"|--([^\r\n]{0,200})\r?\n\r?\n\xff\xd8\xff)",
    re.IGNORECASE,
)
_UNKNOWN_REACH = 16 << 10  # bytes kept while no boundary is known
_PICTURES_BEFORE_RAW = 3  # beginnings of pictures without any boundary, so that two were whole
_LENGTH = re.compile(rb"(?im)^content-length[ \t]*:[ \t]*(\d{1,12})[ \t]*\r?$")


class MultipartParser:
    """Cuts a stream of bytes into the bodies of its parts, however the bytes are cut into pieces on their way.

    A part is given out as soon as it is whole, not only when the next one begins, which would add the time between two
    frames to the age of each. What cameras get wrong is borne: a boundary announced with dashes, none announced or
    another than is sent, no boundary at all (then the marks of JPEG count), a missing or wrong length, bytes between
    parts, bare line feeds. A damaged part comes out as what is there of it, so that who decodes it can count it.
    """

    def __init__(self, boundary: str | None) -> None:
        """Start before the first part.

        Args:
            boundary: as the header of the stream names it; ``None`` takes any line that begins with two dashes.
        """
        name = (boundary or "")[:LONGEST_BOUNDARY].strip().strip('"').lstrip("-")
        self._expect(name.encode("latin-1", "replace"))
        self._known = False  # a boundary has been seen
        self._raw = False  # there is none: pictures follow each other
        self._starts = 0  # of pictures, while none has been seen
        self._buffer = bytearray()
        self._in_body = False
        self._length: int | None = None
        self._searched = 0  # the buffer holds no delimiter that begins before

    def _expect(self, name: bytes) -> None:
        line = rb"-*" + re.escape(name) if name else rb"--[^\r\n]*"
        line += rb"(?:--)?[ \t]*\r?\n"
        self._delimiter = re.compile(rb"(?:\A|\r?\n)" + line)
        self._next = re.compile(line) if name else self._delimiter  # after garbage it may be in the middle of a line
        self._reach = len(name) + 64  # a delimiter that is only begun lies within so many bytes of the end

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes.

        Args:
            data: any number of bytes.

        Returns:
            Bodies of the parts that are complete now, in order.
        """
        self._buffer += data
        bodies: list[bytes] = []
        while True:
            if not self._in_body and not self._enter_part():
                return bodies
            body = self._take_body()
            if body is None:
                return bodies
            bodies.append(body)

    def _enter_part(self) -> bool:
        """Drop everything up to the end of the next part's head; False while it has not arrived."""
        if self._raw:
            return self._enter_picture()
        found = self._next.search(self._buffer)
        if found is None and not self._known:
            other = _HEAD.search(self._buffer)
            if other is not None:
                self._expect((other[1] or other[2] or b"").strip())
                found = self._next.search(self._buffer, max(0, other.start()))
        if found is None:
            dropped = len(self._buffer) - (self._reach if self._known else min(LONGEST_HEAD, _UNKNOWN_REACH))
            if not self._known:
                self._starts += self._buffer[: max(0, dropped)].count(b"\xff\xd8\xff")
                here = self._buffer.count(b"\xff\xd8\xff")
                if self._starts + here >= _PICTURES_BEFORE_RAW and here:
                    self._raw = True
                    return self._enter_picture()
            del self._buffer[: max(0, dropped)]
            return False
        self._known = True
        end = re.compile(rb"\r?\n\r?\n").search(self._buffer, found.end() - 2)
        if end is None:
            if len(self._buffer) - found.end() > LONGEST_HEAD:  # no head; look for the next delimiter
                del self._buffer[: found.end()]
                return self._enter_part()
            return False
        length = _LENGTH.search(self._buffer, found.end(), end.end())
        self._length = int(length[1]) if length else None
        del self._buffer[: end.end()]
        self._in_body, self._searched = True, 0
        return True

    def _enter_picture(self) -> bool:
        """Drop everything up to the start of the next picture; False while it has not arrived."""
        start = self._buffer.find(b"\xff\xd8\xff")
        del self._buffer[: start if start >= 0 else max(0, len(self._buffer) - 2)]
        self._in_body, self._length, self._searched = start >= 0, None, 0
        return start >= 0

    def _take_body(self) -> bytes | None:
        """The body of the part at the head of the buffer; None while it is not complete."""
        if self._length is not None and self._length <= len(self._buffer) and self._length_is_right(self._length):
            return self._cut(self._length, self._length)
        found = None if self._raw else self._delimiter.search(self._buffer, self._searched)
        if found is not None:
            return self._cut(found.start(), found.start())
        self._searched = max(0, len(self._buffer) - self._reach)
        if self._raw and (end := jpeg_end(self._buffer)) >= 0:
            return self._cut(end, end)
        if self._length is None and self._ends_as_jpeg(len(self._buffer)) and jpeg_has_end(self._buffer):
            return self._cut(len(self._buffer), len(self._buffer)).rstrip(b"\r\n")
        if len(self._buffer) > LONGEST_PART:
            self._cut(0, len(self._buffer))
            return b""
        return None

    def _length_is_right(self, length: int) -> bool:
        """Whether the announced length reaches to the end of a JPEG picture, or to a boundary for other kinds."""
        if self._buffer[:2] == JPEG_START:
            return self._ends_as_jpeg(length)
        return bytes(self._buffer[length : length + 1]) in (b"", b"\r", b"\n", b"-")

    def _ends_as_jpeg(self, length: int) -> bool:
        tail = bytes(self._buffer[max(0, length - 64) : length]).rstrip(b"\r\n\0")  # some pad with zeros
        return tail.endswith(JPEG_END)

    def _cut(self, length: int, used: int) -> bytes:
        body = bytes(self._buffer[:length])
        del self._buffer[:used]
        self._in_body, self._searched = False, 0
        return body
