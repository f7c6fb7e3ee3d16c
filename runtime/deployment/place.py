"""The place of a deployment, a folder or a bucket: versions under ``versions/``, the history under ``history/``.

A version is named after its content. It is put file by file before an entry of the history names it, so that what the
history names is whole; what a killed promotion left is completed by the next promotion of the same bundle.

Of a deployment in a bucket this machine keeps a copy: all of the history, and the versions that it ran. The copy is a
folder of the same shape, which is what runs while the bucket is away.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import shutil
from collections.abc import Collection
from pathlib import Path

from ptedge.artifacts.bundle import MANIFEST_NAME, Bundle
from ptedge.artifacts.trust import BUNDLE_SIGNATURE, SUFFIX
from ptedge.errors import ArtifactError, InputError, OutputError, StoreError
from ptedge.files import sha256_file, user_cache
from ptedge.stores.copied import CopiedStore
from ptedge.stores.folder import FolderStore
from ptedge.stores.opening import is_address, open_store
from ptedge.stores.store import PROBES, Store
from ptedge.stores.tree import put_folder

from .crashes import FOLDER as TRIALS
from .history import FOLDER, Entry, State, key_of, read_history, state_of

VERSIONS = "versions/"
NAME_LENGTH = 16  # hex digits of a version's name
MOST_LOOKED_AT = 10  # objects that tell whether a bucket's place is free

Place = str | Path  # a folder, or the address of a store


class Deployment:
    """Where a device's model stands.

    Attributes:
        address: as the user named it.
        path: folder of its files on this machine: the deployment itself, or the copy of one in a bucket.
        store: its contents.
        local: what this machine has of them, and notes of its own; of a folder the same store.
    """

    def __init__(self, place: Place, cache: Path | None = None) -> None:
        """Take a folder or an address; nothing is read.

        Args:
            place: of the deployment.
            cache: folder for the copy of one in a bucket; ``None`` for one below the user's cache.

        Raises:
            StoreError: no such kind of store, or its access key is not to be found.
            MissingExtraError: a bucket, and boto3 is not installed.
        """
        self.address = str(place)
        self.store: Store = open_store(place)
        self.local: Store = self.store
        self._far: CopiedStore | None = None
        self.path = Path(place)
        if is_address(self.address):
            self.path = cache or user_cache() / "deployments" / hashlib.sha256(self.address.encode()).hexdigest()[:16]
            self.local = copies = FolderStore(self.path)
            self.store = self._far = CopiedStore(self.store, copies)

    @property
    def far(self) -> bool:
        """Whether it is in a bucket, which may be away, and its files have to be fetched."""
        return self._far is not None

    def history(self) -> list[Entry]:
        """All entries, the first one first.

        Raises:
            ArtifactError: one is damaged or missing.
            StoreError: the store is away or refuses.
        """
        return read_history(self.store)

    def state(self) -> State:
        """What runs, and what ran before.

        Raises:
            PtedgeError: see :meth:`history`.
        """
        return state_of(self.history())

    def state_here(self) -> State:
        """The last state whose running version is whole on this machine, whatever the store has meanwhile.

        Raises:
            ArtifactError: as :meth:`history`.
        """
        entries = read_history(self.local)
        while entries:
            state = state_of(entries)
            version = str(state.version)
            if not any(_differs(self.path / VERSIONS / version / n, d) for n, d in state.files[version].items()):
                return state
            entries.pop()
        return State()

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

    def check_version(self, version: str, files: dict[str, str]) -> None:
        """See whether a version is whole: a folder's files by their hashes, a bucket's by their names. Who fetches them
        holds them to their hashes.

        Args:
            version: its name.
            files: name -> sha256, as the history has them.

        Raises:
            ArtifactError: a file is missing or changed.
        """
        if self._far is None:
            self.folder_of(version, files)
            return
        for name in files:
            if self._far.head(f"{VERSIONS}{version}/{name}") is None:
                raise ArtifactError(f"version {version} in {self.address} has no {name} any more. Promote its bundle")

    def fetch(self, version: str, files: dict[str, str]) -> None:
        """Have a version's files on this machine. What is here stays, so an interrupted call is gone on with.

        Args:
            version: its name.
            files: name -> sha256, as the history has them.

        Raises:
            StoreError: the store is away, or has them no more.
            ArtifactError: one is not what was promoted.
            OutputError: there is no room for them.
        """
        if self._far is None:
            return
        for name, digest in files.items():
            key = f"{VERSIONS}{version}/{name}"
            if not _differs(self.path / key, digest):
                continue
            self.local.delete(key)
            self._far.fetch(key)
            if _differs(self.path / key, digest):
                self.local.delete(key)
                raise ArtifactError(
                    f"{key} in {self.address} is not what was promoted. Remove it there, and promote its bundle again"
                )

    def folder_of(self, version: str, files: dict[str, str]) -> Path:
        """A version as a bundle folder, after a look whether it is still what was promoted; fetched where it is far.

        Args:
            version: its name.
            files: name -> sha256, as the history has them.

        Raises:
            ArtifactError: a file is missing or changed.
            StoreError: as :meth:`fetch`.
            OutputError: as :meth:`fetch`.
        """
        self.fetch(version, files)
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
        keys = [item.key for item in self.store.list(f"{VERSIONS}{version}/")]
        for key in sorted(keys, key=lambda key: not key.endswith(MANIFEST_NAME)):
            self.store.delete(key)

    def forget_others(self, versions: Collection[str]) -> None:
        """Remove the copies that this machine has of other versions.

        Args:
            versions: whose copies stay.
        """
        if self._far is not None:
            with contextlib.suppress(OSError):
                for copy in (self.path / VERSIONS).iterdir():
                    if copy.name not in versions:
                        shutil.rmtree(copy, ignore_errors=True)

    def others(self) -> list[str]:
        """Names at its top that are no deployment's; of a bucket, those among the first few objects."""
        if self._far is not None:
            first = itertools.islice(self._far.far.list(), MOST_LOOKED_AT)
            there = {item.key.split("/")[0] for item in first}
        elif self.path.is_dir():
            there = {entry.name for entry in self.path.iterdir()}
        else:
            there = {self.path.name} if self.path.is_file() else set()
        own = {name.rstrip("/") for name in (VERSIONS, FOLDER, TRIALS, PROBES)}
        # hidden: the lock, and what a killed command left
        return sorted(name for name in there if name not in own and not name.startswith("."))


