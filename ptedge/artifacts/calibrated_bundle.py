"""A bundle with another calibration: its graph's two constants, its manifest and its hashes written anew, all at once.

Of a model in two graphs only the manifest, as the correction is made in code behind them.

Needs neither torch nor onnx: a device may calibrate its own bundle.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from ptedge.artifacts.bundle import METADATA_KEY, MODEL_NAME, SECOND_NAME, Bundle, write_bundle
from ptedge.artifacts.engine_file import ENGINE_SUFFIX
from ptedge.artifacts.graph_sides import write_sides
from ptedge.artifacts.manifest import repair_hint
from ptedge.artifacts.onnx_metadata import without_metadata
from ptedge.artifacts.signature import SigningKey
from ptedge.artifacts.trust import BUNDLE_SIGNATURE, MANIFEST, SUFFIX
from ptedge.calibration import SideCalibration
from ptedge.errors import ArtifactError, InputError, OutputError


def require_place(bundle: Bundle) -> None:
    """Refuse a bundle that no calibration can be written into.

    Raises:
        InputError: an ONNX file alone.
        ArtifactError: its graph was exported before graphs had a place for it.
    """
    if bundle.path == bundle.model_path:
        raise InputError(f"{bundle.path} is an ONNX file; a calibration goes into a bundle folder. Give the folder")
    if bundle.manifest.schema < 2:
        raise ArtifactError(
            f"{bundle.path} was exported before graphs had a place for a calibration. {repair_hint(bundle.path)}"
        )


def write_calibrated(
    bundle: Bundle, calibration: SideCalibration | None, folder: Path, key: SigningKey | None = None
) -> Bundle:
    """Write a bundle with another calibration; engines and signatures, which are of the graph as it was, stay behind.

    Args:
        bundle: opened bundle folder.
        calibration: ``None`` for none.
        folder: where it goes; the bundle's own, or another that is not there, is empty or holds a bundle.
        key: to sign it with.

    Returns:
        The bundle that now stands there.

    Raises:
        InputError, ArtifactError: see :func:`require_place`; or the model was changed since it was opened.
        OutputError: not writable, or ``folder`` holds what is no part of a bundle.
    """
    require_place(bundle)
    if folder.is_dir():
        _refuse_strangers(folder)
    given = calibration if calibration is not None else SideCalibration()
    model, second = bundle.read_model(), bundle.read_second()
    if second is None:  # what runs two graphs takes the correction from the manifest
        try:
            model = write_sides(model, given.offset, given.scale)
        except ValueError as error:
            raise ArtifactError(f"{bundle.model_path}: {error}. {repair_hint(bundle.path)}") from None
    manifest = bundle.manifest.with_calibration(calibration)
    if manifest.reference is not None:  # sigma is another one now
        manifest = dataclasses.replace(manifest, reference=manifest.reference.without("sigma"))
    return write_bundle(folder, manifest, without_metadata(model, METADATA_KEY), key, second)


def _refuse_strangers(folder: Path) -> None:
    """A bundle is replaced as a folder: what somebody else put there would go with it."""
    known = {MANIFEST, BUNDLE_SIGNATURE, MODEL_NAME, SECOND_NAME}
    for entry in sorted(folder.iterdir()):
        name = entry.name.removesuffix(SUFFIX)
        if entry.name not in known and not name.endswith(ENGINE_SUFFIX):
            raise OutputError(
                f"{entry} is no part of a bundle, and the folder is written anew. Move it away, or give another --out"
            )
