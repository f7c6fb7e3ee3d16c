"""Single frames out of a store."""

from __future__ import annotations

import multiprocessing
import os
import pickle
from pathlib import Path

import pytest
from made_field import collect

import ptedge.shards.reading
from ptedge.errors import InputError
from ptedge.runtime.transfer.push import push
from ptedge.shards.reading import StoredFrame, stored_frames
from ptedge.stores.folder import FolderStore


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptedge.shards.reading, "_MEMORY", type(ptedge.shards.reading._MEMORY)())


@pytest.fixture
def site(tmp_path: Path) -> Path:
    collect(tmp_path / "field", count=5)
    push(tmp_path / "field", FolderStore(tmp_path / "site"), "", 10_000)
    return tmp_path / "site"


def images(folder: Path) -> set[bytes]:
    return {path.read_bytes() for path in (folder / "images").iterdir()}


def test_stored_frames__read_as_they_were_collected(site: Path, tmp_path: Path) -> None:
    frames = stored_frames(str(site))
    assert {frame.read() for frame in frames} == images(tmp_path / "field")
    assert {Path(frame.name).name for frame in frames} == {path.name for path in (tmp_path / "field/images").iterdir()}


def test_stored_frames__each_once_though_it_lies_in_two_shards(site: Path, tmp_path: Path) -> None:
    push(tmp_path / "field", FolderStore(tmp_path / "second"), "", 4_000)
    for name in ("shards", "index"):
        for path in (tmp_path / "second" / name).iterdir():
            path.rename(site / name / path.name)
    assert len(stored_frames(str(site))) == 5


def test_stored_frames__of_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no frames"):
        stored_frames(str(tmp_path))


def test_read__holds_it_to_its_hash(site: Path) -> None:
    frame = stored_frames(str(site))[0]
    path = site / frame.shard
    content = bytearray(path.read_bytes())
    content[frame.entry.offset + 100] ^= 1
    path.write_bytes(content)
    with pytest.raises(InputError, match="is damaged: it is not what was pushed"):
        frame.read()


def test_read__keeps_those_read_last_up_to_a_limit(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frames = stored_frames(str(site))
    asked: list[str] = []
    get = FolderStore.get
    monkeypatch.setattr(FolderStore, "get", lambda self, key, *rest: (asked.append(key), get(self, key, *rest))[1])
    sizes = [frame.entry.size for frame in frames]
    monkeypatch.setattr(ptedge.shards.reading, "KEPT_BYTES", sizes[1] + sizes[2] + 10)
    for i in (0, 0, 1, 2, 2, 1, 0):
        frames[i].read()
    assert len(asked) == 4  # the first gave way to the second and third


def _read(frame: StoredFrame, pipe: object) -> None:
    pipe.send(frame.read())  # type: ignore[attr-defined]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_read__in_workers_of_a_loader(site: Path) -> None:
    frame = pickle.loads(pickle.dumps(stored_frames(str(site))[0]))
    expected = frame.read()
    context = multiprocessing.get_context("fork")
    mine, theirs = context.Pipe()
    worker = context.Process(target=_read, args=(frame, theirs))
    worker.start()
    assert mine.recv() == expected
    worker.join()
