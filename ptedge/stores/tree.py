"""Folders of files, as a bundle is one, into a store and back.

The file that says what belongs together goes last, so whoever finds it finds all the others.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Sequence
from pathlib import Path

from ptedge.errors import OutputError, StoreError
from ptedge.files import atomic_write, write_error
from ptedge.stores.store import Store, check_key


def put_folder(store: Store, prefix: str, folder: Path, names: Sequence[str]) -> int:
    """Put files of a folder, in order; those that are there stay, so an interrupted call is gone on with.

    Args:
        store: to put them into.
        prefix: of their keys, without a slash at its end; the name follows. It belongs to these files alone, as a hash
            of them does.
        folder: that holds them.
        names: of the files; the one that readers look for last.

    Returns:
        How many were new.

    Raises:
        StoreError: the store refuses, or a file of another size has the key: the prefix belongs to something else.
    """
    new = 0
    for name in names:
        key = check_key(f"{prefix}/{name}")
        if store.put(key, folder / name):
            new += 1
            continue
        there, size = store.head(key), (folder / name).stat().st_size
        if there is None or there.size != size:
            raise StoreError(
                f"{key} in {store.address} is not what {folder / name} is: something else was put there. "
                f"Choose another place"
            )
    return new


def get_folder(store: Store, prefix: str, names: Sequence[str], out: Path) -> None:
    """Fetch files into a new folder, which appears when all are there.

    Args:
        store: holds them.
        prefix: as for :func:`put_folder`.
        names: of the files.
        out: the folder to make.

    Raises:
        StoreError: the store refuses, or one of them is not there (AbsentError).
        OutputError: something is there already, or it is not writable.
    """
    if out.exists():
        raise OutputError(f"cannot fetch into {out}: it is there already. Choose another --out")
    temporary = out.with_name(f".{out.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        for name in names:
            key = check_key(f"{prefix}/{name}")
            with atomic_write(temporary / name) as file:
                for piece in store.get(key):
                    file.write(piece)
        temporary.rename(out)
    except OSError as error:
        raise write_error(out, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
