"""Push: every frame once, whatever interrupts it."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path

import pytest
from faulty_store import FaultyStore, frames_in, troubles
from made_field import collect, digests, found, scene
from servers.buckets import address

from ptedge.errors import OutputError, StoreError
from ptedge.folders import hold_folder
from ptedge.runtime.collection.prune import prune
from ptedge.runtime.field import open_field
from ptedge.runtime.transfer.known import PUSHED
from ptedge.runtime.transfer.push import Pushed
from ptedge.runtime.transfer.push import push as push_to
from ptedge.shards.index import listed, read_index, shard_of
from ptedge.stores.folder import FolderStore
from ptedge.stores.opening import open_store
from ptedge.stores.store import Store, read_whole

SMALL = 10_000  # bytes of a shard: two or three frames of the pictures here


def push(folder: Path, store: Store, size: int = SMALL) -> Pushed:
    return push_to(folder, store, store.address, size)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "field"
    collect(folder, count=10)
    return folder


@pytest.fixture
def field(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "field"))


@pytest.mark.parametrize("kind", ["folder", "rclone", "moto"])
def test_push__each_frame_once_and_a_second_time_nothing(
    kind: str, field: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    store: Store = FolderStore(tmp_path / "site")
    if kind != "folder":
        request.getfixturevalue("bucket_keys")
        store = open_store(address(request.getfixturevalue(f"{kind}_server"), uuid.uuid4().hex))
    pushed = push(field, store)
    assert (pushed.frames, pushed.there) == (10, 0) and pushed.shards > 2
    assert troubles(store) == [] and frames_in(store) == digests(field)
    assert push(field, store).to_json() == {**Pushed().to_json(), "there": 10}


def test_push__the_record_goes_along_and_what_frames_have_in_common_once(field: Path, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "site")
    push(field, store)
    (about,) = (tmp_path / "site" / "about").iterdir()
    assert json.loads(about.read_text()) == {"schema": 1, "class_names": ["car"]}
    shard = sorted((tmp_path / "site" / "shards").iterdir())[0].read_bytes()
    record = json.loads(shard[shard.index(b'{"file"') : shard.index(b"\0", shard.index(b'{"file"'))])
    ours = next(r for r in open_field(field).records() if r["file"].endswith(record["file"]))
    assert record == {**{k: v for k, v in ours.items() if k != "bytes"}, "file": record["file"], "about": about.stem}


def test_push__the_index_is_what_the_shard_itself_tells(field: Path, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "site")
    push(field, store)
    for digest, item in listed(store)[0].items():
        assert read_index(store, digest) == shard_of(digest, read_whole(store, item.key, 1 << 20))


@pytest.mark.parametrize("after", [False, True], ids=["request lost", "answer lost"])
def test_push__interrupted_at_any_request_and_repeated(after: bool, field: Path, tmp_path: Path) -> None:
    counting = FaultyStore(FolderStore(tmp_path / "counted"))
    push(field, counting)
    assert counting.requests > 8
    shutil.rmtree(field / PUSHED)
    for number in range(counting.requests):
        store = FolderStore(tmp_path / f"site{number}")
        with pytest.raises(StoreError, match=r"failed|lost"):
            push(field, FaultyStore(store, number, after))
        assert not [text for text in troubles(store) if "not there" in text or "times" in text]
        push(field, store)
        assert troubles(store) == [] and frames_in(store) == digests(field)


def test_push__interrupted_then_pruned_and_grown_and_repeated_with_shards_of_another_size(
    field: Path, tmp_path: Path
) -> None:
    requests = FaultyStore(FolderStore(tmp_path / "counted"))
    push(field, requests)
    for number in range(requests.requests):
        now = Path(shutil.copytree(field, tmp_path / f"field{number}", ignore=shutil.ignore_patterns(PUSHED)))
        store = FolderStore(tmp_path / f"site{number}")
        with pytest.raises(StoreError):
            push(now, FaultyStore(store, number, after=True))
        prune(open_field(now), None, 7)
        collect(now, count=3, first=20)
        push(now, store, SMALL // 2)
        assert troubles(store) == [] and frames_in(store) >= digests(now)
        shutil.rmtree(now)


def test_push__interrupted_while_it_learns_what_is_there(field: Path, tmp_path: Path) -> None:
    push(field, FolderStore(tmp_path / "site"))
    last = sorted((tmp_path / "site" / "index").iterdir())[-1]
    last.unlink()
    collect(field, count=2, first=30)
    for number in range(30):
        shutil.rmtree(field / PUSHED)
        store = FolderStore(Path(shutil.copytree(tmp_path / "site", tmp_path / f"site{number}")))
        faulty = FaultyStore(store, number)
        try:
            push(field, faulty)
        except StoreError:
            push(field, store)
        assert troubles(store) == [] and frames_in(store) == digests(field)
        if faulty.requests <= number:
            return
    raise AssertionError("more requests than frames")


def test_push__interrupted_again_and_again(field: Path, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "site")
    for number in (*range(12), None):
        try:
            push(field, FaultyStore(store, number, after=number is not None and number % 2 == 0))
        except StoreError:
            continue
    assert troubles(store) == [] and frames_in(store) == digests(field)


def test_push__only_what_is_new(field: Path, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "site")
    push(field, store)
    collect(field, count=2, first=30)
    again = push(field, store)
    assert (again.frames, again.there, again.shards) == (2, 10, 1)
    assert troubles(store) == [] and frames_in(store) == digests(field)


def test_push__of_an_image_that_is_there_twice(tmp_path: Path) -> None:
    field, store = tmp_path / "field", FolderStore(tmp_path / "site")
    collect(field, count=3, image=lambda i: scene(min(i, 1)), detections=lambda i: found(0.1 * i))
    pushed = push(field, store)
    assert (pushed.frames, pushed.twice) == (2, 1)
    assert (push(field, store).frames, troubles(store)) == (0, [])


def test_push__of_a_frame_that_was_pruned_meanwhile(field: Path, tmp_path: Path) -> None:
    next((field / "images").glob("00000003_*")).unlink()
    pushed = push(field, FolderStore(tmp_path / "site"))
    assert (pushed.frames, pushed.gone) == (9, 1)


def test_push__trusts_a_copy_of_an_index_only_while_the_store_has_it(field: Path, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "site")
    push(field, store)
    push(field, store)
    copies = next(path for path in (field / PUSHED).iterdir() if path.is_dir())
    assert len(list(copies.iterdir())) == len(listed(store)[1])
    shutil.rmtree(tmp_path / "site")
    assert push(field, store).frames == 10
    assert troubles(store) == [] and frames_in(store) == digests(field)
    for copy in copies.iterdir():
        copy.write_text("broken")
    assert push(field, store).there == 10


def test_push__two_stores_are_kept_apart(field: Path, tmp_path: Path) -> None:
    one, other = FolderStore(tmp_path / "one"), FolderStore(tmp_path / "other")
    push(field, one)
    assert push(field, other).frames == 10
    assert frames_in(one) == frames_in(other)


def test_push__an_index_whose_shard_was_removed_counts_for_nothing(field: Path, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "site")
    push(field, store)
    (tmp_path / "site" / "shards" / sorted(listed(store)[0])[0]).with_suffix(".tar").unlink()
    assert push(field, store).frames > 0
    assert troubles(store) == [] and frames_in(store) == digests(field)


def test_push__tells_of_shards_that_are_damaged(
    field: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = FolderStore(tmp_path / "site")
    push(field, store)
    one, other, third = sorted(listed(store)[0])[:3]
    for digest in (one, other):
        path = tmp_path / "site" / "shards" / f"{digest}.tar"
        path.write_bytes(path.read_bytes()[:-1000])
    (tmp_path / "site" / "index" / f"{other}.jsonl").unlink()
    (tmp_path / "site" / "index" / f"{third}.jsonl").write_text("nonsense")
    shutil.rmtree(field / PUSHED)
    with pytest.raises(StoreError, match=r"is not whole\. Remove it"):
        push(field, store)
    told = capsys.readouterr().err
    assert f"shards/{one}.tar" in told and f"shards/{other}.tar" in told and f"index/{third}.jsonl" in told
    for key in (f"shards/{one}.tar", f"shards/{other}.tar", f"index/{third}.jsonl"):
        store.delete(key)
    push(field, store)
    assert troubles(store) == [] and frames_in(store) == digests(field)


def test_push__one_at_a_time(field: Path, tmp_path: Path) -> None:
    with hold_folder(field / PUSHED, "another push"), pytest.raises(OutputError, match="in use by another push"):
        push(field, FolderStore(tmp_path / "site"))


def test_push__while_the_device_collects(field: Path, tmp_path: Path) -> None:
    with hold_folder(field, "ptedge run"):
        assert push(field, FolderStore(tmp_path / "site")).frames == 10
