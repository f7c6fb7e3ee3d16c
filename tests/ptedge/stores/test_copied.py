"""Copies of a store: what was read is read once, and what is not there any more is not kept."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from faulty_store import FaultyStore

from ptedge.errors import OutputError, StoreError
from ptedge.stores.copied import CopiedStore
from ptedge.stores.folder import FolderStore
from ptedge.stores.store import AbsentError, read_whole


@pytest.fixture
def far(tmp_path: Path) -> FaultyStore:
    return FaultyStore(FolderStore(tmp_path / "far"))


@pytest.fixture
def store(far: FaultyStore, tmp_path: Path) -> CopiedStore:
    far.put("a/1", b"one")
    far.put("a/2", b"two")
    far.requests = 0
    return CopiedStore(far, FolderStore(tmp_path / "copies"))


def test_get__asks_once(store: CopiedStore, far: FaultyStore) -> None:
    assert [read_whole(store, "a/1", 10) for _ in range(3)] == [b"one"] * 3
    assert far.requests == 1
    assert b"".join(store.get("a/1", 1, 1)) == b"n" and far.requests == 1
    assert b"".join(store.get("a/2", 1, 1)) == b"w" and b"".join(store.get("a/2", 0, 2)) == b"tw"
    assert store.copies.head("a/2") is None  # parts make no copy


def test_list__forgets_copies_of_what_is_gone_or_another(store: CopiedStore, far: FaultyStore, tmp_path: Path) -> None:
    keys = [item.key for item in store.list("a/")]
    assert keys == ["a/1", "a/2"]
    for key in keys:
        read_whole(store, key, 10)
    assert [item.key for item in store.list("a/")] == keys
    assert [item.key for item in store.copies.list()] == keys
    far.delete("a/1")
    (tmp_path / "far/a/2").write_bytes(b"TWO")
    os.utime(tmp_path / "far/a/2", (2e9, 2e9))  # of the same size, put at another time
    assert [item.key for item in store.list("a/")] == ["a/2"]
    assert list(store.copies.list()) == []
    assert read_whole(store, "a/2", 10) == b"TWO"


def test_fetch__is_whole_or_not_there(store: CopiedStore, far: FaultyStore) -> None:
    for number in (0, 1):
        far.requests, far.number = 0, number
        with pytest.raises(StoreError, match="failed"):
            store.fetch("a/1")
        assert list(store.copies.list()) == []
    far.number = None
    store.fetch("a/1")
    far.requests = 0
    store.fetch("a/1")
    assert far.requests == 0 and b"".join(store.copies.get("a/1")) == b"one"
    with pytest.raises(AbsentError):
        store.fetch("a/3")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_get__goes_on_where_no_copy_can_be_made(store: CopiedStore, tmp_path: Path) -> None:
    (tmp_path / "copies").mkdir(mode=0o500)
    assert read_whole(store, "a/1", 10) == b"one"
    with pytest.raises(OutputError):
        store.fetch("a/1")
