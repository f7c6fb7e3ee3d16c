"""Bundles into a store and out of it."""

from __future__ import annotations

import os
import shutil
import uuid
from pathlib import Path

import pytest
from faulty_store import FaultyStore
from servers.buckets import address
from tiny_model import tiny_bundle

from ptedge.artifacts.bundle import open_bundle
from ptedge.errors import ArtifactError, InputError, OutputError, StoreError
from ptedge.runtime.transfer.bundles import pull_bundle, push_bundle
from ptedge.stores.folder import FolderStore
from ptedge.stores.opening import open_store
from ptedge.stores.store import Store


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("kind", ["folder", "rclone", "moto"])
def test_pull_bundle__gives_what_was_pushed(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    store: Store = FolderStore(tmp_path / "models")
    if kind != "folder":
        request.getfixturevalue("bucket_keys")
        store = open_store(address(request.getfixturevalue(f"{kind}_server"), uuid.uuid4().hex))
    bundle = tiny_bundle(tmp_path / "bundle").path
    moved = push_bundle(bundle, store)
    assert moved.new == moved.files == 2
    assert push_bundle(bundle, store).new == 0
    assert pull_bundle(store, tmp_path / "out").version == moved.version
    assert contents(tmp_path / "out") == contents(bundle)
    open_bundle(tmp_path / "out")
    with pytest.raises(OutputError, match="there already"):
        pull_bundle(store, tmp_path / "out")


def test_push_bundle__interrupted_at_any_request_is_no_version_and_gone_on_with(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "bundle").path
    counting = FaultyStore(FolderStore(tmp_path / "counted"))
    push_bundle(bundle, counting)
    for number in range(counting.requests):
        store = FolderStore(tmp_path / f"models{number}")
        with pytest.raises(StoreError):
            push_bundle(bundle, FaultyStore(store, number))
        with pytest.raises(InputError, match="holds no bundle"):
            pull_bundle(store, tmp_path / "out")
        push_bundle(bundle, store)
        assert contents(tmp_path / f"models{number}/versions" / pull_bundle(store, tmp_path / "out").version)
        shutil.rmtree(tmp_path / "out")


def test_pull_bundle__the_last_or_the_one_named(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "models")
    first = push_bundle(tiny_bundle(tmp_path / "one", class_names=("cat",)).path, store).version
    second = push_bundle(tiny_bundle(tmp_path / "two", class_names=("dog",)).path, store).version
    for version, time in ((first, 1e9), (second, 2e9)):
        os.utime(tmp_path / "models" / "versions" / version / "manifest.json", (time, time))
    assert pull_bundle(store, tmp_path / "last").version == second
    assert pull_bundle(store, tmp_path / "named", first).version == first
    with pytest.raises(InputError, match=f"no version 'other'. There are {first}, {second}"):
        pull_bundle(store, tmp_path / "third", "other")


def test_pull_bundle__of_what_is_damaged_leaves_nothing(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "models")
    version = push_bundle(tiny_bundle(tmp_path / "bundle").path, store).version
    model = tmp_path / "models" / "versions" / version / "model.onnx"
    content = bytearray(model.read_bytes())
    content[-5] ^= 1
    model.write_bytes(content)
    with pytest.raises(ArtifactError):
        pull_bundle(store, tmp_path / "out")
    other = tiny_bundle(tmp_path / "other", class_names=("dog",)).path
    for path in other.iterdir():  # a whole bundle, under the name of another
        shutil.copy(path, model.with_name(path.name))
    with pytest.raises(ArtifactError, match="is not what was pushed"):
        pull_bundle(store, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bundle", "models", "other"]
