"""Watched frames: the same ones, asked again and again, in both views."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from made_detections import scored

from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import RawDetections
from ptedge.frames.source import index_frames
from ptedge.training.batches.augment import AugmentConfig
from ptedge.training.teacher import make_teacher
from ptedge.training.watch.monitor_set import MonitorConfig, MonitorSet, moved_detections


def test_moved_detections__follow_the_view_and_leave_it() -> None:
    found = scored((0.9, 0, [10.0, 10.0, 20.0, 20.0]), (0.8, 1, [80.0, 10.0, 90.0, 20.0]))
    moved = moved_detections(found, torch.tensor([1.5, -3.0, 0.0, 0.0, 0.0, 96.0, 64.0]))
    # the second one lies at 117 to 132, outside a picture 96 wide
    torch.testing.assert_close(moved.boxes, torch.tensor([[12.0, 15.0, 27.0, 30.0]]))
    assert moved.labels.tolist() == [0]
    torch.testing.assert_close(moved.scores, torch.tensor([0.9]))


def test_moved_detections__half_of_a_box_must_be_left() -> None:
    boxes = [[-4.0, 10.0, 6.0, 20.0], [-6.0, 10.0, 4.0, 20.0], [-5.0, 10.0, 5.0, 20.0]]  # 60 %, 40 %, half
    found = scored(*((0.9 - 0.1 * i, 0, box) for i, box in enumerate(boxes)))
    moved = moved_detections(found, torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0, 96.0, 64.0]))
    torch.testing.assert_close(moved.boxes, torch.tensor([[0.0, 10.0, 6.0, 20.0]]))
    low = scored((0.9, 0, [10.0, 60.0, 20.0, 67.0]), (0.8, 1, [10.0, 60.0, 20.0, 69.0]))  # beyond the lower edge
    assert moved_detections(low, torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0, 96.0, 64.0])).labels.tolist() == [0]
    down = moved_detections(
        scored((0.9, 0, [10.0, 10.0, 20.0, 20.0])), torch.tensor([1.0, 2.0, 3.0, 0.0, 0.0, 96.0, 64.0])
    )
    torch.testing.assert_close(down.boxes, torch.tensor([[12.0, 13.0, 22.0, 23.0]]))


def test_monitor_set__asks_the_same_frames_again(model: ProbabilisticFasterRCNN, target_frames: Path) -> None:
    def watched() -> MonitorSet:
        config = MonitorConfig(frames=3, every=1)
        frames = index_frames(str(target_frames))
        return MonitorSet(frames, (64, 96), AugmentConfig(), config, 7, torch.device("cpu"))

    first, again = watched(), watched()
    assert len(first.weak) == 3
    assert torch.equal(first.weak, again.weak) and torch.equal(first.strong, again.strong)
    teacher = make_teacher(model)
    first.remember(teacher)
    again.remember(teacher)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    signals = first.read(teacher, model)
    assert signals == again.read(teacher, model)
    assert signals["source_agreement"] == pytest.approx(1.0)
    assert signals["histogram_distance"] in (0.0, None)
    # reading leaves no trace in the student: neither statistics nor mode
    assert model.training
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, before[name])


def test_read__who_still_is_the_snapshot_is_not_asked_again(
    model: ProbabilisticFasterRCNN, target_frames: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frames = index_frames(str(target_frames))
    config = MonitorConfig(frames=2, every=1)
    watched = MonitorSet(frames, (64, 96), AugmentConfig(), config, 7, torch.device("cpu"))
    unspared = MonitorSet(frames, (64, 96), AugmentConfig(), config, 7, torch.device("cpu"))
    snapshot, teacher = make_teacher(model), make_teacher(model)
    watched.remember(snapshot)
    unspared.start = watched.start
    asked: list[torch.nn.Module] = []
    detect = ProbabilisticFasterRCNN.detect

    def counting(self: ProbabilisticFasterRCNN, images: torch.Tensor) -> list[RawDetections]:
        asked.append(self)
        return detect(self, images)

    monkeypatch.setattr(ProbabilisticFasterRCNN, "detect", counting)
    assert watched.read(teacher, model) == unspared.read(teacher, model)
    assert asked == [teacher, teacher, teacher, model]  # the strong view alone; then all three
    asked.clear()
    with torch.no_grad():
        model.roi_head.logits.bias[0] += 1.0
    assert watched.read(teacher, model) == unspared.read(teacher, model)
    assert asked == [teacher, model, teacher, teacher, model]


def test_monitor_config__readings_fall_on_logged_steps() -> None:
    assert MonitorConfig(every=20).steps(20) == 20
    assert MonitorConfig(every=20).steps(15) == 30
    assert MonitorConfig(every=20).steps(50) == 50


class Made(torch.nn.Module):
    """Says what it is told to of the weak and of the strong view of one frame."""

    num_classes = 2

    def __init__(self, watched: MonitorSet, weak: RawDetections, strong: RawDetections) -> None:
        super().__init__()
        self.watched, self.answers = watched, (weak, strong)
        self.asked_in_training = False

    def detect(self, images: torch.Tensor) -> list[RawDetections]:
        self.asked_in_training |= self.training
        return [self.answers[not torch.equal(images.to(torch.uint8), self.watched.weak)]]


def test_read__each_signal_compares_what_it_says(target_frames: Path) -> None:
    frames = index_frames(str(target_frames))
    config = MonitorConfig(frames=1, every=1)
    watched = MonitorSet(frames, (64, 96), AugmentConfig(), config, 7, torch.device("cpu"))
    watched.views = torch.tensor(
        [[2.0, 4.0, 0.0, 0.0, 0.0, 96.0, 64.0]]
    )  # the strong view: twice as large, four pixels to the right
    box, wide, there = [10.0, 10.0, 20.0, 20.0], [10.0, 10.0, 21.0, 20.0], [24.0, 20.0, 44.0, 40.0]
    start = Made(watched, scored((0.5, 0, box), (0.3, 1, box)), scored())
    teacher = Made(watched, scored((0.7, 0, wide)), scored((0.6, 0, there)))
    student = Made(watched, scored((0.4, 0, box), (0.6, 1, box)), scored()).train()
    watched.remember(start)  # type: ignore[arg-type]
    signals = watched.read(teacher.eval(), student)  # type: ignore[arg-type]
    assert signals["boxes"] == 1.0 and signals["classes"] == [1.0, 0.0]
    assert signals["histogram_distance"] == pytest.approx(0.3 / 0.8)
    assert signals["source_agreement"] == pytest.approx(2 * 0.5 / 1.5, abs=1e-6)
    assert signals["source_coverage"] == pytest.approx(0.5 / 0.8)
    assert (signals["width_ratio"], signals["height_ratio"]) == pytest.approx((1.1, 1.0))
    assert signals["student_agreement"] == pytest.approx(2 * 0.4 / 1.7, abs=1e-6)
    assert signals["consistency"] == pytest.approx(2 * 0.6 / 1.3, abs=1e-6)
    assert not student.asked_in_training and student.training


def test_monitor_set__no_more_frames_than_there_are(target_frames: Path) -> None:
    frames = index_frames(str(target_frames))
    watched = MonitorSet(frames, (64, 96), AugmentConfig(), MonitorConfig(99, 1), 7, torch.device("cpu"))
    assert len(watched.weak) == len(watched.strong) == len(watched.views) == 5


def test_read__the_student_trains_on_though_it_fails(target_frames: Path) -> None:
    frames = index_frames(str(target_frames))
    watched = MonitorSet(frames, (64, 96), AugmentConfig(), MonitorConfig(1, 1), 7, torch.device("cpu"))
    student = Made(watched, scored(), scored()).train()
    student.detect = lambda images: 1 / 0  # type: ignore[assignment,method-assign,return-value]
    with pytest.raises(ZeroDivisionError):
        watched.read(Made(watched, scored(), scored()).eval(), student)  # type: ignore[arg-type]
    assert student.training
