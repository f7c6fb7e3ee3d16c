"""Equations of domain alignment by hand, and which way gradients point."""

from __future__ import annotations

import math

import pytest
import torch

from ptedge.training.losses.align_equations import (
    classes_present,
    consistency_weight,
    global_loss,
    image_class_loss,
    instance_loss,
    local_loss,
    reverse_gradient,
)


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


def test_instance_loss__half_precision_is_summed_in_float32() -> None:
    logits = torch.full((300,), 3.0)
    loss = instance_loss(logits.half(), 0, 1.0)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, instance_loss(logits, 0, 1.0), rtol=1e-6, atol=0)


def test_classes_present__where_the_labels_are() -> None:
    assert classes_present([torch.zeros(2, dtype=torch.int64, device="meta")], 3).device.type == "meta"


def test_consistency_weight__gives_no_gradient() -> None:
    image = torch.zeros(1, 2, requires_grad=True)
    instance = torch.tensor([[0.5, 0.2, 0.1]], requires_grad=True)
    assert not consistency_weight(image, instance, torch.tensor([0])).requires_grad


def test_instance_loss__weighted_mean_and_none() -> None:
    logits = torch.tensor([0.0, math.log(3.0)])
    expected = (2.0 * -math.log(0.5) + 1.0 * -math.log(0.75)) / 2
    assert float(instance_loss(logits, 1, 2.0, torch.tensor([2.0, 1.0]))) == pytest.approx(expected, rel=1e-5)
    empty = torch.zeros(0, requires_grad=True)
    loss = instance_loss(empty, 0, 1.0)
    loss.backward()
    assert float(loss.detach()) == 0.0 and empty.grad is not None
