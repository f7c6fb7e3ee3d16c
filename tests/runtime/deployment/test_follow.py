"""A run that follows its deployment: takes a new version between two frames, and goes back from a bad one."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from made_deployments import deployed, numbered_bundle, promoted
from pipeline_fakes import Keep
from tiny_model import ANSWER, tiny_bundle, tiny_onnx

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.errors import ArtifactError
from ptedge.frames.source import Frame
from ptedge.machine.memory import Memory
from ptedge.runtime.counters import RunCounters, RunSource
from ptedge.runtime.deployment import change, follow
from ptedge.runtime.deployment.change import rollback
from ptedge.runtime.deployment.follow import Follower
from ptedge.runtime.deployment.place import Deployment
from ptedge.runtime.deployment.trial import EVERY
from ptedge.runtime.pipeline import Pipeline, Rules


def load(path: Path) -> BundlePredictor:
    return BundlePredictor(path, "cpu", 1)


def followed(deployment: Deployment, probation: float = 0.0) -> tuple[Follower, list[str]]:
    told: list[str] = []
    return Follower(deployment, load, told.append, probation), told


def detect(follower: Follower, count: int, at: dict[int, Callable[[], None]] | None = None) -> list[str | None]:
    """Run over frames; version of each answer, none of which is missing. ``at``: done after so many results."""

    def then(done: int) -> None:
        (at or {}).get(done, lambda: None)()

    pictures = [Frame(np.full((64, 96, 3), i % 255, np.uint8), i, i / 10, "test", None) for i in range(count)]
    keep = Keep(then=then)
    counters = RunCounters([RunSource("s", "source")])
    Pipeline([pictures], follower.slot, [keep], counters, Rules(), threading.Event()).run()
    assert keep.indices == list(range(count))
    assert all(len(result.detections) for result in keep.results)
    return [result.version for result in keep.results]


def broken_bundle(folder: Path) -> Path:
    """Passes a gate that does not look, and then returns what is no number."""
    return tiny_bundle(folder, tiny_onnx({**ANSWER, "sigma": [[1, 2, 3, np.nan], [1, 1, 1, 1]]})).path


@pytest.fixture
def no_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(change, "run_gate", lambda *_: [])


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fails shows in the run, not before."""
    monkeypatch.setattr(follow, "warm", lambda predictor: None)


def test_look__takes_a_new_version_between_two_frames(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 1)
    follower, told = followed(deployment)
    new: list[str] = []
    follower.switched = lambda model: new.append(str(model.version))

    def promote() -> None:
        promoted(numbered_bundle(tmp_path / "new", 1), deployment.path)
        follower.look()

    versions = detect(follower, 60, {20: promote})
    first, second = deployment.state().running
    change_at = versions.index(second)
    assert versions == [first] * change_at + [second] * (60 - change_at)
    assert 20 <= change_at <= 20 + 16  # what was prepared already
    assert new == [second]
    assert follower.to_json()["switches"][0]["from"] == first
    assert "MB of memory needed" in told[0] and "runs now, before it" in told[1]


def test_look__follows_a_rollback_and_is_idle_otherwise(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 2)
    follower, told = followed(deployment)
    follower.look()
    assert told == []
    back = rollback(deployment).version
    follower.look()
    assert set(detect(follower, 3)) == {back}


def test_look__a_version_that_cannot_be_loaded_goes_back(tmp_path: Path, no_gate: None) -> None:
    deployment = deployed(tmp_path, 1)
    follower, told = followed(deployment, probation=60)
    promoted(broken_bundle(tmp_path / "new"), deployment.path)
    follower.look()
    last = deployment.history()[-1]
    assert (last.action, last.automatic, last.version) == ("rollback", True, deployment.history()[0].version)
    assert "cannot be loaded" in last.why and "not finite" in last.why
    assert set(detect(follower, 3)) == {last.version}
    number = len(told)
    follower.look()
    assert len(told) == number
    promoted(tmp_path / "new", deployment.path, again=True)
    follower.look()
    assert len(told) > number and deployment.history()[-1].action == "rollback"


