"""Notes of runs that died: what counts and what does not."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ptedge.runtime.deployment import crashes
from ptedge.stores.folder import FolderStore


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FolderStore:
    monkeypatch.setattr(crashes, "_boot", lambda: "this start")
    return FolderStore(tmp_path)


def note(store: FolderStore, number: int, **changes: object) -> None:
    """As another process of this machine left it, which is gone."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    name = crashes.begin(store, 7)
    assert name == f"trials/00000007/{number:04d}"
    key = name + crashes.BEGUN
    about = json.loads(b"".join(store.get(key))) | {"process": child} | changes
    store.delete(key)
    store.put(key, json.dumps(about).encode())


def test_crashes__those_of_this_machine_since_its_start(store: FolderStore) -> None:
    note(store, 1)
    note(store, 2, process=os.getppid())  # alive
    note(store, 3, host="another")
    note(store, 4, boot="an earlier one")
    note(store, 5, boot="")
    note(store, 6, process=os.getpid())  # of a container that was begun anew
    note(store, 7, process="none")
    assert crashes.crashes(store, 7) == 2
    assert crashes.crashes(store, 8) == 0
    crashes.end(store, "trials/00000007/0001")
    assert crashes.crashes(store, 7) == 1


def test_begin__where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    store = FolderStore(tmp_path / "file")
    assert crashes.begin(store, 1) is None
    crashes.end(store, None)
