"""The interface of a store: put if absent, get with range, head, list, delete.

No verb replaces an object, so whoever reads one reads what its writer meant, and a pointer that moves is a row of
objects of which the last one counts (``current/00000007.json``). Nothing is ever half there: an object has its key
when it is whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ptedge.errors import StoreError

LONGEST_KEY = 900  # bytes, prefix included; S3 allows 1024
PROBES = "probe/"  # objects by which a store is tried (:meth:`Store.exclusive`), and which are gone after it
LONGEST_PART = 200  # bytes between two slashes; file systems allow 255, and temporary names need room
_PART = re.compile(r"[A-Za-z0-9_=+@,-][A-Za-z0-9._=+@,-]*")

Content = bytes | Path


@dataclass(frozen=True)
class Item:
    """An object in a store, without its content.

    Attributes:
        key: its name, parts divided by ``/``.
        size: bytes.
        modified: when it was put, seconds since 1970, by the store's clock.
    """

    key: str
    size: int
    modified: float


class Store(Protocol):
    """A place for objects. Every method raises StoreError when the store cannot be reached or refuses; its text says
    which store, which key and what to do. Methods may be called from several threads.
    """

    @property
    def address(self) -> str:
        """As the user named it; without secrets."""

    def put(self, key: str, content: Content) -> bool:
        """Put an object where none is.

        Args:
            key: see :func:`check_key`.
            content: bytes, or a file to send piece by piece.

        Returns:
            Whether it is new; ``False`` where the key was taken, whatever its content. Between two writers at the same
            moment this holds where :meth:`exclusive` says so.
        """

    def get(self, key: str, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """The content, or a part of it, in pieces as they come.

        Args:
            key: of an object.
            start: first byte, from 0.
            length: bytes; ``None`` for all that follow. Where the object ends earlier, so do the pieces.

        Raises:
            AbsentError: there is no such object.
        """

    def head(self, key: str) -> Item | None:
        """What is known of an object; ``None`` where there is none."""

    def list(self, prefix: str = "") -> Iterator[Item]:
        """Objects whose keys begin with a prefix, in order of their keys (as bytes).

        Args:
            prefix: ``"index/"``; empty for all.
        """

    def delete(self, key: str) -> None:
        """Remove an object; one that is not there is no error."""

    def exclusive(self) -> bool:
        """Whether of two writers who put one key at the same moment only one is told that it is new.

        A bucket is asked by putting a small object twice: some servers ignore the condition without a word.
        """


class AbsentError(StoreError):
    """There is no object of this key."""


def absent(store: Store, key: str) -> AbsentError:
    """The error for an object that is not there."""
    return AbsentError(f"{store.address} has no {key}. Check the address, and whether it was put there")


def check_key(key: str) -> str:
    """The key itself, if every store can hold it, a folder on any file system too.

    Args:
        key: parts divided by ``/``; each of letters, digits and ``._=+@,-``, none beginning with a dot.

    Raises:
        StoreError: it is something else, as ``../../etc/passwd`` in a foreign index.
    """
    parts = key.split("/")
    if len(key) > LONGEST_KEY or any(len(part) > LONGEST_PART or not _PART.fullmatch(part) for part in parts):
        shown = key if len(key) <= 100 else f"{key[:100]}..."
        raise StoreError(
            f"{shown!r} is no key of a store: parts divided by / hold letters, digits and ._=+@,- and begin with no dot"
        )
    return key


def read_whole(store: Store, key: str, most: int) -> bytes:
    """An object's content at once.

    Args:
        store: holds it.
        key: of the object.
        most: bytes it may have.

    Raises:
        StoreError: there is none (AbsentError), or it is larger.
    """
    content = bytearray()
    for piece in store.get(key, 0, most + 1):
        content += piece
    if len(content) > most:
        raise StoreError(f"{key} in {store.address} has more than {most} bytes, the most such an object may have")
    return bytes(content)
