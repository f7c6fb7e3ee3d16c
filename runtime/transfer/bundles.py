"""Bundles into a store and out of it: ``versions/NAME/`` as in a deployment, NAME after the content.

The manifest goes last, so a version that has one is whole.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ptedge.artifacts.bundle import MANIFEST_NAME, open_bundle
from ptedge.artifacts.trust import Trust
from ptedge.errors import ArtifactError, InputError, OutputError
from ptedge.files import sha256_file, write_error
from ptedge.stores.store import Item, Store
from ptedge.stores.tree import get_folder, put_folder

from ..deployment.place import VERSIONS, files_of, version_name


@dataclass(frozen=True)
class Moved:
    """A bundle that went to a store or came from it.

    Attributes:
        version: its name there.
        files: of the bundle.
        new: files that were sent; of a pull all of them.
    """

    version: str
    files: int
    new: int


def push_bundle(path: Path, store: Store, trust: Trust | None = None) -> Moved:
    """Put a bundle, its engines and signatures with it; what is there stays.

    Args:
        path: bundle folder.
        store: where it goes.
        trust: keys it must be signed with; ``None`` checks its hashes alone.

    Raises:
        ArtifactError: no whole bundle, or not signed by anybody who is trusted.
        StoreError: the store refuses; the same push again goes on.
    """
    version, files = named_files(path, trust)
    return Moved(version, len(files), put_folder(store, f"{VERSIONS}{version}", path, files))


def pull_bundle(store: Store, out: Path, version: str | None = None, trust: Trust | None = None) -> Moved:
    """Fetch a bundle into a new folder, which appears when all of it is there and is what its name says.

    Args:
        store: holds it.
        out: the folder to make.
        version: its name; ``None`` for the one that was put last.
        trust: as for :func:`push_bundle`.

    Raises:
        InputError: there is no such version, or none at all.
        ArtifactError: it is damaged, or not signed by anybody who is trusted.
        StoreError: the store refuses.
        OutputError: something is at ``out``, or it is not writable.
    """
    with arriving(out) as waiting:
        chosen, names = _chosen(store, version)
        get_folder(store, f"{VERSIONS}{chosen}", names, waiting)
        if named_files(waiting, trust)[0] != chosen:
            raise ArtifactError(f"version {chosen} in {store.address} is not what was pushed. Push its bundle again")
    return Moved(chosen, len(names), len(names))


def named_files(path: Path, trust: Trust | None) -> tuple[str, list[str]]:
    """A bundle's name as a version and its files, the manifest last.

    Args:
        path: bundle folder.
        trust: as for :func:`push_bundle`.

    Raises:
        ArtifactError: no whole bundle, or not signed by anybody who is trusted.
    """
    files = {name: sha256_file(path / name) for name in files_of(open_bundle(path, trust))}
    return version_name(files), list(files)


@contextlib.contextmanager
def arriving(out: Path) -> Iterator[Path]:
    """A folder to fetch a bundle into. It has its name when the block ends, and is gone where that fails.

    Args:
        out: its name.

    Raises:
        OutputError: something is there, or it is not writable.
    """
    if out.exists():
        raise OutputError(f"cannot fetch into {out}: it is there already. Choose another folder")
    waiting = out.with_name(f".{out.name}.{uuid.uuid4().hex[:8]}.checked")
    try:
        yield waiting
        os.rename(waiting, out)
    except OSError as error:
        raise write_error(out, error) from None
    finally:
        shutil.rmtree(waiting, ignore_errors=True)


def _chosen(store: Store, version: str | None) -> tuple[str, list[str]]:
    """Name and files of a version that is there whole, as its manifest shows."""
    there: dict[str, dict[str, Item]] = {}
    for item in store.list(VERSIONS):
        name, _, file = item.key.removeprefix(VERSIONS).partition("/")
        if file and "/" not in file:
            there.setdefault(name, {})[file] = item
    whole = {name: files for name, files in there.items() if MANIFEST_NAME in files}
    if not whole:
        raise InputError(f"{store.address} holds no bundle. ptedge bundle push puts one there")
    chosen = version or max(whole, key=lambda name: (whole[name][MANIFEST_NAME].modified, name))
    if chosen not in whole:
        names = sorted(whole, key=lambda name: whole[name][MANIFEST_NAME].modified)
        raise InputError(f"{store.address} holds no version {version!r}. There are {', '.join(names[-10:])}")
    return chosen, sorted(whole[chosen])
