"""VGG16 out of Keras files: both layouts, the change of preprocessing, and files that are not what they should be."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ptedge.detector.backbone import build_backbone
from ptedge.errors import ArtifactError, InputError, MissingExtraError
from ptedge.preprocess import PIXEL_MEAN, PIXEL_STD
from ptedge.training.weights.imagenet import load_imagenet
from ptedge.training.weights.keras_vgg16 import CAFFE_MEAN_BGR, CHANNELS, POSITIONS, caffe_to_rgb, read_keras_vgg16

h5py = pytest.importorskip("h5py", reason="h5py is not installed (extra: weights)")


def arrays_of(layer: str) -> tuple[Any, Any]:
    """Kernel [3, 3, in, out] and bias [out]; zeros but for what tells layer and axes apart."""
    block, index = int(layer[5]), int(layer[-1])
    inputs = CHANNELS[block - 1] if index == 1 else CHANNELS[block]
    kernel = np.zeros((3, 3, inputs, CHANNELS[block]), np.float32)
    kernel[0, 1, 2, 5] = POSITIONS[layer] + 1
    return kernel, np.full(CHANNELS[block], POSITIONS[layer] + 0.5, np.float32)


@pytest.fixture
def weight_file(tmp_path: Path) -> Path:
    """Keras 3: positions as names, the layer's own name as an attribute; a side output that is nobody's business."""
    path = tmp_path / "vgg.weights.h5"
    with h5py.File(path, "w") as file:
        for layer in POSITIONS:
            number = int(layer[-1]) - 1
            group = file.create_group(f"{layer[:6]}/layers/conv2d{f'_{number}' if number else ''}/vars")
            group.attrs["name"] = layer
            group["0"], group["1"] = arrays_of(layer)
        file.create_group("dsn1/vars").attrs["name"] = "conv2d"
        file["dsn1/vars/0"] = np.zeros((1, 1, 64, 1), np.float32)
    return path


def check(state: dict[str, torch.Tensor]) -> None:
    assert set(state) == {f"features.{n}.{kind}" for n in POSITIONS.values() for kind in ("weight", "bias")}
    for layer, position in POSITIONS.items():
        if layer == "block1_conv1":
            continue  # rewritten for another preprocessing
        weight = state[f"features.{position}.weight"]
        assert weight[5, 2, 0, 1] == position + 1 and weight.count_nonzero() == 1
        assert (state[f"features.{position}.bias"] == position + 0.5).all()


def test_read_keras_vgg16__keras_3(weight_file: Path) -> None:
    state = read_keras_vgg16(weight_file)
    check(state)
    # B, G, R -> R, G, B: what was channel 2 is channel 0, per standard deviation of red
    assert state["features.0.weight"][5, 0, 0, 1] == pytest.approx(1 * PIXEL_STD[0])


def test_read_keras_vgg16__older_layout(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "old.h5", "w") as file:
        for layer in POSITIONS:
            file[f"{layer}/{layer}_W_1:0"], file[f"{layer}/{layer}_b_1:0"] = arrays_of(layer)
    check(read_keras_vgg16(tmp_path / "old.h5"))


def test_caffe_to_rgb__same_answer_on_a_picture() -> None:
    rng = torch.Generator().manual_seed(0)
    picture = torch.randint(0, 256, (1, 3, 7, 9), generator=rng).double()  # RGB
    weight = torch.randn(4, 3, 3, 3, generator=rng, dtype=torch.float64)
    bias = torch.randn(4, generator=rng, dtype=torch.float64)
    caffe = picture.flip(1) - torch.tensor(CAFFE_MEAN_BGR, dtype=torch.float64).reshape(1, 3, 1, 1)
    mean, std = (torch.tensor(v, dtype=torch.float64).reshape(1, 3, 1, 1) for v in (PIXEL_MEAN, PIXEL_STD))
    ours = (picture - mean) / std
    expected = torch.nn.functional.conv2d(caffe, weight, bias)
    torch.testing.assert_close(torch.nn.functional.conv2d(ours, *caffe_to_rgb(weight, bias)), expected)


def test_load_imagenet__from_h5(weight_file: Path) -> None:
    backbone = build_backbone("vgg16", 2)
    report = load_imagenet(backbone, "vgg16", str(weight_file))
    assert (report.matched, report.missing, report.unexpected) == (26, (), ())
    assert (backbone.body.state_dict()["features.28.bias"] == 28.5).all()


def test_load_imagenet__h5_for_another_backbone(weight_file: Path) -> None:
    backbone = build_backbone("vgg16", 2)
    with pytest.raises(InputError, match=r"read for vgg16, but the backbone is resnet50"):
        load_imagenet(backbone, "resnet50", str(weight_file))


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("missing", "has no bias of layer block4_conv2"),
        ("twice", "has 2 arrays that could be the kernel of layer block3_conv1"),
        ("shape", r"kernel of layer block2_conv1 has shape \(3, 3, 64, 64\), VGG16 needs \(3, 3, 64, 128\)"),
    ],
)
def test_read_keras_vgg16__names_the_layer(weight_file: Path, fault: str, message: str) -> None:
    with h5py.File(weight_file, "a") as file:
        if fault == "missing":
            del file["block4/layers/conv2d_1/vars/1"]
        elif fault == "twice":
            file.create_group("copy").attrs["name"] = "block3_conv1"
            file["copy/0"] = arrays_of("block3_conv1")[0]
        else:
            del file["block2/layers/conv2d/vars/0"]
            file["block2/layers/conv2d/vars/0"] = np.zeros((3, 3, 64, 64), np.float32)
    with pytest.raises(ArtifactError, match=message):
        read_keras_vgg16(weight_file)


def test_read_keras_vgg16__not_hdf5_and_not_there(tmp_path: Path) -> None:
    (tmp_path / "x.h5").write_bytes(b"nothing of the kind")
    with pytest.raises(ArtifactError, match=r"x\.h5 is not a readable HDF5 file"):
        read_keras_vgg16(tmp_path / "x.h5")
    with pytest.raises(InputError, match=r"y\.h5 do not exist"):
        read_keras_vgg16(tmp_path / "y.h5")


def test_read_keras_vgg16__names_the_extra(weight_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r'pip install "ptedge\[weights\]"'):
        read_keras_vgg16(weight_file)


def test_read_keras_vgg16__numbers_elsewhere_or_without_end(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(bytes(64))
    for name, more in (("external", {"external": [(str(tmp_path / "secret"), 0, 64)]}), ("huge", {})):
        path = tmp_path / f"{name}.h5"
        with h5py.File(path, "w") as file:
            layer = file.create_group("block1_conv1")
            shape = (16,) if more else (1 << 40,)
            layer.create_dataset("bias", shape, np.float32, chunks=None if more else (1 << 20,), **more)
        with pytest.raises(ArtifactError, match="its numbers are too many, or not in the file"):
            read_keras_vgg16(path)
