"""A folder as a store: first writer wins, nothing is half, nothing lies outside."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ptedge.errors import StoreError
from ptedge.stores.folder import INCOMING, FolderStore


def test_put__keeps_what_is_there_and_leaves_nothing_behind(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    assert store.put("a/b.txt", b"first")
    assert not store.put("a/b.txt", b"second")
    assert b"".join(store.get("a/b.txt")) == b"first"
    assert list((tmp_path / "store" / INCOMING).iterdir()) == []


def test_put__of_many_at_once_one_is_new(tmp_path: Path) -> None:
    begin, new = threading.Barrier(8), []

    def put(i: int) -> None:
        store = FolderStore(tmp_path)
        begin.wait()
        if store.put("pointer/1", b"%d" % i):
            new.append(i)

    threads = [threading.Thread(target=put, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(new) == 1
    assert b"".join(FolderStore(tmp_path).get("pointer/1")) == b"%d" % new[0]


def test_put__without_links_still_replaces_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    store = FolderStore(tmp_path)
    assert store.put("a", b"first")
    (tmp_path / "b").write_bytes(b"of somebody else")
    monkeypatch.setattr(os.path, "lexists", lambda path: False)  # it came between the look and the rename
    assert not store.put("b", b"second")
    assert b"".join(store.get("b")) == b"of somebody else"


def test_put__removes_what_was_left_a_day_ago(tmp_path: Path) -> None:
    incoming = tmp_path / INCOMING
    incoming.mkdir()
    for name, age in (("old", 90000), ("fresh", 60)):
        (incoming / name).write_bytes(b"half")
        moment = (incoming / name).stat().st_mtime - age
        os.utime(incoming / name, (moment, moment))
    FolderStore(tmp_path).put("a", b"1")
    assert [path.name for path in incoming.iterdir()] == ["fresh"]


@pytest.mark.parametrize("key", ["../up", "/etc/passwd", "a//b", ".hidden", "a/../b", "", "a/", "é", "a b", "x" * 300])
def test_keys__that_lead_elsewhere_are_refused(key: str, tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    for verb in (lambda: store.put(key, b""), lambda: list(store.get(key)), lambda: store.head(key)):
        with pytest.raises(StoreError, match="no key of a store"):
            verb()


def test_put__in_a_place_that_takes_nothing_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match=r"cannot put a in .*file: "):
        FolderStore(tmp_path / "file").put("a", b"")
    with pytest.raises(StoreError, match="is a file"):
        list(FolderStore(tmp_path / "file").list())


def test_list__passes_over_what_is_no_object(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("index/a", b"1")
    (tmp_path / "index" / "not a key").write_bytes(b"")
    (tmp_path / "index" / ".hidden").write_bytes(b"")
    os.mkfifo(tmp_path / "index" / "pipe")
    (tmp_path / "index" / "link").symlink_to(tmp_path / "nothing")
    assert [item.key for item in store.list()] == ["index/a"]
