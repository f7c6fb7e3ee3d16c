"""Deployments in a bucket: promoted to, followed, and run from the copy while the bucket is away."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner
from faulty_store import FaultyStore
from made_deployments import kept, numbered_bundle, promoted
from servers.buckets import address, bucket_server
from tiny_model import ANSWER, tiny_bundle, tiny_onnx

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.cli import cli
from ptedge.errors import ArtifactError, InputError, OutputError, StoreError
from ptedge.files import user_cache
from ptedge.runtime.deployment import change, history
from ptedge.runtime.deployment.change import rollback
from ptedge.runtime.deployment.channels import pass_on, tried
from ptedge.runtime.deployment.follow import Follower
from ptedge.runtime.deployment.place import Deployment, new_deployment, open_deployment
from ptedge.stores.copied import CopiedStore
from ptedge.stores.store import Content

pytestmark = pytest.mark.usefixtures("bucket_keys")


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(history, "SETTLE", 0.0)  # there is one writer here


@pytest.fixture
def place(request: pytest.FixtureRequest) -> str:
    """The address of an empty place; of rclone where a test names no server."""
    kind = getattr(request, "param", "rclone")
    return address(request.getfixturevalue(f"{kind}_server"), uuid.uuid4().hex)


def both(test: Callable[..., None]) -> Callable[..., None]:
    return pytest.mark.parametrize("place", ["rclone", "moto"], indirect=True)(test)


def load(path: Path) -> BundlePredictor:
    return BundlePredictor(path, "cpu", 1)


def follow(place: str, cache: Path, probation: float = 0.0) -> tuple[Follower, list[str]]:
    told: list[str] = []
    return Follower(open_deployment(place, cache), load, told.append, probation), told


def faulty(deployment: Deployment, number: int | None) -> FaultyStore:
    """Have a request to the bucket fail, counted from now."""
    assert isinstance(deployment.store, CopiedStore)
    deployment.store.far = FaultyStore(deployment.store.far, number)
    return deployment.store.far


class Away(FaultyStore):
    """Nothing is answered."""

    def _fails(self) -> bool:
        self.requests += 1
        return True


class ReadOnly(FaultyStore):
    """As with a key that may read alone."""

    def put(self, key: str, content: Content) -> bool:
        raise StoreError(f"cannot put {key}: refused")


@both
def test_commands__work_on_an_address_as_on_a_folder(place: str, tmp_path: Path) -> None:
    def call(*words: object) -> dict[str, object]:
        done = CliRunner().invoke(cli, [*map(str, words), "--json"])
        assert done.exit_code == 0, (done.exception, done.stderr)
        document: dict[str, object] = json.loads(done.stdout)
        return document

    gate = ("--to", place, "--seconds", "0", "--backend", "cpu")
    first, second = (call("promote", numbered_bundle(tmp_path / f"b{n}", n), *gate)["version"] for n in (0, 1))
    assert call("rollback", place, "--why", "misses vans")["version"] == first
    document = call("history", place)
    assert (document["version"], document["withdrawn"]) == (first, {second: "misses vans"})
    (tmp_path / "pictures").mkdir()
    for number in range(3):
        cv2.imwrite(str(tmp_path / f"pictures/{number}.png"), np.full((64, 96, 3), number * 20, np.uint8))
    words = ("--cache", tmp_path / "copy", "--out", tmp_path / "out", "--save", "jsonl", "--backend", "cpu")
    report = call("run", place, tmp_path / "pictures", *words)
    assert report["deployment"]["version"] == first and report["frames"] == 3  # type: ignore[index]
    assert call("history", tmp_path / "copy")["version"] == first  # the copy is a deployment itself


def test_open__what_is_no_deployment_is_told(place: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is no deployment.*ptedge promote BUNDLE --to s3://frames/"):
        open_deployment(place)
    Deployment(place).store.put("shards/a.tar", b"frames")
    with pytest.raises(OutputError, match=r"other than a deployment \(shards\)"):
        new_deployment(place)


@both
def test_look__fetches_a_new_version_and_forgets_old_ones(place: str, tmp_path: Path) -> None:
    for number in (0, 1):
        promoted(numbered_bundle(tmp_path / f"b{number}", number), place)
    follower, _ = follow(place, tmp_path / "copy")
    first, second = Deployment(place).state().running
    assert follower.slot.current.version == second
    assert [folder.name for folder in (tmp_path / "copy" / "versions").iterdir()] == [second]
    third = promoted(numbered_bundle(tmp_path / "b2", 2), place).version
    follower.look()
    assert follower.slot.current.version == third
    assert {folder.name for folder in (tmp_path / "copy" / "versions").iterdir()} == {second, third}
    rollback(Deployment(place), to=first)
    follower.look()
    assert follower.slot.current.version == first
    follower.close()


def test_look__asks_one_thing_while_nothing_changes(place: str, tmp_path: Path) -> None:
    promoted(numbered_bundle(tmp_path / "b0", 0), place)
    follower, _ = follow(place, tmp_path / "copy")
    counting = faulty(follower._followed.deployment, None)
    for _ in range(5):
        follower.look()
    assert counting.requests == 5


def test_look__interrupted_at_any_request_is_gone_on_with(place: str, tmp_path: Path) -> None:
    first = promoted(numbered_bundle(tmp_path / "b0", 0), place).version
    follower, _ = follow(place, tmp_path / "copy")
    second = promoted(numbered_bundle(tmp_path / "b1", 1), place).version
    counting = faulty(follower._followed.deployment, 0)
    for number in range(100):
        counting.requests, counting.number = 0, number
        follower.looks.once()
        if counting.requests <= number:
            break
        assert follower.slot.current.version == first
    # is there another entry; the history, its new entry; two files, each with its size
    assert number >= 3 and follower.slot.current.version == second
    assert follower.to_json()["failed_looks"] == number


def test_begin__interrupted_at_any_request_runs_what_is_here(place: str, tmp_path: Path) -> None:
    first = promoted(numbered_bundle(tmp_path / "b0", 0), place).version
    follow(place, tmp_path / "copy")
    second = promoted(numbered_bundle(tmp_path / "b1", 1), place).version
    ran = []
    for number in range(100):
        shutil.copytree(tmp_path / "copy", tmp_path / f"copy{number}")
        deployment = open_deployment(place, tmp_path / f"copy{number}")
        counting = faulty(deployment, number)
        follower = Follower(deployment, load, lambda text: None)
        ran.append(follower.slot.current.version)
        counting.number = None
        follower.look()
        assert follower.slot.current.version == second
        if counting.requests < number:
            break
    assert set(ran[:-3]) == {first} and ran[-1] == second


@pytest.mark.parametrize("kind", ["rclone", "moto"])
def test_begin__from_the_copy_while_the_server_is_away(kind: str, tmp_path: Path) -> None:
    with bucket_server(kind, tmp_path / "server") as endpoint:
        place = address(endpoint, "north")
        version = promoted(numbered_bundle(tmp_path / "b0", 0), place).version
        follower, _ = follow(place, tmp_path / "copy")
    with pytest.raises(StoreError, match="does not answer"):
        open_deployment(place, tmp_path / "empty")
    follower.looks.once()
    again, told = follow(place, tmp_path / "copy")
    for one in (follower, again):
        assert one.slot.current.version == version
        assert one.to_json()["failed_looks"] == 1 and one.to_json()["away_since"] is not None
    assert "cannot be followed; what runs goes on: " in told[0]


def test_looks__told_once_when_away_and_once_when_back(place: str, tmp_path: Path) -> None:
    promoted(numbered_bundle(tmp_path / "b0", 0), place)
    follower, told = follow(place, tmp_path / "copy")
    store = follower._followed.deployment.store
    assert isinstance(store, CopiedStore)
    there, store.far = store.far, Away(store.far)
    for _ in range(3):
        follower.looks.once()
    store.far = there
    follower.looks.once()
    assert [text.partition(": ")[0] for text in told] == [
        f"{place} cannot be followed; what runs goes on",
        f"{place} is followed again, after 3 looks that failed",
    ]
    assert follower.to_json()["looks"] == 4 and follower.to_json()["away_since"] is None


def test_fetch__what_is_damaged_in_the_bucket_never_runs(place: str, tmp_path: Path) -> None:
    first = promoted(numbered_bundle(tmp_path / "b0", 0), place).version
    follower, _ = follow(place, tmp_path / "copy", probation=60)
    second = promoted(numbered_bundle(tmp_path / "b1", 1), place).version
    far = Deployment(place, tmp_path / "other").store
    model = f"versions/{second}/model.onnx"
    far.delete(model)
    far.put(model, b"something else")
    with pytest.raises(ArtifactError, match="is not what was promoted"):
        follower.look()
    assert follower.slot.current.version == first
    far.delete(model)
    far.put(model, tmp_path / "b1" / "model.onnx")
    follower.look()
    assert follower.slot.current.version == second
    assert [entry.action for entry in Deployment(place).history()] == ["promote", "promote"]


def test_send_back__by_who_may_not_write_is_for_this_machine_alone(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change, "run_gate", lambda *_: [])
    broken = tiny_bundle(tmp_path / "broken", tiny_onnx({**ANSWER, "sigma": [[1, 2, 3, np.nan], [1, 1, 1, 1]]})).path
    first = promoted(numbered_bundle(tmp_path / "b0", 0), place).version

    def device(cache: str) -> tuple[Follower, list[str]]:
        told: list[str] = []
        deployment = open_deployment(place, tmp_path / cache)
        assert isinstance(deployment.store, CopiedStore)
        deployment.store.far = ReadOnly(deployment.store.far)
        return Follower(deployment, load, told.append, 60), told

    follower, told = device("copy")
    second = promoted(broken, place).version
    follower.look()
    assert follower.slot.current.version == first and "was not recorded there" in told[-1]
    assert Deployment(place).state().version == second  # the others decide for themselves
    again, _ = device("copy")
    assert again.slot.current.version == first
    again.look()
    third = promoted(numbered_bundle(tmp_path / "b2", 2), place).version
    for one in (follower, again):
        one.look()
        assert one.slot.current.version == third


def test_send_back__what_could_not_be_recorded_is_tried_again(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(change, "run_gate", lambda *_: [])
    broken = tiny_bundle(tmp_path / "broken", tiny_onnx({**ANSWER, "sigma": [[1, 2, 3, np.nan], [1, 1, 1, 1]]})).path
    first = promoted(numbered_bundle(tmp_path / "b0", 0), place).version
    follower, _ = follow(place, tmp_path / "copy", probation=60)
    promoted(broken, place)
    store = follower._followed.deployment.store
    assert isinstance(store, CopiedStore)
    there, store.far = store.far, ReadOnly(store.far)
    follower.look()
    assert Deployment(place).state().version != first
    store.far = there
    follower.look()
    last = Deployment(place).history()[-1]
    assert (last.action, last.automatic, last.version) == ("rollback", True, first)


def test_history__of_a_place_that_was_emptied_and_begun_anew(place: str, tmp_path: Path) -> None:
    promoted(numbered_bundle(tmp_path / "b0", 0), place)
    old = Deployment(place, tmp_path / "copy").history()
    store = Deployment(place, tmp_path / "other").store
    for item in list(store.list()):
        store.delete(item.key)
    version = promoted(numbered_bundle(tmp_path / "b11", 3, class_names=("lorry", "person")), place).version
    again = Deployment(place, tmp_path / "copy")
    assert again.state().version == version != old[0].version


@both
def test_pass_on__between_buckets_and_folders(place: str, tmp_path: Path) -> None:
    canary = f"{place.replace('?', '/canary?')}"
    promoted(numbered_bundle(tmp_path / "b0", 0), canary)
    promoted(numbered_bundle(tmp_path / "b1", 1), canary)
    source = open_deployment(canary)
    kept(source)
    version = tried(source)
    for to in (place.replace("?", "/north?"), tmp_path / "south"):
        assert pass_on(version, to).promoted
        deployment = Deployment(to)
        entry = deployment.history()[0]
        assert entry.origin == f"{canary}, entry 2"
        assert deployment.folder_of(entry.version, entry.files).is_dir()
    assert user_cache().is_relative_to(tmp_path)
