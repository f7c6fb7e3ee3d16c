"""The RUN folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch
from tiny_detector import CLASS_NAMES, tiny_config

from ptedge.artifacts.checkpoint import Checkpoint, load_checkpoint
from ptedge.config import load_config
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import ArtifactError, OutputError
from ptedge.folders import hold_folder
from ptedge.training.config import AdaptConfig, TrainConfig
from ptedge.training.run import begin_run
from ptedge.training.run_folder import RunFolder
from ptedge.training.state import read_state, state_of


def _save(folder: RunFolder, model: ProbabilisticFasterRCNN, step: int) -> None:
    folder.save(Checkpoint(tiny_config(), CLASS_NAMES, state_of(model)), {"step": step, "student": state_of(model)})


def test_run_folder__saves_and_loads(model: ProbabilisticFasterRCNN, tmp_path: Path) -> None:
    _save(RunFolder(tmp_path / "run", resume=False), model, 5)
    state = read_state(RunFolder(tmp_path / "run", resume=True).last)
    assert state["step"] == 5
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(state["student"][name], tensor, rtol=0, atol=0)
    assert load_checkpoint(tmp_path / "run" / "model.pt").class_names == CLASS_NAMES


def test_run_folder__refuses_a_folder_with_a_run(model: ProbabilisticFasterRCNN, tmp_path: Path) -> None:
    _save(RunFolder(tmp_path, resume=False), model, 5)
    with pytest.raises(OutputError, match=r"already holds a run.*--resume"):
        RunFolder(tmp_path, resume=False)


def test_run_folder__nothing_to_resume(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"no last\.pt to resume"):
        RunFolder(tmp_path, resume=True)


def test_run_folder__model_is_not_resume_state(model: ProbabilisticFasterRCNN, tmp_path: Path) -> None:
    _save(RunFolder(tmp_path, resume=False), model, 5)
    (tmp_path / "last.pt").write_bytes((tmp_path / "model.pt").read_bytes())
    with pytest.raises(ArtifactError, match="not a ptedge-resume file"):
        read_state(RunFolder(tmp_path, resume=True).last)


def test_start_metrics__cuts_what_will_be_repeated(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path, resume=False)
    folder.start_metrics(0)
    for step in (1, 2, 3, 4):
        folder.log({"step": step, "loss": 0.5})
    path = tmp_path / "metrics.jsonl"
    with open(path, "a") as file:
        file.write('{"step": 5, "lo')  # the power failed here
    folder.start_metrics(2)
    folder.log({"step": 3})
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [1, 2, 3]
    folder.start_metrics(0)
    assert path.read_text() == ""


@pytest.mark.parametrize("cls", [TrainConfig, AdaptConfig])
def test_write_config__is_complete_and_reads_back(cls: type[TrainConfig | AdaptConfig], tmp_path: Path) -> None:
    written = load_config(cls, None, ["seed=3", "optim.steps=17", "augment.zoom=[0.25, 0.75]"])
    RunFolder(tmp_path, resume=False).write_config(written)
    assert load_config(cls, tmp_path / "config.toml") == written


def _checkpoint(model: ProbabilisticFasterRCNN) -> Checkpoint:
    return Checkpoint(tiny_config(), CLASS_NAMES, state_of(model))


def _candidates(folder: RunFolder) -> list[str]:
    return sorted(path.name for path in (folder.path / "checkpoints").iterdir())


def test_keep_candidates__those_that_last_pt_speaks_of_stay_until_it_is_written(
    model: ProbabilisticFasterRCNN, tmp_path: Path
) -> None:
    """A run that is killed goes on from last.pt, which still names them."""
    folder, checkpoint = RunFolder(tmp_path, resume=False), _checkpoint(model)
    for step in (0, 5):
        folder.save_candidate(step, checkpoint)
    folder.save(checkpoint, {"step": 5}, chosen=5)
    folder.save_candidate(10, checkpoint)
    folder.keep_candidates([0, 10])
    assert _candidates(folder) == ["step_000000.pt", "step_000005.pt", "step_000010.pt"]
    folder.save(checkpoint, {"step": 10}, chosen=10)
    assert _candidates(folder) == ["step_000000.pt", "step_000010.pt"]
    folder.keep_candidates([0], saved=True)
    assert _candidates(folder) == ["step_000000.pt"]


def test_save__last_pt_is_written_last_and_candidates_go_after(
    model: ProbabilisticFasterRCNN, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What last.pt names is there whenever it is read: the order of renames, and what lies there at each of them."""
    folder, checkpoint = RunFolder(tmp_path, resume=False), _checkpoint(model)
    folder.save_candidate(5, checkpoint)
    folder.save(checkpoint, {"step": 5}, chosen=5)
    folder.save_candidate(10, checkpoint)
    folder.keep_candidates([10])
    original, seen = os.replace, []

    def replace(source: Path, target: Path) -> None:
        seen.append((target.name, _candidates(folder)))
        original(source, target)

    monkeypatch.setattr(os, "replace", replace)
    folder.save(checkpoint, {"step": 10}, chosen=10)
    both = ["step_000005.pt", "step_000010.pt"]
    assert seen == [("last_model.pt", both), ("model.pt", both), ("last.pt", both)]
    assert _candidates(folder) == ["step_000010.pt"]


@pytest.mark.parametrize("command", ["train", "adapt"])
def test_begin_run__one_process_a_folder(model: ProbabilisticFasterRCNN, tmp_path: Path, command: str) -> None:
    _save(RunFolder(tmp_path, resume=False), model, 5)
    (tmp_path / ".last.pt.1.tmp").write_text("of the process that writes it just now")
    config = load_config(TrainConfig, None, [])

    def begin() -> None:
        with begin_run(tmp_path, config, {"command": command}, CLASS_NAMES, resume=True, val=None, started=0.0) as run:
            assert run.resumed is not None and run.resumed["step"] == 5

    with hold_folder(tmp_path, f"ptedge {command}"), pytest.raises(OutputError, match=f"in use by ptedge {command}"):
        begin()
    assert (tmp_path / ".last.pt.1.tmp").exists()  # nothing of the other one was touched
    begin()
    begin()


def test_run_folder__what_a_killed_process_was_writing_goes(model: ProbabilisticFasterRCNN, tmp_path: Path) -> None:
    _save(RunFolder(tmp_path, resume=False), model, 5)
    (tmp_path / "checkpoints").mkdir()
    for name in (".last.pt.1.tmp", "checkpoints/.step_000005.pt.1.tmp"):
        (tmp_path / name).write_text("half")
    RunFolder(tmp_path, resume=True)
    assert list(tmp_path.rglob("*.tmp")) == []
