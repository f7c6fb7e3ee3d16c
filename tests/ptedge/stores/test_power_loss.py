"""A folder as a store, wherever power fails."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from power_loss import CASES, PowerLossError, each_loss, watched

from ptedge.stores.folder import FolderStore


def content_of(folder: Path) -> bytes | None:
    store = FolderStore(folder)
    return b"".join(store.get("a/b/one")) if store.head("a/b/one") is not None else None


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
            found = content_of(disk.left(case, tmp_path / f"left{next(numbers)}"))
            assert found == b"content" if not lost else found in (None, b"content")
        steps += lost
    assert steps == 10  # .incoming; the file; two folders, each on disk; its name, on disk; the other gone


def test_put__what_a_killed_writer_linked_is_on_disk_after_the_next_says_it_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "disk"
    (folder / "a" / "b").mkdir(parents=True)
    with watched(folder) as disk:
        (folder / "a" / "b" / "one").write_bytes(b"content")  # the name is not on disk
        with open(folder / "a" / "b" / "one", "rb") as file, contextlib.suppress(PowerLossError):
            os.fsync(file.fileno())
        assert not FolderStore(folder).put("a/b/one", b"content")
        assert content_of(disk.left("synced", tmp_path / "left")) == b"content"
