"""Pull: frames of a store as a field folder."""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

import pytest
from faulty_store import FaultyStore
from made_field import ALL, collect, scene
from servers.buckets import address

from ptedge.errors import ClassMismatchError, InputError, OutputError, StoreError
from ptedge.frames.source import open_frames
from ptedge.runtime.field import open_field
from ptedge.runtime.sinks.collect import FieldSink
from ptedge.runtime.transfer.pull import copy_frames, pull
from ptedge.runtime.transfer.push import push as push_to
from ptedge.shards.index import listed
from ptedge.stores.folder import FolderStore
from ptedge.stores.opening import open_store
from ptedge.stores.store import Store


def push(folder: Path, store: Store) -> None:
    push_to(folder, store, store.address, 10_000)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    collect(folder / "field", count=10)
    push(folder / "field", FolderStore(folder / "site"))
    return folder


@pytest.fixture
def site(made: Path, tmp_path: Path) -> FolderStore:
    return FolderStore(Path(shutil.copytree(made / "site", tmp_path / "site")))


def contents(folder: Path) -> set[bytes]:
    return {path.read_bytes() for path in (folder / "images").glob("*.jpg")}


def by_key(folder: Path) -> dict[str, dict[str, object]]:
    return {record["sha256"]: {**record, "file": ""} for record in open_field(folder).records()}


@pytest.mark.parametrize("kind", ["folder", "rclone", "moto"])
def test_pull__gives_what_was_pushed(
    kind: str, made: Path, tmp_path: Path, request: pytest.FixtureRequest, site: FolderStore
) -> None:
    store: Store = site
    if kind != "folder":
        request.getfixturevalue("bucket_keys")
        store = open_store(address(request.getfixturevalue(f"{kind}_server"), uuid.uuid4().hex))
        push(shutil.copytree(made / "field", tmp_path / "field"), store)
    pulled = pull(store, tmp_path / "out")
    assert (pulled.frames, pulled.there, pulled.damaged) == (10, 0, 0)
    assert contents(tmp_path / "out") == contents(made / "field")
    before = {record["file"].split("/")[1]: record for record in open_field(made / "field").records()}
    for record in open_field(tmp_path / "out").records():
        ours = before[record.pop("collected_as")]
        assert ours["file"].partition("_")[2].startswith(record.pop("sha256")[:12])
        assert {**record, "file": ""} == {**ours, "file": ""}
    assert len(list(open_frames(str(tmp_path / "out")))) == 10
    assert pull(store, tmp_path / "out").to_json() == {"frames": 0, "bytes": 0, "there": 10, "damaged": 0, "gone": 0}


def test_pull__interrupted_at_any_request_is_gone_on_with(made: Path, site: FolderStore, tmp_path: Path) -> None:
    counting = FaultyStore(site)
    pull(counting, tmp_path / "counted")
    for number in range(counting.requests):
        out = tmp_path / f"out{number}"
        with pytest.raises(StoreError):
            pull(FaultyStore(site, number), out)
        pull(site, out)
        assert contents(out) == contents(made / "field") and open_field(out).images == 10


def test_pull__of_frames_that_came_later(made: Path, site: FolderStore, tmp_path: Path) -> None:
    pull(site, tmp_path / "out")
    collect(tmp_path / "second", count=3, first=40)
    push(tmp_path / "second", site)
    assert pull(site, tmp_path / "out").frames == 3
    assert contents(tmp_path / "out") == contents(made / "field") | contents(tmp_path / "second")
    numbers = [record["file"][7:15] for record in open_field(tmp_path / "out").records()]
    assert numbers == [f"{number:08d}" for number in range(1, 14)]


def test_pull__leaves_out_what_is_damaged_and_counts_it(
    site: FolderStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shard = site.path / "shards" / f"{sorted(listed(site)[0])[0]}.tar"
    content = bytearray(shard.read_bytes())
    content[2000] ^= 1  # inside the first image
    shard.write_bytes(content)
    pulled = pull(site, tmp_path / "out")
    assert (pulled.frames, pulled.damaged) == (9, 1)
    assert "is damaged" in capsys.readouterr().err
    assert open_field(tmp_path / "out").images == 9


def test_pull__refuses_frames_of_other_classes(site: FolderStore, tmp_path: Path) -> None:
    sink = FieldSink(tmp_path / "second", ALL, ("dog",), "hash", {})
    sink.close()
    collect(tmp_path / "third", count=1, image=lambda i: scene(99))
    about = tmp_path / "third" / "field.json"
    about.write_text(about.read_text().replace('"car"', '"dog"'))
    push(tmp_path / "third", site)
    with pytest.raises(ClassMismatchError, match="folder of its own"):
        pull(site, tmp_path / "out")


def test_pull__of_nothing_and_into_something_else(site: FolderStore, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no frames"):
        pull(FolderStore(tmp_path / "empty"), tmp_path / "out")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(OutputError, match="holds other files"):
        pull(site, tmp_path / "other")


def test_pull__leaves_out_what_other_folders_have(made: Path, site: FolderStore, tmp_path: Path) -> None:
    collect(tmp_path / "field", count=4)  # the first four of the ten
    push(tmp_path / "field", FolderStore(tmp_path / "small"))
    pull(FolderStore(tmp_path / "small"), tmp_path / "first")
    pulled = pull(site, tmp_path / "second", [tmp_path / "first"])
    assert (pulled.frames, pulled.there) == (6, 4)
    assert contents(tmp_path / "first") | contents(tmp_path / "second") == contents(made / "field")


def test_copy_frames__gives_what_a_field_folder_has(made: Path, tmp_path: Path) -> None:
    copied = copy_frames(made / "field", tmp_path / "out")
    assert (copied.frames, copied.there, copied.damaged, copied.gone) == (10, 0, 0, 0)
    assert contents(tmp_path / "out") == contents(made / "field")
    push(made / "field", FolderStore(tmp_path / "site"))
    pull(FolderStore(tmp_path / "site"), tmp_path / "pulled")
    kept, pulled = (by_key(tmp_path / name) for name in ("out", "pulled"))
    assert kept == pulled
    again = copy_frames(made / "field", tmp_path / "out")
    assert (again.frames, again.there) == (0, 10)
    beside = copy_frames(made / "field", tmp_path / "beside", [tmp_path / "out"])
    assert (beside.frames, beside.there) == (0, 10)


def test_copy_frames__counts_what_is_gone_or_damaged(tmp_path: Path) -> None:
    collect(tmp_path / "field", count=5)
    first, second, *_ = sorted((tmp_path / "field" / "images").iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:-1] + b"x")
    copied = copy_frames(tmp_path / "field", tmp_path / "out")
    assert (copied.frames, copied.gone, copied.damaged) == (3, 1, 1)
