"""Which store an address means."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptedge.errors import StoreError
from ptedge.stores.folder import FolderStore
from ptedge.stores.opening import is_address, open_store


def test_open_store__a_folder(tmp_path: Path) -> None:
    store = open_store(tmp_path / "new")
    assert isinstance(store, FolderStore)
    assert store.address == str(tmp_path / "new")


def test_open_store__refuses_other_kinds() -> None:
    with pytest.raises(StoreError, match="no store that ptedge knows"):
        open_store("ftp://host/path")


def test_is_address() -> None:
    assert is_address("s3://bucket") and is_address("S3://bucket/site/")
    assert not is_address("folder") and not is_address("s3")
