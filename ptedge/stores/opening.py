"""Which store an address means: ``s3://bucket/prefix``, or a folder."""

from __future__ import annotations

import re
from pathlib import Path

from ptedge.errors import StoreError
from ptedge.stores.folder import FolderStore
from ptedge.stores.store import Store

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # one letter is a drive of Windows


def open_store(address: str | Path) -> Store:
    """Open a store; nothing is asked of it yet.

    Args:
        address: a folder, which need not be there yet.

    Raises:
        StoreError: no such kind of store.
    """
    text = str(address)
    found = _SCHEME.match(text)
    if found:
        raise StoreError(f"{text} is no store that ptedge knows. Give a folder")
    return FolderStore(Path(text))


def is_address(text: str) -> bool:
    """Whether a text names a store by its address, so that it cannot be a path.

    Args:
        text: as the user typed it.
    """
    return text[:5].lower() == "s3://"
