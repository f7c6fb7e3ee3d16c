"""One way to ask any model for detections: a checkpoint (torch), a bundle or a bare ONNX file (ONNX Runtime)."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ptedge.artifacts.bundle import is_bundle
from ptedge.artifacts.engine_file import ENGINE_SUFFIX
from ptedge.artifacts.trust import Trust
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.detections import Detections
from ptedge.errors import InputError


class Predictor(Protocol):
    """A model that is ready to answer.

    Attributes:
        class_names: names by label.
        input_size: (height, width) in pixels of the network's input.
        model_hash: sha256 of the weights' file.
    """

    class_names: tuple[str, ...]
    input_size: tuple[int, int]
    model_hash: str

    def detect(self, image: NDArray[np.uint8]) -> Detections:
        """Detections of one image.

        Args:
            image: [height, width, 3] uint8 RGB.

        Returns:
            Detections in pixels of that image, best score first.
        """
        ...

    def close(self) -> None:
        """Free the model."""
        ...


def open_predictor(
    path: Path, backend: str = "auto", threads: int | None = None, trust: Trust | None = None
) -> Predictor:
    """Open a checkpoint, a bundle folder, an ``.onnx`` file or an ``.engine`` file that stands in its bundle.

    Args:
        path: what the user named.
        backend: ``auto``, ``tensorrt``, ``cuda`` or ``cpu``; for a checkpoint only the device counts.
        threads: CPU threads of the model; ``None`` leaves the library's default.
        trust: keys that a bundle must be signed with; ``None`` checks hashes alone.

    Raises:
        InputError: nothing there, none of these kinds, or ``trust`` for a checkpoint, which carries no signature.
        ArtifactError: broken or foreign file.
        MissingExtraError: a checkpoint without torch installed.
    """
    if not path.exists():
        raise InputError(
            f"{path} does not exist. Give a checkpoint (model.pt), a bundle folder, a model.onnx or an engine"
        )
    if is_bundle(path) or path.suffix == ENGINE_SUFFIX:
        return BundlePredictor(path, backend=backend, threads=threads, trust=trust)
    if path.is_dir():
        raise InputError(f"{path} is a folder without manifest.json. Give a checkpoint or a bundle")
    if trust is not None:
        raise InputError(f"{path} is no bundle and carries no signature, so --trust cannot check it. Give a bundle")
    from ptedge.backends.checkpoint_predictor import CheckpointPredictor  # needs torch

    return CheckpointPredictor(path, threads=threads)
