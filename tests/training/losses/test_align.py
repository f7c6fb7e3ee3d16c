"""Domain alignment on the detector, and what `ptedge adapt` makes of it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from loss_inputs import NONE, Counts
from torch import Tensor, nn
from training_shell import FILES, Shell, assert_equal, comparable, fails, lines

from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.detector.model import Outputs, ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import ROIOutput
from ptedge.detector.rpn import RPNOutput
from ptedge.errors import ConfigError
from ptedge.training.losses.align import AlignConfig, DomainClassifiers
from ptedge.training.losses.source import ImageLabels

NO_RPN = RPNOutput(NONE, NONE, NONE, NONE)  # which alignment does not look at

# ------------------------------------------------------------------ on the detector


def target_losses(domains: DomainClassifiers, model: ProbabilisticFasterRCNN, images: Tensor) -> dict[str, Tensor]:
    outputs = model(images, 1)
    losses = domains.target_losses(outputs.early, outputs.features)
    if domains.sees_instances:
        found = [boxes[:10] for boxes in outputs.proposals]
        roi = model.roi(outputs.features, found)
        losses |= domains.target_instance_losses(outputs.features, roi, [len(boxes) for boxes in found])
    return losses


@pytest.mark.parametrize("method", ["sw", "ccr"])
def test_domain_classifiers__reach_the_student(model: ProbabilisticFasterRCNN, method: str) -> None:
    torch.manual_seed(0)
    domains = DomainClassifiers(model, AlignConfig(method=method, local_stage=1))
    images = torch.rand(2, 3, 64, 96) * 255
    losses = target_losses(domains, model, images)
    names = {"align_target_local", "align_target_global"} | ({"align_target_instance"} if method == "ccr" else set())
    assert set(losses) == names and all(loss.shape == () and bool(loss > 0) for loss in losses.values())
    torch.stack(list(losses.values())).sum().backward()
    first = model.get_parameter("backbone.body.features.0.weight").grad
    assert first is not None and bool(first.any())
    hidden = model.roi_head.fc2.weight.grad
    assert (hidden is not None and bool(hidden.any())) == (method == "ccr")
    assert model.anchors.log_wh.grad is None


def test_domain_classifiers__weights_scale_the_terms(model: ProbabilisticFasterRCNN) -> None:
    images = torch.rand(1, 3, 64, 96) * 255
    found = []
    for weight in (0.1, 1.0):
        torch.manual_seed(0)
        domains = DomainClassifiers(model, AlignConfig(method="sw", local_stage=1, weight=weight))
        found.append(target_losses(domains, model, images)["align_target_local"])
    torch.testing.assert_close(found[1], 10 * found[0], rtol=1e-4, atol=0)


def test_domain_classifiers__early_stage_must_be_before_the_last(model: ProbabilisticFasterRCNN) -> None:
    with pytest.raises(ConfigError, match=r"local_stage is 3, but the backbone .* has 2 stages"):
        DomainClassifiers(model, AlignConfig(method="sw"))


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("method", "'cyclic'", "one of none, sw, ccr"),
        ("weight", -1.0, "at least 0"),
        ("gamma", -1.0, "at least 0"),
        ("local_stage", 5, "at least 1 and at most 4"),
        ("instance_weight", -1.0, "at least 0"),
    ],
)
def test_align_config__refuses_with_name_value_and_range(field: str, value: Any, allowed: str) -> None:
    with pytest.raises(ValueError, match=f"^{field} is {value}; it must be {allowed}$"):
        AlignConfig(**{field: value.strip("'") if isinstance(value, str) else value})


def test_domain_classifiers__each_term_against_its_equation(model: ProbabilisticFasterRCNN) -> None:
    torch.manual_seed(0)
    domains = DomainClassifiers(model, AlignConfig("ccr", weight=0.3, gamma=2.0, local_stage=1, instance_weight=0.7))
    nn.init.normal_(domains.classes.weight)  # else undecided everywhere
    early, final = torch.randn(2, 4, 16, 24).requires_grad_(), torch.randn(2, 8, 4, 6).requires_grad_()
    hidden = torch.randn(5, 32).requires_grad_()
    roi = ROIOutput(torch.randn(5, 3) * 2, torch.zeros(5, 2, 4), torch.zeros(5, 2, 4), hidden)
    labels = [
        ImageLabels(NONE, torch.tensor([1, 1]), NONE),
        ImageLabels(NONE, torch.tensor([], dtype=torch.int64), NONE),
    ]
    counts = Counts()
    found = domains.source_losses(Outputs(early, final, NO_RPN, []), roi, labels, counts)
    found |= domains.target_losses(early, final)
    found |= domains.target_instance_losses(final, roi, [2, 3], counts)

    of_image = domains.classes(final).mean(dim=(2, 3))  # [2, K]
    place = domains.local(early).sigmoid()
    whole = domains.globally(final).flatten().sigmoid()  # probability of the target domain
    instance = domains.instances(hidden.relu()).flatten().sigmoid()
    p = roi.logits.softmax(dim=1)
    weights = []
    for row, image in enumerate([0, 0, 1, 1, 1]):
        label = int(p[row].argmax())
        seen = float(of_image[image, min(label, 1)].detach().sigmoid())
        weights.append(1.0 if label == 2 else math.exp(abs(seen - float(p[row, label]))))
    known = torch.tensor([[0.0, 1.0], [0.0, 0.0]])
    expected = {
        "align_source_local": 0.3 * 0.5 * (place**2).mean(),
        "align_source_global": 0.3 * 0.5 * (-(whole**2) * (1 - whole).log()).mean(),
        "align_image_class": -(known * of_image.sigmoid().log() + (1 - known) * (1 - of_image.sigmoid()).log()).mean(),
        "align_source_instance": 0.7 * -(1 - instance).log().sum() / 10,
        "align_target_local": 0.3 * 0.5 * ((1 - place) ** 2).mean(),
        "align_target_global": 0.3 * 0.5 * (-((1 - whole) ** 2) * whole.log()).mean(),
        "align_target_instance": 0.7 * -(torch.tensor(weights) * instance.log()).sum() / 10,
    }
    assert set(found) == set(expected)
    assert len({round(weight, 3) for weight in weights}) > 3
    inputs, trained = [early, final, hidden], list(domains.parameters())
    for name, loss in found.items():
        torch.testing.assert_close(loss, expected[name], msg=lambda text, name=name: f"{name}: {text}")
        own, right = (
            torch.autograd.grad(one, [*inputs, *trained], retain_graph=True, allow_unused=True)
            for one in (loss, expected[name])
        )
        # classifiers go down; what they look at goes up, save where it learns the classes of the picture
        signs = [1.0 if name == "align_image_class" else -1.0] * len(inputs) + [1.0] * len(trained)
        for sign, got, wanted in zip(signs, own, right, strict=True):
            assert (got is None) == (wanted is None), name
            if got is not None and wanted is not None:
                torch.testing.assert_close(got, sign * wanted, rtol=1e-4, atol=1e-6)
    assert counts.seen == {"align_source_instance": 5, "align_target_instance": 5}


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
