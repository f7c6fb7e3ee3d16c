"""The mean teacher and AdaBN, by hand."""

from __future__ import annotations

import pytest
import torch
from tiny_detector import tiny_config
from torch import Tensor

from ptedge.detector.backbone import batch_norms
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.training.teacher import adapt_batch_norm, make_teacher, update_teacher


def _fill(model: ProbabilisticFasterRCNN, value: float) -> None:
    for tensor in model.state_dict().values():
        tensor.fill_(value)


def test_make_teacher__is_a_copy_without_gradients(model: ProbabilisticFasterRCNN) -> None:
    teacher = make_teacher(model)
    assert model.training and not any(module.training for module in teacher.modules())
    assert not any(parameter.requires_grad for parameter in teacher.parameters())
    assert all(parameter.requires_grad for parameter in model.parameters())
    before = teacher.anchors.log_wh.clone()
    _fill(model, 7.0)
    torch.testing.assert_close(teacher.anchors.log_wh, before, rtol=0, atol=0)
    # the copy computes with its own weights, not with those of the model it was copied from
    assert float(teacher.features(torch.zeros(1, 3, 64, 96)).abs().max()) < 100


def test_update_teacher__weights_anchors_and_buffers_by_hand(model: ProbabilisticFasterRCNN) -> None:
    teacher = make_teacher(model)
    _fill(teacher, 10.0)
    _fill(model, 20.0)
    update_teacher(teacher, model, 0.9)
    for name, tensor in teacher.state_dict().items():
        if tensor.is_floating_point():
            torch.testing.assert_close(tensor, torch.full_like(tensor, 11.0), msg=name)
        else:
            assert name.endswith("num_batches_tracked") and int(tensor) == 20
    names = set(teacher.state_dict())
    assert {"anchors.log_wh", "backbone.body.features.1.running_mean", "roi_head.variances.weight"} <= names
    update_teacher(teacher, model, 0.9)
    assert float(teacher.anchors.log_wh[0, 0]) == pytest.approx(0.9 * 11 + 0.1 * 20)
    assert float(model.anchors.log_wh[0, 0].detach()) == 20.0  # the student is only read


def test_update_teacher__may_keep_statistics_of_its_own(model: ProbabilisticFasterRCNN) -> None:
    teacher = make_teacher(model)
    _fill(teacher, 10.0)
    _fill(model, 20.0)
    update_teacher(teacher, model, 0.9, own_statistics=True)
    layer = batch_norms(teacher.backbone)[0]
    assert layer.running_mean.unique().tolist() == layer.running_var.unique().tolist() == [10.0]
    assert layer.weight.unique().tolist() == [pytest.approx(11.0)]


@pytest.mark.parametrize(("keep", "expected"), [(1.0, 10.0), (0.0, 20.0)])
def test_update_teacher__ends_of_the_range(model: ProbabilisticFasterRCNN, keep: float, expected: float) -> None:
    teacher = make_teacher(model)
    _fill(teacher, 10.0)
    _fill(model, 20.0)
    update_teacher(teacher, model, keep)
    assert set(teacher.anchors.log_wh.flatten().tolist()) == {expected}


def _pictures(count: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, 3, 64, 96, generator=generator) * 200 + 30


def test_adapt_batch_norm__statistics_are_those_of_the_data(model: ProbabilisticFasterRCNN) -> None:
    images = _pictures(4)
    weights = {name: parameter.clone() for name, parameter in model.named_parameters()}
    assert adapt_batch_norm(model, [images]) == 4
    first, second = batch_norms(model.backbone)
    conv1, conv2 = model.backbone.body.features[0], model.backbone.body.features[3]  # type: ignore[index, union-attr]
    x = conv1(model.normalise(images)).detach()
    assert first.running_mean is not None and first.running_var is not None
    torch.testing.assert_close(first.running_mean, x.mean(dim=(0, 2, 3)), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(first.running_var, x.var(dim=(0, 2, 3), unbiased=True), rtol=1e-4, atol=1e-5)
    # the second layer was fed with what the first one gives under the new statistics
    mean, var = x.mean(dim=(0, 2, 3), keepdim=True), x.var(dim=(0, 2, 3), unbiased=False, keepdim=True)
    y = conv2(((x - mean) / torch.sqrt(var + first.eps)).relu()).detach()
    assert second.running_mean is not None and second.running_var is not None
    torch.testing.assert_close(second.running_mean, y.mean(dim=(0, 2, 3)), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(second.running_var, y.var(dim=(0, 2, 3), unbiased=True), rtol=1e-4, atol=1e-5)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(parameter, weights[name], rtol=0, atol=0)


def test_adapt_batch_norm__batches_are_averaged_evenly(model: ProbabilisticFasterRCNN) -> None:
    batches = [_pictures(2, seed) * scale for seed, scale in ((1, 1.0), (2, 0.5), (3, 0.1))]
    assert adapt_batch_norm(model, batches) == 6
    layer = batch_norms(model.backbone)[0]
    conv = model.backbone.body.features[0]  # type: ignore[index, union-attr]
    outputs = [conv(model.normalise(batch)).detach() for batch in batches]
    mean = torch.stack([x.mean(dim=(0, 2, 3)) for x in outputs]).mean(dim=0)
    var = torch.stack([x.var(dim=(0, 2, 3)) for x in outputs]).mean(dim=0)
    assert layer.running_mean is not None and layer.running_var is not None
    torch.testing.assert_close(layer.running_mean, mean, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(layer.running_var, var, rtol=1e-4, atol=1e-5)


def test_adapt_batch_norm__leaves_the_layers_as_they_were(model: ProbabilisticFasterRCNN) -> None:
    adapt_batch_norm(model, [_pictures(2)])
    layers = batch_norms(model.backbone)
    assert [layer.training for layer in layers] == [False, False]
    assert [layer.momentum for layer in layers] == [0.1, 0.1]
    assert model.training and model.backbone.training
    before = [layer.running_mean.clone() for layer in layers if layer.running_mean is not None]
    model.train().features(_pictures(2, 5))
    for layer, mean in zip(layers, before, strict=True):
        assert layer.running_mean is not None
        torch.testing.assert_close(layer.running_mean, mean, rtol=0, atol=0)


def test_adapt_batch_norm__no_batches_change_nothing(model: ProbabilisticFasterRCNN) -> None:
    layer = batch_norms(model.backbone)[0]
    assert layer.running_mean is not None
    layer.running_mean.fill_(3.0)
    assert adapt_batch_norm(model, []) == 0
    assert set(layer.running_mean.tolist()) == {3.0}
    assert layer.momentum == 0.1


def test_adapt_batch_norm__second_domain_replaces_the_first() -> None:
    torch.manual_seed(0)
    model = ProbabilisticFasterRCNN(tiny_config(), 2)
    adapt_batch_norm(model, [_pictures(2, 1)])
    adapt_batch_norm(model, [_pictures(2, 2) * 0.2])
    after_both = model.state_dict()["backbone.body.features.1.running_mean"].clone()
    torch.manual_seed(0)
    fresh = ProbabilisticFasterRCNN(tiny_config(), 2)
    adapt_batch_norm(fresh, [_pictures(2, 2) * 0.2])
    torch.testing.assert_close(fresh.state_dict()["backbone.body.features.1.running_mean"], after_both)


def test_adapt_batch_norm__gives_back_the_mode_it_found(model: ProbabilisticFasterRCNN) -> None:
    for frozen in (True, False):
        model.backbone.frozen_statistics = frozen
        model.train()
        adapt_batch_norm(model, [_pictures(2)])
        assert {layer.training for layer in batch_norms(model.backbone)} == {not frozen}
