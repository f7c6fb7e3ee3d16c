"""Promote and roll back: what runs afterwards, what is refused, and that power may fail at any moment."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from made_deployments import deployed, numbered_bundle, promoted
from power_loss import CASES, each_loss

from ptedge.artifacts.bundle import open_bundle
from ptedge.errors import ArtifactError, InputError, OutputError
from ptedge.runtime.deployment import change
from ptedge.runtime.deployment.change import promote, rollback
from ptedge.runtime.deployment.check import GateCheck
from ptedge.runtime.deployment.history import Entry, append
from ptedge.runtime.deployment.options import GateOptions
from ptedge.runtime.deployment.place import Deployment


def running_score(deployment: Deployment) -> int:
    """Number of the bundle that runs, which must be whole."""
    state = deployment.state()
    assert state.version is not None
    bundle = open_bundle(deployment.folder_of(state.version, state.files[state.version]))
    return int(bundle.manifest.created or -1)


@pytest.fixture
def no_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Power-loss tests promote hundreds of times."""
    monkeypatch.setattr(change, "run_gate", lambda *_: [])


def test_promote__first_then_second(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 2)
    state = deployment.state()
    assert [entry.action for entry in deployment.history()] == ["promote", "promote"]
    assert state.earlier == deployment.history()[0].version
    folder = deployment.folder_of(state.running[-1], state.files[state.running[-1]])
    assert open_bundle(folder).model_hash == open_bundle(tmp_path / "bundle1").model_hash
    checks = {check.name: check for check in deployment.history()[1].checks}
    assert checks["answers"].judged and checks["classes"].judged and checks["answers"].passed


def test_promote__what_runs_already_is_no_new_entry(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 1)
    done = promoted(tmp_path / "bundle0", deployment.path)
    assert not done.promoted and done.checks == ()
    assert len(deployment.history()) == 1


def test_promote__not_what_fails_unless_accepted(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 1)
    other = numbered_bundle(tmp_path / "other", 5, class_names=("van", "person"))
    done = promoted(other, deployment.path)
    assert not done.promoted
    assert [check.name for check in done.checks if not check.passed] == ["classes"]
    assert len(deployment.history()) == 1
    assert not any(done.version in item.key for item in deployment.store.list("versions/"))
    accepting = GateOptions(backend="cpu", seconds=0, accept=("classes",))
    assert promoted(other, deployment.path, accepting).promoted
    assert [check.name for check in deployment.history()[-1].checks if check.accepted] == ["classes"]


def test_promote__not_what_was_rolled_back_unless_asked_again(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 2)
    rollback(deployment, why="misses vans")
    with pytest.raises(InputError, match=r"rolled back \(misses vans\)"):
        promoted(tmp_path / "bundle1", deployment.path)
    assert promoted(tmp_path / "bundle1", deployment.path, again=True).promoted


def test_promote__dry_run_changes_nothing(tmp_path: Path) -> None:
    bundle = numbered_bundle(tmp_path / "bundle", 0)
    done = promoted(bundle, tmp_path / "deployment", dry_run=True)
    assert done.checks and not done.promoted
    assert not (tmp_path / "deployment").exists()


def test_promote__refuses_a_place_of_something_else(tmp_path: Path) -> None:
    bundle = numbered_bundle(tmp_path / "bundle", 0)
    with pytest.raises(OutputError, match="other than a deployment"):
        promoted(bundle, tmp_path / "bundle")
    with pytest.raises(InputError, match="an ONNX file alone"):
        promoted(bundle / "model.onnx", tmp_path / "deployment")


def test_promote__one_that_another_came_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deployment = deployed(tmp_path, 1)

    def meanwhile(*_: object) -> list[GateCheck]:
        append(deployment.store, lambda state: Entry(state.number + 1, "promote", "other", state.version or ""))
        return []

    monkeypatch.setattr(change, "run_gate", meanwhile)
    with pytest.raises(OutputError, match="promoted or rolled back to meanwhile"):
        promoted(numbered_bundle(tmp_path / "bundle1", 1), deployment.path)


