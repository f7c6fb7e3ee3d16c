"""Checkpoints: weights, settings, class names and lineage in one file that loads without running code from it."""

from __future__ import annotations

import io
import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

import torch
from torch import Tensor

from ptedge import __version__
from ptedge.artifacts.adaptation import AdaptationRecord
from ptedge.artifacts.estimate import LabelFreeEstimate, LabelFreeFit
from ptedge.artifacts.lineage import Lineage
from ptedge.artifacts.torch_legacy import MAGIC_PICKLE, read_legacy
from ptedge.artifacts.torch_pickle import TorchFileError
from ptedge.artifacts.torch_zip import read_open_zip
from ptedge.calibration import SideCalibration
from ptedge.config import from_dict, to_dict
from ptedge.detector.config import ModelConfig, config_of_file
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.drift.reference import Reference
from ptedge.errors import ArtifactError, ConfigError, InputError
from ptedge.files import atomic_write, open_regular, parse_json

FORMAT = "ptedge-checkpoint"
VERSION = 1
OPTIONAL = {  # parts
    "calibration": SideCalibration,
    "label_free": LabelFreeFit,
    "estimate": LabelFreeEstimate,
    "adaptation": AdaptationRecord,
    "reference": Reference,
}


@dataclass(frozen=True)
class Checkpoint:
    """A detector at rest.

    Attributes:
        config: settings of the model.
        class_names: names by label.
        state: weights and buffers by name.
        lineage: where they come from.
        calibration: of the sides of its boxes, no part of the weights; ``None`` for none.
        label_free: regressions that estimate AP and the scale of sigma without labels; ``None`` for none.
        estimate: what they said of the frames it was adapted to.
        reference: what those frames, or the images it was trained for, are like; ``None`` where nobody looked.
        adaptation: what watched over its adaptation; ``None`` for none.
    """

    config: ModelConfig
    class_names: tuple[str, ...]
    state: dict[str, Tensor]
    lineage: Lineage = field(default_factory=Lineage)
    calibration: SideCalibration | None = None
    label_free: LabelFreeFit | None = None
    estimate: LabelFreeEstimate | None = None
    reference: Reference | None = None
    adaptation: AdaptationRecord | None = None

    def build(self) -> ProbabilisticFasterRCNN:
        """The model, in eval mode, calibrated where the checkpoint is.

        Raises:
            ArtifactError: weights and settings do not belong together.
        """
        model = ProbabilisticFasterRCNN(self.config, len(self.class_names))
        try:
            model.load_state_dict(self.state)
        except RuntimeError as error:
            raise ArtifactError(f"the checkpoint's weights do not fit its settings: {error}") from None
        if self.calibration is not None:
            model.set_sides(self.calibration.offset, self.calibration.scale)
        return model.eval()


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint atomically.

    Raises:
        OutputError: not writable, or disk full; an older file under this name is untouched.
    """
    header = {
        "config": to_dict(checkpoint.config),
        "class_names": list(checkpoint.class_names),
        "lineage": to_dict(checkpoint.lineage),
    }
    for name in OPTIONAL:
        if (part := getattr(checkpoint, name)) is not None:
            header[name] = to_dict(part)
    document = {
        "format": FORMAT,
        "version": VERSION,
        "header": json.dumps(header),
        "state": {name: tensor.detach().cpu() for name, tensor in checkpoint.state.items()},
    }
    write_document(path, document)


class _Sink:
    """A file for ``torch.save``, whose writer aborts the process or blurs the reason when a write fails.

    The first failure is kept and what follows goes nowhere; :func:`write_document` then raises it.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.error: OSError | None = None

    def write(self, data: Any) -> int:
        """Write, or remember why not."""
        if self.error is None:
            try:
                self.file.write(data)
            except OSError as error:
                self.error = error
        return len(data)

    def flush(self) -> None:
        """Nothing: the file is flushed when it is complete."""


