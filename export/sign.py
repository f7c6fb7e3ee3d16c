"""``ptedge sign``: vouch for a bundle and its engines as they are."""

from __future__ import annotations

from pathlib import Path

from ptedge.artifacts.bundle import open_bundle, sign_again
from ptedge.artifacts.engine_file import read_engine
from ptedge.artifacts.signature import read_signing_key
from ptedge.artifacts.trust import sign_engine
from ptedge.errors import InputError


def sign_all(path: Path, key_file: Path) -> list[str]:
    """Sign a bundle and every engine in its manifest.

    Args:
        path: bundle folder.
        key_file: private key.

    Returns:
        A line on each thing signed.

    Raises:
        InputError: no bundle folder, or no private key.
        ArtifactError: the bundle or an engine is not what its manifest says; nothing is signed then.
        OutputError: a signature cannot be written.
        MissingExtraError: cryptography is not installed.
    """
    key = read_signing_key(key_file)
    bundle = open_bundle(path)
    if bundle.path == bundle.model_path:
        raise InputError(f"{path} is an ONNX file; a signature stands in a bundle folder. Give the folder")
    for record in bundle.manifest.engines:
        read_engine(path, record)
    sign_again(bundle, key)
    lines = [f"{path}: signed with {key.public.fingerprint}"]
    for record in bundle.manifest.engines:
        sign_engine(path, record, key)
        lines.append(f"{path / record.file}: signed")
    return lines