def test_promote__keeps_files_of_the_last_versions_alone(tmp_path: Path, no_gate: None) -> None:
    deployment = deployed(tmp_path, 3)
    names = [entry.version for entry in deployment.history()]
    done = promoted(numbered_bundle(tmp_path / "bundle3", 3), deployment.path, keep=2)
    assert done.removed == tuple(names[:2])
    assert {item.key.split("/")[1] for item in deployment.store.list("versions/")} == {names[2], done.version}
    assert rollback(deployment).version == names[2]
    with pytest.raises(ArtifactError, match="cannot be read"):
        rollback(deployment)


def test_rollback__to_the_one_before_or_a_named_one(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 3)
    first, second, third = (entry.version for entry in deployment.history())
    entry = rollback(deployment, to=first[:6], why="so")
    assert (entry.version, entry.before, entry.why) == (first, third, "so")
    with pytest.raises(InputError, match="no other version"):
        rollback(deployment)
    with pytest.raises(InputError, match="0 versions"):
        rollback(deployment, to="zz")
    assert deployment.state().version == first and second not in deployment.state().running


def test_rollback__leaves_another_version_than_the_expected_alone(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 2)
    with pytest.raises(OutputError, match="does not run there any more"):
        rollback(deployment, expected=deployment.history()[0].version)
    assert len(deployment.history()) == 2


def test_rollback__refuses_a_version_that_is_not_whole(tmp_path: Path) -> None:
    deployment = deployed(tmp_path, 2)
    first = deployment.history()[0].version
    (deployment.path / "versions" / first / "model.onnx").write_bytes(b"other")
    with pytest.raises(ArtifactError, match="was changed since"):
        rollback(deployment)
    assert deployment.state().version != first


def _promote(folder: Path, bundle: Path) -> None:
    promote(bundle, folder, GateOptions(), keep=2)


def _roll_back(folder: Path, bundle: Path) -> None:
    rollback(Deployment(folder))


ACTS: dict[str, tuple[int, Callable[[Path, Path], None]]] = {  # versions before, and what is done
    "first promotion": (0, _promote),
    "second promotion": (1, _promote),
    "promotion that removes old versions": (3, _promote),
    "rollback": (2, _roll_back),
}


@pytest.mark.parametrize("name", list(ACTS))
def test_power_loss__leaves_one_whole_version_and_what_was_done_can_be_done_again(
    tmp_path: Path, no_gate: None, name: str
) -> None:
    count, act = ACTS[name]
    for number in range(count + 1):
        numbered_bundle(tmp_path / f"bundle{number}", number, created=str(number))
        if number < count:
            promoted(tmp_path / f"bundle{number}", tmp_path / "before")
    (tmp_path / "before").mkdir(exist_ok=True)
    new = tmp_path / f"bundle{count}"
    numbers = iter(range(10_000))
    made = Deployment(tmp_path / "before")
    allowed = {count - 1, count if name != "rollback" else count - 2}

    def make() -> Path:
        return Path(shutil.copytree(made.path, tmp_path / f"disk{next(numbers)}"))

    steps = 0
    for disk, lost in each_loss(make, lambda folder: act(folder, new)):
        for case in CASES:
            left = Deployment(disk.left(case, tmp_path / f"left{next(numbers)}"))
            runs = running_score(left) if left.history() else -1
            assert runs in allowed if lost else runs == max(allowed - {count - 1}), (disk.changes, case)
            if lost and runs == count - 1:
                act(left.path, new)
                assert running_score(left) in allowed - {count - 1}
            shutil.rmtree(left.path)
        steps += lost
        shutil.rmtree(disk.root)
    assert steps >= 5  # an entry alone: written, on disk, linked, its folder on disk, the other name gone
