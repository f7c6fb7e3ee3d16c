"""Folders of files into a store and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptedge.errors import OutputError, StoreError
from ptedge.stores.folder import FolderStore
from ptedge.stores.store import AbsentError
from ptedge.stores.tree import get_folder, put_folder

NAMES = ("model.onnx", "manifest.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "bundle"
    path.mkdir()
    for name in NAMES:
        (path / name).write_text(name)
    return path


def test_put_folder__goes_on_where_it_was_interrupted(folder: Path, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    assert put_folder(store, "bundles/1", folder, NAMES[:1]) == 1
    assert put_folder(store, "bundles/1", folder, NAMES) == 1
    assert put_folder(store, "bundles/1", folder, NAMES) == 0


def test_put_folder__refuses_a_place_of_something_else(folder: Path, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    store.put("bundles/1/model.onnx", b"of another length")
    with pytest.raises(StoreError, match="something else was put there"):
        put_folder(store, "bundles/1", folder, NAMES)
    assert store.head("bundles/1/manifest.json") is None


def test_get_folder__is_there_whole_or_not_at_all(folder: Path, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    put_folder(store, "bundles/1", folder, NAMES[:1])
    with pytest.raises(AbsentError):
        get_folder(store, "bundles/1", NAMES, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "store"]
    put_folder(store, "bundles/1", folder, NAMES)
    get_folder(store, "bundles/1", NAMES, tmp_path / "out")
    assert [(tmp_path / "out" / name).read_text() for name in NAMES] == list(NAMES)
    with pytest.raises(OutputError, match="there already"):
        get_folder(store, "bundles/1", NAMES, tmp_path / "out")
