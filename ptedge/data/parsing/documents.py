"""Files of annotations as text, lines, JSON or XML: one rule for encodings, one sentence for each fault.

Text is UTF-8, or UTF-16 or UTF-32 as its byte-order mark or the zeros at its start tell; XML may name its encoding.
Anything else is refused: a guessed encoding is a guessed class name.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import stat
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ptedge.errors import InputError

MOST_BYTES = 64 << 20  # of a text or XML file; the longest list of a public data set has 8 MB
MOST_JSON_BYTES = 4 << 30  # one JSON for a whole data set: 0.5 GB for COCO, 1.4 GB for BDD100k

_XML_ENCODING = re.compile(rb"""^\s*<\?xml[^>]*?\bencoding\s*=\s*["']([A-Za-z][A-Za-z0-9._-]{0,39})["']""")


def read_text(path: Path, most: int = MOST_BYTES) -> str:
    """A file as text, without its byte-order mark.

    Args:
        path: file.
        most: bytes it may have.

    Raises:
        InputError: unreadable, no regular file, too large, or of another encoding; the text says which byte.
    """
    return _decoded(path, _read_bytes(path, most), None)


def read_lines(path: Path) -> list[str]:
    """The lines of a text file without white space at their ends, empty ones included, so that line numbers are true.

    Raises:
        InputError: as :func:`read_text`.
    """
    # not splitlines(), which also cuts at characters that a name may hold
    return [line.strip() for line in re.split(r"\r\n|\n|\r", read_text(path))]


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Make many objects without the garbage collector looking through all of them again and again.

    It took as long as parsing itself. What annotations become holds no circles, so nothing waits for it.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def load_json(path: Path, keep: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Read a JSON file the user named.

    Args:
        path: file.
        keep: what to keep of each object, as soon as it is read; ``None`` for all.

    Raises:
        InputError: as :func:`read_text`, or no JSON.
    """
    try:
        with collector_paused():
            return json.loads(read_text(path, MOST_JSON_BYTES), object_hook=keep)
    except ValueError as error:
        raise InputError(f"{path} is not valid JSON: {error}") from None
    except RecursionError:
        raise InputError(f"{path} is not valid JSON for a data set: it is nested too deep") from None


def load_xml(path: Path) -> ET.Element:
    """Read an XML file; its root.

    Raises:
        InputError: as :func:`read_text`, no XML, an encoding that does not exist, or entities of its own.
    """
    data = _read_bytes(path, MOST_BYTES)
    named = _XML_ENCODING.match(data)
    text = _decoded(path, data, named[1].decode("ascii") if named else None)
    if "<!ENTITY" in text:  # they can make a short file endless; no annotation needs one
        raise InputError(f"annotation {path} declares entities (<!ENTITY ...>). Remove them")
    try:
        return ET.fromstring(text.lstrip())
    except (ET.ParseError, ValueError) as error:
        raise InputError(f"annotation {path} is not valid XML: {error}") from None


def _read_bytes(path: Path, most: int) -> bytes:
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):  # a pipe would never end
            raise InputError(f"{path} cannot be read: it is no regular file")
        if status.st_size > most:
            raise InputError(f"{path} has {status.st_size >> 20} MB; such a file may have {most >> 20}")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from None
    except ValueError as error:  # a name that no file can have
        raise InputError(f"{str(path)!r} cannot be read: {error}") from None


def _decoded(path: Path, data: bytes, named: str | None) -> str:
    encoding: str = json.detect_encoding(data)  # by the mark, or by the zeros of UTF-16 and UTF-32
    if encoding == "utf-8" and named is not None:
        encoding = named
    try:
        return data.decode(encoding).removeprefix("\ufeff")
    except LookupError:
        raise InputError(f"{path} says its encoding is {named}, which is not known. Save it as UTF-8") from None
    except UnicodeError as error:
        line = data.count(b"\n", 0, getattr(error, "start", 0)) + 1
        raise InputError(
            f"{path} line {line} is no {encoding.upper()} text. Save the file as UTF-8 "
            "(iconv -f ENCODING -t UTF-8, with the encoding it was written in)"
        ) from None
