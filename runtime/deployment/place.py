"""The place of a deployment: versions under ``versions/``, the history under ``history/``.

A version is named after its content. It is put file by file before an entry of the history names it, so that what the
history names is whole; what a killed promotion left is completed by the next promotion of the same bundle.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from ptedge.artifacts.bundle import MANIFEST_NAME, Bundle
from ptedge.artifacts.trust import BUNDLE_SIGNATURE, SUFFIX
from ptedge.errors import ArtifactError, InputError, OutputError
from ptedge.files import sha256_file
from ptedge.stores.opening import open_store
from ptedge.stores.store import Store
from ptedge.stores.tree import put_folder

from .crashes import FOLDER as TRIALS
from .history import FOLDER, Entry, State, key_of, read_history, state_of

VERSIONS = "versions/"
NAME_LENGTH = 16  # hex digits of a version's name


class Deployment:
    """Where a device's model stands.

    Attributes:
        path: the folder.
        store: its contents.
    """

    def __init__(self, path: Path) -> None:
        """Take a folder; nothing is read.

        Args:
            path: of the deployment.
        """
        self.path = path
        self.store: Store = open_store(path)

    def history(self) -> list[Entry]:
        """All entries, the first one first.

        Raises:
            ArtifactError: one is damaged or missing.
        """
        return read_history(self.store)

    def state(self) -> State:
        """What runs, and what ran before.

        Raises:
            ArtifactError: see :meth:`history`.
        """
        return state_of(self.history())

    def moved(self, number: int) -> bool:
        """Whether there is a later entry than this one: one question, whatever the length of the history."""
        return self.store.head(key_of(number + 1)) is not None

    def put_version(self, bundle: Bundle) -> tuple[str, dict[str, str]]:
        """Store a bundle's files; the deployment does not run them by that.

        Args:
            bundle: opened bundle folder.

        Returns:
            Name of the version, and the sha256 of each of its files.

        Raises:
            StoreError: not writable, or full.
        """
        files = {name: sha256_file(bundle.path / name) for name in files_of(bundle)}
        version = version_name(files)
        put_folder(self.store, f"{VERSIONS}{version}", bundle.path, list(files))
        return version, files

    def folder_of(self, version: str, files: dict[str, str]) -> Path:
        """A version as a bundle folder, after a look whether it is still what was promoted.

        Args:
            version: its name.
            files: name -> sha256, as the history has them.

        Raises:
            ArtifactError: a file is missing or changed.
        """
        folder = self.path / VERSIONS / version
        for name, digest in files.items():
            try:
                changed = sha256_file(folder / name) != digest
            except OSError as error:
                raise ArtifactError(f"version {version} cannot be read: {folder / name}: {error.strerror}") from None
            if changed:
                raise ArtifactError(
                    f"{folder / name} was changed since version {version} was promoted. Remove {folder}, and promote "
                    "its bundle again"
                )
        return folder

    def remove_version(self, version: str) -> None:
        """Remove the files of a version that nothing runs; what is half removed can be promoted again.

        Raises:
            StoreError: not writable.
        """
        folder = f"{VERSIONS}{version}/"
        keys = [item.key for item in self.store.list(folder)]
        for key in sorted(keys, key=lambda key: not key.endswith(MANIFEST_NAME)):
            self.store.delete(key)


def is_deployment(path: Path) -> bool:
    """Whether a path is a deployment that something was promoted to."""
    return (path / key_of(1)).is_file()


def open_deployment(path: Path) -> Deployment:
    """A deployment that is there.

    Raises:
        InputError: nothing was promoted to it, or it is something else.
    """
    if not is_deployment(path):
        raise InputError(f"{path} is no deployment: it has no {key_of(1)}. Make one: ptedge promote BUNDLE --to {path}")
    return Deployment(path)


def new_deployment(path: Path) -> Deployment:
    """A deployment, or a place for one.

    Raises:
        OutputError: something else is there.
    """
    own = {name.rstrip("/") for name in (VERSIONS, FOLDER, TRIALS)}
    there = {entry.name for entry in path.iterdir()} if path.is_dir() else set()
    # hidden: the lock, and what a killed command left
    if path.is_file() or any(name not in own and not name.startswith(".") for name in there):
        raise OutputError(f"{path} holds something other than a deployment. Choose another --to")
    return Deployment(path)


def files_of(bundle: Bundle) -> list[str]:
    """Names of the files that make up a bundle, the manifest last.

    Args:
        bundle: opened.

    Raises:
        InputError: it is an ONNX file alone.
    """
    if not bundle.path.is_dir():
        raise InputError(f"{bundle.path} is an ONNX file alone; a deployment takes bundle folders. Give its folder")
    manifest = bundle.manifest
    engines = [record.file for record in manifest.engines]
    wanted = [*manifest.files, *engines]
    optional = [BUNDLE_SIGNATURE, *(name + SUFFIX for name in engines)]
    missing = [name for name in engines if not (bundle.path / name).is_file()]
    if missing:
        raise ArtifactError(
            f"{bundle.path / MANIFEST_NAME} lists the engine {missing[0]}, which is not there. "
            f"Build it again: ptedge build {bundle.path}"
        )
    return [*wanted, *(name for name in optional if (bundle.path / name).is_file()), MANIFEST_NAME]


def version_name(files: dict[str, str]) -> str:
    """A name after the content.

    Args:
        files: name -> sha256.
    """
    text = json.dumps(files, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:NAME_LENGTH]


def facts_of(bundle: Bundle) -> dict[str, str]:
    """What the history says of a version, so that a person knows it again.

    Args:
        bundle: opened.
    """
    manifest = bundle.manifest
    height, width = manifest.input_size
    return {
        "model_hash": bundle.model_hash,
        "created": manifest.created,
        "classes": ", ".join(manifest.class_names),
        "input_size": f"{height}x{width}",
        "precision": manifest.precision,
        "lineage": f"{manifest.lineage.kind}, {manifest.lineage.step} steps",
        "checkpoint": manifest.lineage.checkpoint,
        "signature": bundle.signature,
    }
