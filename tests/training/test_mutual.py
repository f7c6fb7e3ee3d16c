"""What a step of mutual learning asks, and what it leaves alone."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from tiny_detector import HEIGHT, WIDTH

from ptedge.detector.backbone import batch_norms
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import RawDetections
from ptedge.training.batches.batch import AdaptBatch, SourceBatch, TargetBatch
from ptedge.training.batches.few import LabelsConfig
from ptedge.training.config import AdaptConfig, TeacherConfig
from ptedge.training.losses.align import AlignConfig
from ptedge.training.losses.merge import ForeignBoxes
from ptedge.training.losses.source import ImageLabels
from ptedge.training.mutual import MutualLearning

CPU = torch.device("cpu")


def batch(*, source: bool, labelled: bool = False) -> AdaptBatch:
    generator = torch.Generator().manual_seed(0)
    weak, strong, images = torch.randint(0, 256, (3, 2, 3, HEIGHT, WIDTH), dtype=torch.uint8, generator=generator)
    target = TargetBatch(
        weak, strong, torch.tensor([[1.0, 0.0, 0.0, 0.0, 0.0, WIDTH, HEIGHT]] * 2), skipped=[("a", "why")]
    )
    box = torch.tensor([[10.0, 8.0, 40.0, 40.0]])
    labels = [ImageLabels(box, torch.tensor([i]), torch.zeros(0, 4)) for i in range(2)]
    few = SourceBatch(weak[:1], labels[:1], skipped=[("c", "no")]) if labelled else None
    return AdaptBatch(target, SourceBatch(images, labels, skipped=[("b", "so")]) if source else None, few)


def names(learning: MutualLearning, given: AdaptBatch) -> set[str]:
    return set(learning.losses(0, learning.prepare(given))[0])


SOURCE = {"rpn_cls", "rpn_box", "roi_cls", "roi_box"}
TARGET = {f"target_{name}" for name in SOURCE}
FEW = {f"labelled_{name}" for name in SOURCE}


@pytest.mark.parametrize("source", [True, False])
def test_losses__of_the_domains_that_are_there(model: ProbabilisticFasterRCNN, source: bool) -> None:
    learning = MutualLearning(model, AdaptConfig(), CPU)
    assert names(learning, batch(source=source)) == (TARGET | SOURCE if source else TARGET)
    assert [path for path, _ in batch(source=source).skipped] == (["a", "b"] if source else ["a"])


@pytest.mark.parametrize("source", [True, False])
def test_losses__labelled_frames_add_theirs(model: ProbabilisticFasterRCNN, source: bool) -> None:
    learning = MutualLearning(model, AdaptConfig(), CPU)
    given = batch(source=source, labelled=True)
    assert names(learning, given) == TARGET | FEW | (SOURCE if source else set())
    assert [path for path, _ in given.skipped] == (["a", "b", "c"] if source else ["a", "c"])
    alone = MutualLearning(model, AdaptConfig(lambda_target=0), CPU)
    assert names(alone, given) == FEW | (SOURCE if source else set())


def test_losses__what_labelled_frames_weigh(model: ProbabilisticFasterRCNN) -> None:
    weighed = LabelsConfig(weight=2.0, box_weight=3.0, pseudo_box_weight=0.5)
    plain = MutualLearning(copy.deepcopy(model), AdaptConfig(), CPU)
    other = MutualLearning(model, AdaptConfig(labels=weighed, lambda_target=10.0), CPU)
    given = batch(source=True, labelled=True)
    one, two = (learning.losses(0, learning.prepare(given))[0] for learning in (plain, other))
    factor = {"labelled_rpn_cls": 2.0, "labelled_roi_cls": 2.0, "labelled_rpn_box": 6.0, "labelled_roi_box": 6.0}
    factor |= {"target_rpn_cls": 10.0, "target_roi_cls": 10.0, "target_rpn_box": 5.0, "target_roi_box": 5.0}
    for name, term in one.items():
        torch.testing.assert_close(two[name], term * factor.get(name, 1.0))


def test_losses__labelled_frames_are_counted_for_themselves(model: ProbabilisticFasterRCNN) -> None:
    counted: list[str] = []
    learning = MutualLearning(model, AdaptConfig(), CPU)
    part = learning.prepare(batch(source=True, labelled=True))
    learning.losses(0, part, lambda name, count: counted.append(name) or 1.0)
    assert len(set(counted)) == len(counted) and {"rpn", "roi", "labelled_rpn", "labelled_roi"} < set(counted)


def test_losses__lambda_target_weighs_the_target(model: ProbabilisticFasterRCNN) -> None:
    whole = MutualLearning(copy.deepcopy(model), AdaptConfig(), CPU)
    half = MutualLearning(model, AdaptConfig(lambda_target=0.5), CPU)
    one, other = (learning.losses(0, learning.prepare(batch(source=True)))[0] for learning in (whole, half))
    for name, term in one.items():
        torch.testing.assert_close(other[name], term * (0.5 if name in TARGET else 1.0))


def test_prepare__asks_the_teacher_once_and_only_when_it_counts(
    model: ProbabilisticFasterRCNN, monkeypatch: pytest.MonkeyPatch
) -> None:
    learning = MutualLearning(model, AdaptConfig(), CPU)
    asked: list[Any] = []
    detect = learning.teacher.detect
    monkeypatch.setattr(learning.teacher, "detect", lambda images: asked.append(images) or detect(images))
    part = learning.prepare(batch(source=True))
    assert len(asked) == 1 and len(part.pseudo) == 2 and "pseudo_boxes" in part.numbers
    first, second = (learning.losses(0, part)[0] for _ in range(2))
    assert len(asked) == 1
    assert all(torch.equal(first[name], second[name]) for name in first)
    silent = MutualLearning(model, AdaptConfig(lambda_target=0), CPU)
    monkeypatch.setattr(silent.labeller, "detect", None)
    assert names(silent, batch(source=True)) == SOURCE


def test_prepare__boxes_of_another_detector_join_the_teachers(
    model: ProbabilisticFasterRCNN, monkeypatch: pytest.MonkeyPatch
) -> None:
    learning = MutualLearning(model, AdaptConfig(), CPU)
    none, of_boxes, of_numbers = batch(source=False), torch.zeros(0, 4), torch.zeros(0)
    nothing = RawDetections(
        boxes=of_boxes,
        scores=of_numbers,
        labels=of_numbers.long(),
        logits=torch.zeros(0, 3),
        variances=of_boxes,
        proposals=of_boxes,
        sigma=of_boxes,
        entropy=of_numbers,
    )
    monkeypatch.setattr(learning.labeller, "detect", lambda images: [nothing, nothing])
    assert [len(one.boxes) for one in learning.prepare(none).pseudo] == [0, 0]
    box = ForeignBoxes(torch.tensor([[10.0, 8.0, 40.0, 40.0]]), torch.tensor([0.75]), torch.tensor([1]))
    picture = [0.0, 0.0, float(WIDTH), float(HEIGHT)]
    views = torch.tensor([[1.0, 0.0, 0.0, *picture], [0.5, 24.0, 16.0, *picture]])
    given = AdaptBatch(replace(none.target, views=views, foreign=[box, box]), None)
    pseudo = learning.prepare(given).pseudo
    assert [one.boxes[0].tolist() for one in pseudo] == [[10, 8, 40, 40], [29, 20, 44, 36]]
    assert pseudo[0].labels.tolist() == [1] and pseudo[0].score.tolist() == pytest.approx([0.75])


def test_losses__source_statistics_do_not_enter_the_student(model: ProbabilisticFasterRCNN) -> None:
    learning = MutualLearning(model, AdaptConfig(lambda_target=0), CPU)
    layer = batch_norms(learning.student)[0]
    before = layer.running_mean.clone()
    names(learning, batch(source=True))
    assert layer.training and torch.equal(layer.running_mean, before)
    frames = MutualLearning(model, AdaptConfig(), CPU)
    names(frames, batch(source=False))
    assert not torch.equal(layer.running_mean, before)


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({}, {"student", "teacher"}),
        ({"teacher": TeacherConfig(labels="start")}, {"student", "teacher", "labeller"}),
        ({"align": AlignConfig(method="sw", local_stage=1)}, {"student", "teacher", "domains"}),
    ],
)
def test_parts__by_their_names_in_last_pt(
    model: ProbabilisticFasterRCNN, changes: dict[str, Any], parts: set[str]
) -> None:
    learning = MutualLearning(model, AdaptConfig(**changes), CPU)
    assert set(learning.parts) == parts
    assert learning.others == ([learning.domains] if "domains" in parts else [])


@pytest.mark.parametrize("method", ["sw", "ccr"])
def test_losses__alignment_adds_its_terms(model: ProbabilisticFasterRCNN, method: str) -> None:
    learning = MutualLearning(model, AdaptConfig(align=AlignConfig(method=method, local_stage=1)), CPU)
    found = {name.removeprefix("align_") for name in names(learning, batch(source=True)) - SOURCE - TARGET}
    both = {f"{domain}_{kind}" for domain in ("source", "target") for kind in ("local", "global")}
    more = {"image_class", "source_instance", "target_instance"} if method == "ccr" else set()
    assert found == both | more
