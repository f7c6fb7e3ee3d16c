"""A folder with five verbs: what is put is whole, durable and never replaced."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from power_loss import CASES, each_loss

from ptedge.errors import ArtifactError, OutputError
from ptedge.runtime.deployment.store import TEMPORARY, FolderStore


def test_put__once_and_never_again(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    assert store.put("a/b/one.txt", b"first")
    assert not store.put("a/b/one.txt", b"second")
    assert store.get("a/b/one.txt") == b"first"
    assert store.head("a/b/one.txt") == 5
    assert store.head("a/b/two.txt") is None
    assert list((tmp_path / TEMPORARY).iterdir()) == []


def test_list__keys_that_begin_so(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    for key in ("b/2", "a/1", "a/10", "ab"):
        store.put(key, b"")
    assert store.list("a/") == ["a/1", "a/10"]
    assert store.list("a/10") == ["a/10"]
    assert store.list("") == ["a/1", "a/10", "ab", "b/2"]
    assert store.list("nothing/") == []


def test_delete__is_gone_and_again_is_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("a/1", b"x")
    store.delete("a/1")
    store.delete("a/1")
    store.delete("nowhere/1")
    assert store.list("") == []
    with pytest.raises(ArtifactError, match="cannot read"):
        store.get("a/1")


def test_put__on_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(one: object, other: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    store = FolderStore(tmp_path)
    assert store.put("a", b"first")
    assert not store.put("a", b"second")
    assert store.get("a") == b"first"


def test_put__removes_what_a_killed_process_left(tmp_path: Path) -> None:
    left = tmp_path / TEMPORARY
    left.mkdir()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    (left / f"{child}-1").write_bytes(b"half")
    (left / f"{os.getppid()}-1").write_bytes(b"of one that lives")
    FolderStore(tmp_path).put("a", b"x")
    assert [path.name for path in left.iterdir()] == [f"{os.getppid()}-1"]


def test_put__not_writable(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a file where a folder should be")
    with pytest.raises(OutputError, match="cannot write"):
        FolderStore(tmp_path).put("a/1", b"x")


def test_put__whole_or_absent_wherever_power_fails(tmp_path: Path) -> None:
    numbers = iter(range(10_000))

    def make() -> Path:
        folder = tmp_path / f"disk{next(numbers)}"
        folder.mkdir()
        return folder

    def put(folder: Path) -> None:
        FolderStore(folder).put("a/b/one", b"content")

    steps = 0
    for disk, lost in each_loss(make, put):
        for case in CASES:
            left = FolderStore(disk.left(case, tmp_path / f"left{next(numbers)}"))
            found = left.get("a/b/one") if left.head("a/b/one") is not None else None
            assert found == b"content" if not lost else found in (None, b"content")
        steps += lost
    assert steps == 11  # three folders, each on disk; the file, on disk; its name, on disk; the other name gone
