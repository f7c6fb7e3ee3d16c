"""The RUN folder."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tiny_detector import CLASS_NAMES, tiny_config

from ptedge.artifacts.checkpoint import Checkpoint, load_checkpoint
from ptedge.config import load_config
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import ArtifactError, OutputError
from ptedge.training.config import AdaptConfig, TrainConfig
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
