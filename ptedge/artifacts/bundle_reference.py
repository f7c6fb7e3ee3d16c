"""A bundle that learns what frames are like where it runs: its manifest is written anew, model and engines stay.

Needs neither torch nor onnx: a device may do so for its own bundle.
"""

from __future__ import annotations

from ptedge.artifacts.bundle import MANIFEST_NAME, Bundle, read_manifest
from ptedge.artifacts.signature import SigningKey
from ptedge.artifacts.trust import BUNDLE_SIGNATURE, sign_bundle
from ptedge.config import to_dict
from ptedge.drift.reference import Reference
from ptedge.errors import InputError
from ptedge.files import write_json


def write_reference(bundle: Bundle, reference: Reference, key: SigningKey | None = None) -> None:
    """Put a reference into a bundle's manifest; model and engines stay as they are.

    Args:
        bundle: opened bundle folder.
        reference: of the place that the model is for.
        key: to sign it with; without one, a signature that stood there goes, as it was of another manifest.

    Raises:
        InputError: an ONNX file alone.
        ArtifactError: its manifest cannot be read.
        OutputError: it cannot be written.
    """
    if bundle.path == bundle.model_path:
        raise InputError(f"{bundle.path} is an ONNX file; a reference goes into a bundle folder. Give the folder")
    values = read_manifest(bundle.path) | {"reference": to_dict(reference)}
    # first: between the two, a bundle without a signature is refused by who wants one, and none is trusted wrongly
    (bundle.path / BUNDLE_SIGNATURE).unlink(missing_ok=True)
    write_json(bundle.path / MANIFEST_NAME, values)
    if key is not None:
        sign_bundle(bundle.path, values, key)
