"""The five verbs, the same for every store."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from servers.buckets import address

from ptedge.errors import StoreError
from ptedge.stores.copied import CopiedStore
from ptedge.stores.folder import FolderStore
from ptedge.stores.opening import open_store
from ptedge.stores.store import AbsentError, Store, read_whole

pytestmark = pytest.mark.parametrize("store", ["folder", "rclone", "moto", "copied"], indirect=True)


@pytest.fixture
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    if request.param == "folder":
        return FolderStore(tmp_path / "store")
    if request.param == "copied":
        return CopiedStore(FolderStore(tmp_path / "store"), FolderStore(tmp_path / "copies"))
    request.getfixturevalue("bucket_keys")
    return open_store(address(request.getfixturevalue(f"{request.param}_server"), uuid.uuid4().hex))


def test_exclusive__is_tried_not_believed(store: Store, request: pytest.FixtureRequest) -> None:
    assert store.exclusive() == ("rclone" not in request.node.name)
    assert list(store.list()) == []


def test_put__says_whether_it_is_new(store: Store, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    assert store.put("one/two/three", tmp_path / "file")
    assert not store.put("one/two/three", b"other")
    assert read_whole(store, "one/two/three", 10) == b"0123456789"


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [(0, None, b"0123456789"), (3, 4, b"3456"), (8, 10, b"89"), (4, None, b"456789"), (2, 0, b""), (10, None, b"")],
)
def test_get__of_a_part(start: int, length: int | None, expected: bytes, store: Store) -> None:
    store.put("digits", b"0123456789")
    assert b"".join(store.get("digits", start, length)) == expected


def test_get__of_nothing_is_told(store: Store) -> None:
    store.put("there", b"")
    assert read_whole(store, "there", 0) == b""
    with pytest.raises(AbsentError, match="has no not/there"):
        list(store.get("not/there"))
    with pytest.raises(AbsentError):
        list(store.get("there/below"))


def test_read_whole__refuses_more_than_the_most(store: Store) -> None:
    store.put("a", b"12345")
    with pytest.raises(StoreError, match="more than 4 bytes"):
        read_whole(store, "a", 4)


def test_head__tells_the_size_and_of_nothing_none(store: Store) -> None:
    store.put("a/b", b"12345")
    item = store.head("a/b")
    assert item is not None and (item.key, item.size) == ("a/b", 5) and item.modified > 1.7e9
    assert store.head("a/c") is None
    assert store.head("a") is None
    assert store.head("a/b/c") is None


def test_list__in_order_of_keys_below_a_prefix(store: Store) -> None:
    for key in ("b/2", "b/10", "a", "b-1", "b/sub/3", "c/1"):
        store.put(key, b"x")
    assert [item.key for item in store.list()] == ["a", "b-1", "b/10", "b/2", "b/sub/3", "c/1"]
    assert [item.key for item in store.list("b/")] == ["b/10", "b/2", "b/sub/3"]
    assert [item.key for item in store.list("b/1")] == ["b/10"]
    assert list(store.list("d/")) == []


def test_delete__and_once_more(store: Store) -> None:
    store.put("a/b", b"x")
    store.delete("a/b")
    store.delete("a/b")
    assert store.head("a/b") is None
    assert list(store.list()) == []
    assert store.put("a/b", b"again")
