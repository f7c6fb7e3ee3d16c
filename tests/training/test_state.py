"""last.pt: what is refused, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import ArtifactError
from ptedge.training.config import OptimConfig
from ptedge.training.optim import build_optimizer
from ptedge.training.state import read_state, restore, state_of, write_state


def test_state_of__is_safe_from_later_updates(model: ProbabilisticFasterRCNN) -> None:
    state = state_of(model)
    before = state["anchors.log_wh"].clone()
    with torch.no_grad():
        model.anchors.log_wh.fill_(0.0)
    assert torch.equal(state["anchors.log_wh"], before)


@pytest.mark.parametrize(
    ("identity", "message"),
    [
        ({"command": "adapt"}, "it is a run of ptedge train. Resume it with that command"),
        ({"kind": "source_free"}, "it was begun with --source DATA"),
        ({"with_source": True}, "it was begun with --source-free"),
        ({"labels": "ab"}, "what --labels names is not what it was begun with"),
        ({"teacher_boxes": ""}, "what --teacher-boxes names is not what it was begun with"),
        ({"parent": "0" * 64}, r"another checkpoint \(sha256 abc\)"),
        ({"classes": ["cat"]}, r"it learns \['car'\], but the data has \['cat'\]"),
        ({"optimizer_name": "adamw"}, "optim.optimizer is 'adamw', but the run has 'sgd'"),
        ({"model": {"nms": 0.5, "weights": 1}}, "model.nms is 0.5, but the run has 0.4"),
    ],
)
def test_read_state__of_another_run(tmp_path: Path, identity: dict[str, object], message: str) -> None:
    saved: dict[str, object] = {"command": "train", "kind": "adapted", "parent": "abc", "classes": ["car"]}
    saved.update(optimizer_name="sgd", with_source=False, labels="cd", teacher_boxes="ef")
    write_state(tmp_path / "last.pt", {**saved, "model": {"nms": 0.4}, "step": 3})
    with pytest.raises(ArtifactError, match=message) as caught:
        read_state(tmp_path / "last.pt", identity)
    assert f"cannot resume {tmp_path}: " in str(caught.value)


def test_read_state__a_name_that_the_file_lacks_is_passed_over(tmp_path: Path) -> None:
    write_state(tmp_path / "last.pt", {"step": 3})
    assert read_state(tmp_path / "last.pt", {"align.method": "none"})["step"] == 3


def test_restore__models_optimiser_and_step(model: ProbabilisticFasterRCNN, tmp_path: Path) -> None:
    path, optimizer = tmp_path / "last.pt", build_optimizer(model, OptimConfig())
    write_state(path, {"step": 3, "student": state_of(model), "optimizer": optimizer.state_dict()})
    before = model.anchors.log_wh.detach().clone()
    with torch.no_grad():
        model.anchors.log_wh.fill_(0.0)
    assert restore(path, read_state(path), optimizer, {"student": model}) == 3
    assert torch.equal(model.anchors.log_wh, before)
    with pytest.raises(ArtifactError, match="incomplete or of a model with other settings"):
        restore(path, read_state(path), optimizer, {"student": model, "teacher": model})