def write_document(path: Path, document: dict[str, Any]) -> None:
    """Write tensors and plain values atomically, in the form :func:`read_document` reads.

    Raises:
        OutputError: not writable, or disk full; an older file under this name is untouched.
    """
    with atomic_write(path) as file:
        sink = _Sink(file)
        torch.save(document, cast(IO[bytes], sink))
        if sink.error is not None:
            raise sink.error


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; only tensors and plain values are unpickled.

    Raises:
        InputError: missing file.
        ArtifactError: truncated, foreign or newer than this version.
    """
    document = read_document(path, FORMAT)
    if document.get("version") != VERSION:
        raise ArtifactError(
            f"{path} is a checkpoint of version {document.get('version')}, this ptedge reads {VERSION}. Update ptedge"
        )
    header = _header(path, document)
    names, state = header["class_names"], document.get("state")
    if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
        raise ArtifactError(f"{path} is a damaged checkpoint: its class names are {names!r}")
    if not isinstance(state, dict) or not all(isinstance(tensor, Tensor) for tensor in state.values()):
        raise ArtifactError(f"{path} is a damaged checkpoint: its weights are no table of tensors")
    try:
        return Checkpoint(
            config=config_of_file(header["config"], str(path)),
            class_names=tuple(names),
            state=state,
            lineage=from_dict(Lineage, header["lineage"], str(path)),
            **{name: _optional(cls, name, header[name], path) for name, cls in OPTIONAL.items()},
        )
    except ConfigError as error:
        writer = header["lineage"].get("ptedge", __version__)
        if writer != __version__:
            raise ArtifactError(
                f"{path} was written by ptedge {writer}, and this is {__version__}, which does not understand it "
                f"({error}). Use ptedge {writer}"
            ) from None
        raise ArtifactError(f"{path} is a damaged checkpoint: {error}") from None


def _header(path: Path, document: dict[str, Any]) -> dict[str, Any]:
    """The header as plain values, with its three parts there and the two tables being tables; others may be."""
    try:
        header = parse_json(document["header"])
        parts = {name: header[name] for name in ("config", "class_names", "lineage")}
        parts |= {name: header.get(name) for name in OPTIONAL}  # None in what was written before there was one
    except (KeyError, TypeError, ValueError):
        raise ArtifactError(f"{path} is a damaged checkpoint: its header cannot be read") from None
    for name in ("config", "lineage"):
        if not isinstance(parts[name], dict):
            raise ArtifactError(f"{path} is a damaged checkpoint: {name} in its header is no table")
    return parts


def _optional(cls: type, name: str, values: Any, path: Path) -> Any:
    if values is None:
        return None
    if not isinstance(values, dict):
        raise ArtifactError(f"{path} is a damaged checkpoint: {name} in its header is no table")
    return from_dict(cls, values, f"{path}: {name}")


def read_document(path: Path, expected_format: str) -> dict[str, Any]:
    """Load a torch file of ours and check that it is what it should be.

    Args:
        path: the file.
        expected_format: value of its ``format`` entry.

    Raises:
        InputError: missing file.
        ArtifactError: unreadable, or of another kind.
    """
    if not path.exists():
        raise InputError(f"checkpoint {path} does not exist. Give a model.pt written by ptedge train or adapt")
    document = load_tensors(path, "checkpoint", "Give a model.pt written by ptedge train or adapt")
    found = document.get("format") if isinstance(document, dict) else None
    if found != expected_format:
        raise ArtifactError(
            f"{path} is not a {expected_format} file (it says {found!r}). "
            f"Give a model.pt written by ptedge train or adapt"
        )
    return dict(document)


def load_tensors(path: Path, what: str, advice: str, *, legacy: bool = False) -> Any:
    """The one way to ``torch.load``: a file that our own reader refuses never gets there.

    The file is opened once, and what was checked is what torch then reads.

    Args:
        path: file of ``torch.save``.
        what: it should be, for messages.
        advice: what to do about a file that is none, a sentence without its dot.
        legacy: also take the form that torch wrote before 1.6.

    Returns:
        Tensors on the CPU and plain values.

    Raises:
        ArtifactError: unreadable, or it holds something other than tensors and plain values.
    """
    try:
        with open_regular(path) as file:
            source: IO[bytes] = file
            if legacy and file.read(len(MAGIC_PICKLE)) == MAGIC_PICKLE:
                read_legacy(file)
                file.seek(0)
                source = io.BytesIO(file.read())  # a file with a number would first be tried as a tar
            else:
                read_open_zip(file)
            source.seek(0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # torch comments on its own older forms
                return torch.load(source, map_location="cpu", weights_only=True)
    except TorchFileError as error:
        raise ArtifactError(f"{path} cannot be read as a {what}: {error}. {advice}") from None
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}. {advice}") from None
    except Exception as error:  # torch's unpickler raises whatever it stumbles over
        raise ArtifactError(f"{path} cannot be read as a {what} ({type(error).__name__}). {advice}") from None
