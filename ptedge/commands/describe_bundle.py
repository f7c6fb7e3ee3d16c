"""What a bundle, or an ONNX file alone, is: its manifest, what people ask for first at the head."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ptedge.artifacts.bundle import MANIFEST_NAME, METADATA_KEY, SECOND_NAME, open_bundle
from ptedge.artifacts.manifest import Manifest
from ptedge.artifacts.onnx_metadata import read_metadata
from ptedge.commands.engine_fit import describe_engines
from ptedge.commands.file_digest import digest_of
from ptedge.errors import ArtifactError


def describe_bundle(path: Path) -> dict[str, Any]:
    """What a bundle says of itself, and which of its engines run here.

    Args:
        path: the folder.

    Raises:
        ArtifactError: damaged.
    """
    bundle = open_bundle(path)
    engines = describe_engines(path, bundle.manifest.engines, bundle.model_hash)
    about = {"path": str(path), "kind": "bundle", "signature": bundle.signature}
    return {**about, **main_facts_first(bundle.manifest), "engines_here": engines}


def describe_onnx(path: Path) -> dict[str, Any]:
    """What an ONNX file is.

    Args:
        path: the file.

    Raises:
        ArtifactError: damaged, or its manifest is.
    """
    about: dict[str, Any] = {"path": str(path), "bytes": path.stat().st_size}
    try:
        metadata = read_metadata(path)
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}. Copy or export it again") from None
    except ValueError as error:
        raise ArtifactError(f"{path} is not a whole ONNX file ({error}). Copy or export it again") from None
    if METADATA_KEY not in metadata:
        kind = "ONNX file, not written by ptedge"
        if path.name == SECOND_NAME and (path.parent / MANIFEST_NAME).is_file():
            kind = "second stage of the bundle that it lies in"
        return {**about, "kind": kind, "sha256": digest_of(path), "metadata": metadata}
    bundle = open_bundle(path)
    kind = "ONNX file of a bundle"
    return {**about, "kind": kind, "sha256": bundle.model_hash, **main_facts_first(bundle.manifest)}


def main_facts_first(manifest: Manifest) -> dict[str, Any]:
    """A manifest as plain values, with what people ask for first.

    Args:
        manifest: of the bundle.
    """
    values = manifest.to_json()
    if manifest.reference is not None:
        values["reference"] = manifest.reference.describe()
    first = ("class_names", "input_size", "backbone", "precision", "lineage")
    return {**{name: values[name] for name in first if name in values}, **values}
