"""A checkpoint or a bundle whose calibration is to be measured, written or taken off."""

from __future__ import annotations

import dataclasses
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from ptedge.artifacts.bundle import Bundle, is_bundle, open_bundle
from ptedge.artifacts.calibrated_bundle import require_place, write_calibrated
from ptedge.artifacts.engine_file import ENGINE_SUFFIX
from ptedge.artifacts.signature import SigningKey
from ptedge.artifacts.trust import BUNDLE_SIGNATURE, Trust
from ptedge.backends.predictor import Predictor
from ptedge.backends.uncalibrated import uncalibrated_bundle, uncalibrated_checkpoint
from ptedge.calibration import SideCalibration
from ptedge.errors import InputError, OutputError
from ptedge.files import sha256_file
from ptedge.folders import hold_folder, keep_copy


class CalibratedModel(Protocol):
    """What ``ptedge calibrate`` needs of a model, of whatever kind.

    Attributes:
        path: what the user named.
        model_hash: sha256 of its weights' file.
        calibration: that it has; ``None`` for none.
    """

    path: Path
    model_hash: str
    calibration: SideCalibration | None

    def predictor(self, backend: str, threads: int | None) -> AbstractContextManager[Predictor]:
        """The model without its calibration, ready to answer.

        Args:
            backend: for a bundle: ``auto``, ``tensorrt``, ``cuda`` or ``cpu``.
            threads: CPU threads; ``None`` leaves the default.
        """
        ...

    def write(self, calibration: SideCalibration | None, out: Path | None) -> list[str]:
        """Write the model with another calibration.

        Args:
            calibration: ``None`` for none.
            out: where to; ``None`` for the place where it is.

        Returns:
            Lines on what was written and what is to be done next.
        """
        ...


def open_calibrated(path: Path, trust: Trust | None = None, key: SigningKey | None = None) -> CalibratedModel:
    """Open a model for calibration.

    Args:
        path: checkpoint or bundle folder.
        trust: keys that a bundle must be signed with.
        key: to sign the new bundle with.

    Raises:
        InputError: nothing there, neither of these kinds, or keys for a checkpoint, which carries no signature.
        ArtifactError: broken, or a bundle without a place for a calibration.
        MissingExtraError: a checkpoint without torch installed.
    """
    if not path.exists():
        raise InputError(f"{path} does not exist. Give a checkpoint (model.pt) or a bundle folder")
    if is_bundle(path):
        return _BundleModel(path, trust, key)
    if path.is_dir() or path.suffix == ENGINE_SUFFIX:
        raise InputError(f"{path} is neither a checkpoint nor a bundle folder. Give one of these")
    if trust is not None or key is not None:
        raise InputError(f"{path} is a checkpoint, which carries no signature. Leave out --trust and --sign")
    return _CheckpointModel(path)


class _CheckpointModel:
    def __init__(self, path: Path) -> None:
        from ptedge.artifacts.checkpoint import load_checkpoint  # needs torch

        self.path, self.model_hash = path, sha256_file(path)
        self._checkpoint = load_checkpoint(path)
        self.calibration = self._checkpoint.calibration

    def predictor(self, backend: str, threads: int | None) -> AbstractContextManager[Predictor]:
        return uncalibrated_checkpoint(self.path, threads)

    def write(self, calibration: SideCalibration | None, out: Path | None) -> list[str]:
        from ptedge.artifacts.checkpoint import save_checkpoint

        reference = self._checkpoint.reference
        checkpoint = dataclasses.replace(
            self._checkpoint,
            calibration=calibration,
            reference=reference.without("sigma") if reference is not None else None,  # sigma is another one now
        )
        target = out if out is not None else self.path
        with hold_folder(target.resolve().parent, "ptedge calibrate"):
            before = keep_copy(target) if target.is_file() else None
            try:
                save_checkpoint(target, checkpoint)
            except OutputError:
                if before is not None:
                    before.unlink(missing_ok=True)
                raise
        lines = [f"wrote {target}"]
        if before is not None:
            lines.append(f"what was there before is {before} now")
        return [*lines, f"Next: ptedge export {target} --out BUNDLE"]


class _BundleModel:
    def __init__(self, path: Path, trust: Trust | None, key: SigningKey | None) -> None:
        self.path, self._key = path, key
        self._bundle: Bundle = open_bundle(path, trust)
        require_place(self._bundle)
        self.model_hash, self.calibration = self._bundle.model_hash, self._bundle.manifest.calibration

    def predictor(self, backend: str, threads: int | None) -> AbstractContextManager[Predictor]:
        return uncalibrated_bundle(self._bundle, backend, threads)

    def write(self, calibration: SideCalibration | None, out: Path | None) -> list[str]:
        target = out if out is not None else self.path
        signed = (target / BUNDLE_SIGNATURE).exists()
        engines = len(list(target.glob(f"*{ENGINE_SUFFIX}"))) if target.is_dir() else 0
        written = write_calibrated(self._bundle, calibration, target, self._key)
        lines = [f"wrote {target}: model {written.model_hash[:12]}"]
        if engines:
            lines.append(f"{engines} engines of the graph before are gone. Build again: ptedge build {target}")
        if signed and self._key is None:
            lines.append(f"its signature was of the graph before and is gone. Sign: ptedge sign {target} --key KEY")
        return lines
