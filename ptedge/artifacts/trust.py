"""Which bundles and engines to trust: those signed with a key the user names.

A hash in the manifest shows that a file is whole; whoever changes the file can change the hash. A signature shows that
the owner of a key wrote it. Two kinds stand in a bundle:

- ``bundle.sig`` covers the manifest without its list of engines, and every file of that manifest. Written by
  ``ptedge export --sign``, it stays good when the device adds engines.
- ``<engine>.sig`` covers one engine and its record. Engines are built on the device, so ``ptedge build --sign`` writes
  it there, mostly with a key of the device's own.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ptedge.artifacts.engine_file import EngineRecord, record_to_json
from ptedge.artifacts.signature import (
    PublicKey,
    Signature,
    SigningKey,
    read_public_keys,
    read_signature,
    require_signed,
    write_signature,
)
from ptedge.errors import ArtifactError

BUNDLE_SIGNATURE = "bundle.sig"
SUFFIX = ".sig"
MANIFEST = "manifest.json"
_ABOUT = "manifest.json without its engines"  # what the line of the statement says
_RECORD = "its record in manifest.json"


@dataclass(frozen=True)
class Trust:
    """Keys whose signature is enough.

    Attributes:
        keys: any of them will do.
    """

    keys: tuple[PublicKey, ...]

    @classmethod
    def read(cls, paths: Sequence[Path]) -> Trust | None:
        """The keys in some files; ``None`` for no file, which means that nothing is checked.

        Args:
            paths: of public keys, see :func:`ptedge.artifacts.signature.read_public_keys`.

        Raises:
            InputError: no such key.
            MissingExtraError: cryptography is not installed.
        """
        return cls(tuple(key for path in paths for key in read_public_keys(path))) if paths else None


def sign_bundle(folder: Path, manifest: Mapping[str, Any], key: SigningKey) -> None:
    """Write ``bundle.sig``.

    Args:
        folder: of the bundle; that its files match the manifest was checked.
        manifest: as it stands in ``manifest.json``.
        key: to sign with.

    Raises:
        OutputError: it cannot be written.
    """
    write_signature(folder / BUNDLE_SIGNATURE, "bundle", _files_of(manifest), key)


def require_bundle(folder: Path, manifest: Mapping[str, Any], trust: Trust) -> Signature:
    """Refuse a bundle that is not as somebody who is trusted signed it.

    Args:
        folder: of the bundle; that its files match the manifest is checked by the caller.
        manifest: as it stands in ``manifest.json``.
        trust: keys.

    Raises:
        ArtifactError: unsigned, signed with another key, changed, or with a file nobody signed.
        MissingExtraError: cryptography is not installed.
    """
    found = require_signed(folder / BUNDLE_SIGNATURE, "bundle", _files_of(manifest), trust.keys)
    engines = [str(engine["file"]) for engine in manifest.get("engines", [])]
    known = {MANIFEST, BUNDLE_SIGNATURE, *manifest["files"], *engines, *(name + SUFFIX for name in engines)}
    extra = sorted(entry.name for entry in folder.iterdir() if entry.name not in known)
    if extra:
        raise ArtifactError(f"{folder} holds {extra[0]!r}, which nobody signed. Remove it, or run without --trust")
    return found


def sign_engine(folder: Path, record: EngineRecord, key: SigningKey) -> None:
    """Write the signature of an engine beside it.

    Args:
        folder: of the bundle.
        record: of the engine, with the hash of the file.
        key: to sign with.

    Raises:
        OutputError: it cannot be written.
    """
    write_signature(folder / (record.file + SUFFIX), "engine", _engine_files(record), key)


def require_engine(folder: Path, record: EngineRecord, trust: Trust) -> Signature:
    """Refuse an engine that nobody who is trusted signed; that the file has the record's hash is checked on reading.

    Args:
        folder: of the bundle.
        record: of the engine.
        trust: keys.

    Raises:
        ArtifactError: unsigned, signed with another key, or of another record.
        MissingExtraError: cryptography is not installed.
    """
    try:
        return require_signed(folder / (record.file + SUFFIX), "engine", _engine_files(record), trust.keys)
    except ArtifactError as error:
        raise ArtifactError(f"{error}. Build it with a key you trust: ptedge build {folder} --sign KEY") from None


def describe_signature(folder: Path) -> str:
    """What a bundle's signature says of itself, in words; nothing of it is checked here.

    Args:
        folder: of the bundle.
    """
    if not (folder / BUNDLE_SIGNATURE).exists():
        return "none: its hashes show that it is whole, not who made it"
    try:
        found = read_signature(folder / BUNDLE_SIGNATURE)
    except ArtifactError as error:
        return f"damaged: {error}"
    return f"says {found.fingerprint} signed it on {found.statement.signed}; not checked (that needs --trust KEY)"


def _files_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    about = {name: value for name, value in manifest.items() if name != "engines"}
    return {**manifest["files"], _ABOUT: _digest(about)}


def _engine_files(record: EngineRecord) -> dict[str, str]:
    return {record.file: record.sha256, _RECORD: _digest(record_to_json(record))}


def _digest(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