def test_look__other_classes_or_no_memory_leave_the_run_and_the_deployment_as_they_are(
    tmp_path: Path, no_gate: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    deployment = deployed(tmp_path, 1)
    follower, told = followed(deployment, probation=60)
    promoted(numbered_bundle(tmp_path / "vans", 1, class_names=("van", "person")), deployment.path)
    follower.look()
    assert "Start the run again to take it" in told[-1]
    monkeypatch.setattr(follow, "main_memory", lambda: Memory(-1, 10**9))
    promoted(numbered_bundle(tmp_path / "big", 2), deployment.path)
    follower.look()
    assert "MB free. Start the run again" in told[-1]
    assert set(detect(follower, 3)) == {deployment.history()[0].version}
    assert [entry.action for entry in deployment.history()] == ["promote"] * 3


def test_probation__errors_cost_no_frame_and_are_recorded(tmp_path: Path, no_gate: None, cold: None) -> None:
    deployment = deployed(tmp_path, 1)
    follower, _ = followed(deployment, probation=60)

    def promote() -> None:
        promoted(broken_bundle(tmp_path / "new"), deployment.path)
        follower.look()

    versions = detect(follower, 60, {20: promote})
    first = deployment.history()[0].version
    assert set(versions) == {first}
    follower.look()
    last = deployment.history()[-1]
    assert (last.action, last.automatic, last.version) == ("rollback", True, first)
    assert last.why.startswith("error: the model returned sigma that are not finite")
    assert deployment.state().withdrawn[last.before] == last.why
    assert [switch["to"] for switch in follower.to_json()["switches"]] == [last.before, first]


def test_probation__a_version_that_finds_nothing_goes_back(tmp_path: Path, no_gate: None) -> None:
    deployment = deployed(tmp_path, 1)
    promoted(tiny_bundle(tmp_path / "blind", tiny_onnx({**ANSWER, "scores": [0.06, 0.051]})).path, deployment.path)
    follower, _ = followed(deployment, probation=60)
    versions = detect(follower, 60 * EVERY)
    first, second = (entry.version for entry in deployment.history())
    assert versions[0] == second and versions[-1] == first
    follower.look()
    assert "finds less than 1/2" in deployment.history()[-1].why
    # a run that begins now takes the one before, and is on no probation
    again, _ = followed(deployment, probation=60)
    assert set(detect(again, 3)) == {first} and again.to_json()["probation"] is None


def test_probation__is_passed_once(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 2)
    follower, told = followed(deployment, probation=0.001)
    detect(follower, EVERY)
    follower.look()
    entry = deployment.history()[-1]
    assert (entry.action, entry.automatic, entry.version) == ("keep", True, deployment.history()[1].version)
    assert "frames" in entry.why and "passed its probation" in told[-1]
    detect(follower, 3)
    again, _ = followed(deployment, probation=60)
    assert again.to_json()["probation"] is None


def test_probation__ends_with_a_rollback_by_hand(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 2)
    follower, _ = followed(deployment, probation=60)
    back = rollback(deployment).version
    follower.look()
    assert set(detect(follower, 3)) == {back}
    assert follower.to_json()["probation"] is None


def test_probation__a_third_version_begins_its_own(tmp_path: Path, no_gate: None, cold: None) -> None:
    deployment = deployed(tmp_path, 2)
    follower, _ = followed(deployment, probation=60)
    detect(follower, 3)
    promoted(broken_bundle(tmp_path / "new"), deployment.path)
    follower.look()
    assert set(detect(follower, 3)) == {deployment.history()[1].version}
    follower.look()
    assert deployment.history()[-1].version == deployment.history()[1].version


def test_open__a_version_that_is_not_whole_gives_way_to_the_one_before(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 2)
    first, second = (entry.version for entry in deployment.history())
    (deployment.path / "versions" / second / "model.onnx").write_bytes(b"other")
    with pytest.raises(ArtifactError, match="was changed since"):
        followed(deployment)
    follower, told = followed(deployment, probation=60)
    assert set(detect(follower, 3)) == {first}
    assert deployment.state().version == first and "is not taken: " in told[0]


def test_open__what_cannot_be_recorded_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = deployed(tmp_path, 2)
    second = deployment.history()[1].version
    (deployment.path / "versions" / second / "model.onnx").write_bytes(b"other")
    shutil.rmtree(deployment.path / "versions" / deployment.history()[0].version)
    told: list[str] = []
    with pytest.raises(ArtifactError):
        Follower(deployment, load, told.append, 60)
    assert "was not recorded" in told[-1]


def test_open__a_version_that_runs_die_of_is_not_tried_for_ever(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 2)
    first, second = (entry.version for entry in deployment.history())
    for _ in range(follow.MOST_CRASHES):
        follower, _ = followed(deployment, probation=60)
        assert follower.slot.current.version == second
        follower.close()  # as it should be: no crash
    for _ in range(follow.MOST_CRASHES):
        follower, _ = followed(deployment, probation=60)  # never closed; this process stands for one that is gone
        assert follower.slot.current.version == second
    follower, told = followed(deployment, probation=60)
    assert follower.slot.current.version == first
    assert "3 runs died in its probation" in told[0]
    assert deployment.state().withdrawn == {second: "3 runs died in its probation"}
