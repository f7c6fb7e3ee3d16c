"""Which store an address means: ``s3://bucket/prefix``, or a folder."""

from __future__ import annotations

import re
from pathlib import Path

from ptedge.errors import StoreError
from ptedge.stores.folder import FolderStore
from ptedge.stores.pace import Pace
from ptedge.stores.s3 import S3Store
from ptedge.stores.s3_address import FORM, parse_s3_address
from ptedge.stores.store import Store

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # one letter is a drive of Windows


def open_store(address: str | Path, rate: float | None = None) -> Store:
    """Open a store; nothing is asked of it yet.

    Args:
        address: a folder, which need not be there yet, or ``s3://bucket/prefix`` (docs/stores.md).
        rate: bytes a second that may go to and from a bucket; ``None`` for no limit.

    Raises:
        StoreError: no such kind of store, or its access key is not to be found.
        MissingExtraError: a bucket, and boto3 is not installed.
    """
    text = str(address)
    if is_address(text):
        return S3Store(parse_s3_address(text), Pace(rate))
    if found := _SCHEME.match(text):
        raise StoreError(f"{found[0]} is no store that ptedge knows. Give a folder, or {FORM}")
    return FolderStore(Path(text))


def is_address(text: str) -> bool:
    """Whether a text names a store by its address, so that it cannot be a path.

    Args:
        text: as the user typed it.
    """
    return text[:5].lower() == "s3://"