def is_deployment(place: Place) -> bool:
    """Whether a place is a deployment: a folder that something was promoted to, or any address of a store."""
    return is_address(str(place)) or (Path(place) / key_of(1)).is_file()


def open_deployment(place: Place, cache: Path | None = None) -> Deployment:
    """A deployment that is there, or is a copy on this machine while its store is away.

    Args:
        place: a folder, or the address of a store.
        cache: see :class:`Deployment`.

    Raises:
        InputError: nothing was promoted to it, or it is something else.
        StoreError: its store is away, and nothing of it is on this machine.
    """
    deployment = Deployment(place, cache)
    try:
        there = deployment.moved(0)
    except StoreError:
        if not deployment.far or deployment.local.head(key_of(1)) is None:
            raise
        there = True
    if not there:
        raise InputError(
            f"{place} is no deployment: it has no {key_of(1)}. Make one: ptedge promote BUNDLE --to {place}"
        )
    return deployment


def new_deployment(place: Place) -> Deployment:
    """A deployment, or a place for one.

    Raises:
        OutputError: something else is there.
        StoreError: its store is away or refuses.
    """
    deployment = Deployment(place)
    if others := deployment.others():
        raise OutputError(f"{place} holds something other than a deployment ({others[0]}). Choose another --to")
    return deployment


def _differs(path: Path, digest: str) -> bool:
    """Whether a file is not there, or is something else."""
    try:
        return sha256_file(path) != digest
    except OSError:
        return True


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
