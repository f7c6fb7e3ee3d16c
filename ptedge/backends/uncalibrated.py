"""A model as it is without its calibration: what a new calibration is measured on."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ptedge.artifacts.bundle import Bundle
from ptedge.artifacts.calibrated_bundle import write_calibrated
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.backends.predictor import Predictor


@contextlib.contextmanager
def uncalibrated_checkpoint(path: Path, threads: int | None = None) -> Iterator[Predictor]:
    """A checkpoint without its calibration.

    Args:
        path: of the checkpoint.
        threads: CPU threads; ``None`` leaves the default.

    Raises:
        InputError, ArtifactError: see :func:`ptedge.artifacts.checkpoint.load_checkpoint`.
        MissingExtraError: torch is not installed.
    """
    from ptedge.backends.checkpoint_predictor import CheckpointPredictor  # needs torch

    predictor = CheckpointPredictor(path, threads, calibrated=False)
    with contextlib.closing(predictor):
        yield predictor


@contextlib.contextmanager
def uncalibrated_bundle(bundle: Bundle, backend: str = "auto", threads: int | None = None) -> Iterator[Predictor]:
    """A bundle without its calibration: itself where it has none, else a copy, for which there is no engine.

    Args:
        bundle: opened bundle folder.
        backend: ``auto``, ``tensorrt``, ``cuda`` or ``cpu``.
        threads: CPU threads; ``None`` leaves the default.

    Raises:
        ArtifactError: broken bundle.
        BackendError: the backend is not there, or no engine fits.
        OutputError: no room for the copy.
    """
    with tempfile.TemporaryDirectory() as folder:
        path, trust = bundle.path, bundle.trust
        if bundle.manifest.calibration is not None:
            path, trust = write_calibrated(bundle, None, Path(folder) / "bundle").path, None
        with contextlib.closing(BundlePredictor(path, backend, threads, trust=trust)) as predictor:
            yield predictor
