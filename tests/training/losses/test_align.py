"""Domain alignment: every loss by hand, which way gradients point, and what `ptedge adapt` makes of it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from training_shell import FILES, Shell, assert_equal, comparable, fails, lines

from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import ConfigError
from ptedge.training.losses.align import AlignConfig, DomainClassifiers, watch
from ptedge.training.losses.align_equations import (
    classes_present,
    consistency_weight,
    global_loss,
    image_class_loss,
    instance_loss,
    local_loss,
    reverse_gradient,
)

# ------------------------------------------------------------------ by hand


def test_reverse_gradient__same_value_opposite_gradient() -> None:
    x = torch.tensor([1.0, -2.0], requires_grad=True)
    y = reverse_gradient(x)
    assert torch.equal(y, x)
    (y * torch.tensor([3.0, 5.0])).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [-3.0, -5.0]


def test_reverse_gradient__classifier_improves_and_features_get_worse() -> None:
    feature, weight = torch.tensor([1.0], requires_grad=True), torch.tensor([0.5], requires_grad=True)
    loss = local_loss((reverse_gradient(feature) * weight).reshape(1, 1, 1, 1), 1)
    loss.backward()
    assert weight.grad is not None and weight.grad.item() < 0  # following it down, target is told more surely
    assert feature.grad is not None and feature.grad.item() > 0  # following it down, the feature looks like source


def test_local_loss__least_squares() -> None:
    logits = torch.tensor([0.0, math.log(3.0)]).reshape(1, 1, 1, 2)  # sigmoids 1/2 and 3/4
    assert float(local_loss(logits, 0)) == pytest.approx(0.5 * (0.25 + 0.5625) / 2)
    assert float(local_loss(logits, 1)) == pytest.approx(0.5 * (0.25 + 0.0625) / 2)


def test_global_loss__focal() -> None:
    logits = torch.tensor([math.log(3.0)])  # target with probability 3/4
    assert float(global_loss(logits, 1, 5.0)) == pytest.approx(0.5 * -(0.25**5) * math.log(0.75), rel=1e-5)
    assert float(global_loss(logits, 0, 5.0)) == pytest.approx(0.5 * -(0.75**5) * math.log(0.25), rel=1e-5)
    assert float(global_loss(logits, 1, 0.0)) == pytest.approx(0.5 * -math.log(0.75), rel=1e-5)
    # the weak part: what is told apart easily hardly counts
    assert float(global_loss(torch.tensor([6.0]), 1, 5.0)) < 1e-12
    sure = torch.tensor([200.0], requires_grad=True)
    global_loss(sure, 0, 5.0).backward()
    assert sure.grad is not None and torch.isfinite(sure.grad).all()


def test_image_class_loss__cross_entropy_over_images_and_classes() -> None:
    logits = torch.tensor([[0.0, math.log(3.0)]])
    expected = (-math.log(0.5) - math.log(0.25)) / 2  # the first class is there, the second is not
    assert float(image_class_loss(logits, torch.tensor([[1.0, 0.0]]))) == pytest.approx(expected, rel=1e-5)


def test_classes_present__multi_hot() -> None:
    found = classes_present([torch.tensor([2, 0, 2]), torch.tensor([], dtype=torch.int64)], 3)
    assert found.tolist() == [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]]


def test_consistency_weight__disagreement_counts_up_to_e() -> None:
    image_logits = torch.tensor([[0.0, 30.0], [math.log(3.0), 0.0]])  # probabilities .5 and 1; .75 and .5
    instances = torch.log(torch.tensor([[0.2, 0.7, 0.1], [0.9, 0.05, 0.05], [0.1, 0.2, 0.7]]))
    weight = consistency_weight(image_logits, instances, torch.tensor([0, 1, 1]))
    # class 1 of image 0: |1 - .7|; class 0 of image 1: |.75 - .9|; background: 1
    torch.testing.assert_close(weight, torch.tensor([math.exp(0.3), math.exp(0.15), 1.0]))


def test_instance_loss__weighted_mean_and_none() -> None:
    logits = torch.tensor([0.0, math.log(3.0)])
    expected = (2.0 * -math.log(0.5) + 1.0 * -math.log(0.75)) / 2
    assert float(instance_loss(logits, 1, 2.0, torch.tensor([2.0, 1.0]))) == pytest.approx(expected, rel=1e-5)
    empty = torch.zeros(0, requires_grad=True)
    loss = instance_loss(empty, 0, 1.0)
    loss.backward()
    assert float(loss.detach()) == 0.0 and empty.grad is not None


# ------------------------------------------------------------------ on the detector


@pytest.mark.parametrize("method", ["sw", "ccr"])
def test_domain_classifiers__reach_the_student_and_leave_no_hook(model: ProbabilisticFasterRCNN, method: str) -> None:
    torch.manual_seed(0)
    domains = DomainClassifiers(model, AlignConfig(method=method, local_stage=1))
    images = torch.rand(2, 3, 64, 96) * 255
    losses = domains.target_losses(model, images, 10)
    names = {"align_target_local", "align_target_global"} | ({"align_target_instance"} if method == "ccr" else set())
    assert set(losses) == names and all(loss.shape == () and bool(loss > 0) for loss in losses.values())
    torch.stack(list(losses.values())).sum().backward()
    first = model.get_parameter("backbone.body.features.0.weight").grad
    assert first is not None and bool(first.any())
    hidden = model.roi_head.fc2.weight.grad
    assert (hidden is not None and bool(hidden.any())) == (method == "ccr")
    assert model.anchors.log_wh.grad is None
    assert not any(module._forward_hooks for module in model.modules())


def test_domain_classifiers__weights_scale_the_terms(model: ProbabilisticFasterRCNN) -> None:
    images = torch.rand(1, 3, 64, 96) * 255
    found = []
    for weight in (0.1, 1.0):
        torch.manual_seed(0)
        domains = DomainClassifiers(model, AlignConfig(method="sw", local_stage=1, weight=weight))
        found.append(domains.target_losses(model, images, 10)["align_target_local"])
    torch.testing.assert_close(found[1], 10 * found[0], rtol=1e-4, atol=0)


def test_domain_classifiers__early_stage_must_be_before_the_last(model: ProbabilisticFasterRCNN) -> None:
    with pytest.raises(ConfigError, match=r"local_stage is 3, but the backbone .* has 2 stages"):
        DomainClassifiers(model, AlignConfig(method="sw"))


def test_watch__without_a_method_sees_nothing(model: ProbabilisticFasterRCNN) -> None:
    with watch(model, AlignConfig()) as seen:
        model.features(torch.zeros(1, 3, 64, 96))
    assert seen.final.numel() == 0


# ------------------------------------------------------------------ in the loop

SETS = ("lambda_target=0", "align.local_stage=1", "teacher.ema=0.5", "align.weight=1.0")


@pytest.mark.parametrize("method", ["sw", "ccr"])
def test_adapt__aligns_without_pseudo_boxes_and_resumes(
    ptedge: Shell, pretrained: Path, source_data: Path, target_frames: Path, tmp_path: Path, method: str
) -> None:
    words, sets = ["--target", target_frames, "--source", source_data], (*SETS, f"align.method={method}")
    straight, parts = tmp_path / "straight", tmp_path / "parts"
    status, err = ptedge.adapt(pretrained, straight, *words, steps=3, sets=sets)
    assert status == 0, err
    assert {path.name for path in straight.iterdir()} >= FILES
    last = lines(straight)[-1]
    assert {"rpn_cls", "align_source_local", "align_target_global"} <= set(last)
    assert ("align_image_class" in last) == ("align_target_instance" in last) == (method == "ccr")
    assert not any(name.startswith("target_") for name in last)
    # the classifiers are the run's, not the model's
    state = torch.load(straight / "last.pt", weights_only=True)
    assert "local.0.weight" in state["domains"]
    assert set(load_checkpoint(straight / "model.pt").state) == set(load_checkpoint(pretrained).state)
    assert ptedge.adapt(pretrained, parts, *words, steps=1, sets=sets)[0] == 0
    before = torch.load(parts / "last.pt", weights_only=True)["domains"]["local.0.weight"]
    status, err = ptedge("adapt", pretrained, *words, "--out", parts, "--resume", sets=["optim.steps=3"])
    assert status == 0, err
    assert_equal(straight, parts)
    assert comparable(straight) == comparable(parts)
    after = torch.load(parts / "last.pt", weights_only=True)["domains"]
    assert not torch.equal(after["local.0.weight"], before)
    for name, tensor in state["domains"].items():
        assert torch.equal(tensor, after[name]), name


def test_adapt__alignment_in_parts_is_one_step(
    ptedge: Shell, pretrained: Path, source_data: Path, target_frames: Path, tmp_path: Path
) -> None:
    # BatchNorm by batch would see parts, so its statistics are held; everything else is the step of the whole batch
    words, sets = ["--target", target_frames, "--source", source_data], (*SETS, "align.method=ccr", "batch_norm=frozen")
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    status, err = ptedge.adapt(pretrained, whole, *words, steps=1, sets=(*sets, "optim.batch=4"))
    assert status == 0, err
    more = ("optim.batch=2", "optim.accumulate=2")
    status, err = ptedge.adapt(pretrained, parts, *words, steps=1, sets=(*sets, *more))
    assert status == 0, err
    one, two = lines(whole)[-1], lines(parts)[-1]
    for name in [name for name in one if name.startswith("align_")]:
        assert two[name] == pytest.approx(one[name], rel=1e-4, abs=2e-6), name
    assert two["grad_norm"] == pytest.approx(one["grad_norm"], rel=1e-3)


def test_adapt__alignment_needs_source(ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path) -> None:
    result = ptedge.adapt(
        pretrained, tmp_path / "run", "--target", target_frames, "--source-free", sets=("align.method=sw",)
    )
    fails(result, "align.method=sw", "--source DATA")
    assert not (tmp_path / "run").exists()


def test_adapt__alignment_is_not_switched_on_midway(
    ptedge: Shell, pretrained: Path, source_data: Path, target_frames: Path, tmp_path: Path
) -> None:
    words = ["--target", target_frames, "--source", source_data]
    assert ptedge.adapt(pretrained, tmp_path / "run", *words, steps=1)[0] == 0
    result = ptedge.adapt(pretrained, tmp_path / "run", *words, "--resume", steps=2, sets=(*SETS, "align.method=sw"))
    fails(result, "align.method is 'sw', but the run has 'none'")
