"""What a machine decided alone."""

from __future__ import annotations

from pathlib import Path

from ptedge.runtime.deployment.alone import decided, note
from ptedge.runtime.deployment.history import Entry, state_of
from ptedge.stores.folder import FolderStore


def promotions(*versions: str) -> list[Entry]:
    return [Entry(n, "promote", version, files={"a": "b"}) for n, version in enumerate(versions, start=1)]


def test_decided__goes_back_over_what_was_sent_back_here(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    state = state_of(promotions("one", "two", "three"))
    assert decided(store, state) == state
    note(store, 3, "finds nothing")
    found = decided(store, state)
    assert (found.version, found.number, found.withdrawn) == ("two", 3, {"three": "finds nothing"})
    note(store, 2, "too slow")
    assert decided(store, state).version == "one"
    note(store, 1, "the first has nothing before it")
    assert decided(store, state).version == "one"


def test_decided__a_version_that_is_promoted_again_is_tried_again(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    note(store, 2, "finds nothing")
    assert decided(store, state_of(promotions("one", "two", "two"))).version == "two"


def test_decided__a_note_that_is_damaged_counts(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("trials/00000002/sent-back.json", b"{")
    assert decided(store, state_of(promotions("one", "two"))).version == "one"
