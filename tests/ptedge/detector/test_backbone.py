"""Backbones without arithmetic (meta tensors), and BatchNorm that stays in eval mode."""

from __future__ import annotations

import pytest
import torch
from tiny_detector import NAME, use_tiny_detector
from torch import nn

from ptedge.detector import backbone as backbone_module
from ptedge.detector.backbone import batch_norms, build_backbone, following_statistics, untracked_statistics
from ptedge.detector.config import BACKBONES

CHANNELS = {"vgg16": 512, "resnet50": 1024, "mobilenet_v3_large": 112, "efficientnet_lite0": 112}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> backbone_module.Backbone:
    use_tiny_detector(monkeypatch)
    torch.manual_seed(0)
    return build_backbone(NAME, 0)


@pytest.mark.parametrize("name", BACKBONES)
def test_build_backbone__stride_16_channels_and_frozen_stages(name: str) -> None:
    with torch.device("meta"):
        backbone = build_backbone(name, 2)
        features = backbone(torch.zeros(2, 3, 64, 96))
    assert features.shape == (2, CHANNELS[name], 4, 6)
    assert backbone.channels == CHANNELS[name]
    assert all(module.training for module in backbone.modules() if isinstance(module, nn.Conv2d))

    features.sum().backward()
    stages = backbone.stages
    assert len(stages) >= 3
    for i, stage in enumerate(stages):
        for parameter in stage.parameters():
            assert parameter.requires_grad == (i >= 2)
            assert (parameter.grad is not None) == (i >= 2)
    # every parameter of the body is used by some stage: nothing is trained or saved in vain
    used = {id(p) for stage in stages for p in stage.parameters()}
    assert used == {id(p) for p in backbone.parameters()}


def test_early_and_last__are_maps_of_one_pass(tiny: backbone_module.Backbone) -> None:
    images = torch.randn(2, 3, 32, 32)
    early, last = tiny.early_and_last(images, 1)
    assert torch.equal(early, tiny.stages[0](images)) and torch.equal(last, tiny(images))
    assert tiny.early_and_last(images, 2)[0].shape == last.shape


def test_channels_after__every_stage(tiny: backbone_module.Backbone) -> None:
    tiny.frozen_statistics = False
    before = [layer.running_mean.clone() for layer in batch_norms(tiny.train())]
    assert [tiny.channels_after(stage) for stage in (1, 2)] == [4, 8]
    assert tiny.training and all(layer.training for layer in batch_norms(tiny))
    assert all(torch.equal(layer.running_mean, mean) for layer, mean in zip(batch_norms(tiny), before, strict=True))


@pytest.mark.parametrize("count_batches", [False, True])
def test_untracked_statistics__normalises_by_batch_and_remembers_nothing(
    tiny: backbone_module.Backbone, count_batches: bool
) -> None:
    tiny.frozen_statistics = False
    layer = batch_norms(tiny.train())[0]
    before, momentum = layer.running_mean.clone(), layer.momentum
    with untracked_statistics(tiny, count_batches=count_batches):
        out = layer(torch.randn(4, layer.num_features, 8, 8, generator=torch.Generator().manual_seed(0)) + 5.0)
    assert torch.equal(layer.running_mean, before) and layer.momentum == momentum
    assert int(layer.num_batches_tracked) == int(count_batches)
    # with the layer's weight 1 and bias 0, an output normalised by its own batch has mean 0
    shift = layer.bias.reshape(1, -1, 1, 1)
    torch.testing.assert_close((out - shift).mean(dim=(0, 2, 3)), torch.zeros(layer.num_features), atol=1e-5, rtol=0)
    tiny(torch.randn(2, 3, 32, 32))
    assert not torch.equal(layer.running_mean, before) and int(layer.num_batches_tracked) == 1 + int(count_batches)


def test_following_statistics__normalises_by_the_running_ones_which_follow(tiny: backbone_module.Backbone) -> None:
    layer = batch_norms(tiny.eval())[0]
    layer.running_mean.fill_(2.0)
    layer.running_var.fill_(4.0)
    images = torch.tensor([1.0, 5.0]).reshape(2, 1, 1, 1).repeat(1, layer.num_features, 3, 3)  # mean 3, variance 72/17
    with following_statistics(tiny, 0.75):
        first = layer(images)
    assert layer.running_mean.tolist() == pytest.approx([2.25] * layer.num_features)  # 0.75 * 2 + 0.25 * 3
    assert layer.running_var.tolist() == pytest.approx([3.0 + 18 / 17] * layer.num_features)
    scale, shift = layer.weight.detach()[0], layer.bias.detach()[0]
    # statistics follow before the pass that they came from
    expected = (images[0, 0, 0, 0] - 2.25) / (3 + 18 / 17 + layer.eps) ** 0.5 * scale + shift
    torch.testing.assert_close(first[0, 0, 0, 0], expected)
    layer(images)
    assert layer.running_mean.tolist() == pytest.approx([2.25] * layer.num_features)  # and no longer outside


def test_build_backbone__vgg16_freezes_conv1_and_conv2() -> None:
    with torch.device("meta"):
        backbone = build_backbone("vgg16", 2)
    convs = [module for module in backbone.modules() if isinstance(module, nn.Conv2d)]
    assert len(convs) == 13
    assert [conv.weight.requires_grad for conv in convs] == [False] * 4 + [True] * 9
    assert not batch_norms(backbone)


def test_backbone__batch_norm_stays_in_eval_mode(tiny: backbone_module.Backbone) -> None:
    before = tiny(torch.randn(2, 3, 32, 32)).detach()
    means = [layer.running_mean.clone() for layer in batch_norms(tiny) if layer.running_mean is not None]
    model = nn.Sequential(tiny).train()
    assert tiny.training and not any(layer.training for layer in batch_norms(tiny))
    model(torch.randn(2, 3, 32, 32) + 3)
    after = [layer.running_mean for layer in batch_norms(tiny)]
    for old, new in zip(means, after, strict=True):
        assert new is not None
        torch.testing.assert_close(old, new, rtol=0, atol=0)
    assert before.shape == (2, 8, 2, 2)
