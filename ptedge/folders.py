"""The folders that commands write: one writer at a time, and never the results of two runs mixed (docs/folders.md)."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import click

from ptedge.errors import OutputError
from ptedge.files import atomic_write, make_output_folder, write_error

LOCK_NAME = ".ptedge-lock"
EARLIER = "earlier"  # earlier-1, earlier-2...: results that stepped aside
MOVING = ".earlier.tmp"  # they are gathered here; a kill in between is gone on with

_held: set[int] = set()  # descriptors of locks that this process holds


def _tell(text: str) -> None:
    with contextlib.suppress(OSError):
        click.echo(text, err=True)


@contextlib.contextmanager
def hold_folder(
    path: Path, what: str, *, inherited: bool = False, tell: Callable[[str], None] = _tell
) -> Iterator[int | None]:
    """Be the only command that writes into a folder; the system lets go of it when the process ends, however it does.

    Args:
        path: made when missing.
        what: the command, for the sentence that another one gets.
        inherited: commands that inherit the descriptor hold the folder too, should this process be killed.
        tell: told when the file system has no locks.

    Yields:
        The descriptor of the lock; ``None`` where the system or the file system has no locks.

    Raises:
        OutputError: another process holds it, or it is not writable.
    """
    make_output_folder(path)
    descriptor = _lock(path, what, tell)
    if descriptor is not None and not inherited:
        _forget_in_forks()
        _held.add(descriptor)
    try:
        yield descriptor
    finally:
        if descriptor is not None:
            with contextlib.suppress(OSError):
                if not inherited and is_at(path / LOCK_NAME, descriptor):
                    (path / LOCK_NAME).unlink()  # while it is held: who waits for it looks whether it is still there
                os.close(descriptor)
            _held.discard(descriptor)


@functools.cache
def _forget_in_forks() -> None:
    """A worker forked while a folder is held shares the lock, and would hold it beyond a kill of its parent."""
    os.register_at_fork(after_in_child=_forget)


def _forget() -> None:
    for descriptor in _held:
        with contextlib.suppress(OSError):
            os.close(descriptor)
    _held.clear()


def _lock(path: Path, what: str, tell: Callable[[str], None]) -> int | None:
    if sys.platform == "win32":
        return None
    import fcntl

    where = path / LOCK_NAME
    while True:
        try:
            descriptor = os.open(where, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
        except OSError as error:
            raise write_error(where, error) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 200, 0).decode("utf-8", "replace").strip() or "another ptedge command"
            os.close(descriptor)
            raise OutputError(f"{path} is in use by {holder}. Wait for it, stop it, or choose another folder") from None
        except OSError as error:
            os.close(descriptor)
            with contextlib.suppress(OSError):
                where.unlink()
            tell(f"cannot lock {path} ({error.strerror}): see to it that no other command writes there meanwhile")
            return None
        if is_at(where, descriptor):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{what} (process {os.getpid()} on {socket.gethostname()})\n".encode(), 0)
            return descriptor
        os.close(descriptor)  # its last holder removed it between our two calls


def is_at(path: Path, descriptor: int) -> bool:
    """Whether an open file still has its name: nobody removed it or put another in its place."""
    try:
        there, ours = os.stat(path), os.fstat(descriptor)
    except OSError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


@contextlib.contextmanager
def take_folder(named: Path | None, default: Path, what: str) -> Iterator[Path]:
    """Hold the folder that the user named, or else one of the command's own.

    Args:
        named: of the user; ``None`` takes the first of ``default``, ``default-2``, ``default-3``... that is free. It is
            removed at the end if it is empty then.
        default: of the command.
        what: as :func:`hold_folder`.

    Yields:
        The folder.

    Raises:
        OutputError: another process holds it, or it is not writable.
    """
    with contextlib.ExitStack() as held:
        if named is not None:
            held.enter_context(hold_folder(named, what))
            yield named
            return
        path = _first_free(default, what, held)
        try:
            yield path
        finally:
            held.close()
            with contextlib.suppress(OSError):  # a run that came to nothing leaves nothing
                path.rmdir()


def _first_free(default: Path, what: str, held: contextlib.ExitStack) -> Path:
    for path in itertools.chain([default], (default.with_name(f"{default.name}-{n}") for n in itertools.count(2))):
        if path.exists() and not _is_free(path):
            continue
        try:
            held.enter_context(hold_folder(path, what))
        except OutputError:
            if path.is_dir() and os.access(path, os.W_OK):  # a run that began at the same time was first
                continue
            raise
        if _is_free(path):
            return path
        held.close()
    raise AssertionError("numbers do not end")


def _is_free(path: Path) -> bool:
    return path.is_dir() and all(entry.name == LOCK_NAME for entry in path.iterdir())


def set_aside(folder: Path, names: Iterable[str], record: str) -> Path | None:
    """Move an earlier run's results into ``earlier-1``, ``earlier-2``... of their folder, all of them or, after a kill,
    the rest at the next call.

    Args:
        folder: that the caller holds.
        names: files and folders in it that an earlier run wrote; those that are not there are passed over.
        record: the file that says so; it goes last.

    Returns:
        Where they are now; ``None`` when there were none, or nothing in them (then they are removed).

    Raises:
        OutputError: not writable.
    """
    moving = folder / MOVING
    there = [folder / name for name in names if os.path.lexists(folder / name)]
    empty = not any(_holds_something(path) for path in there)
    there += [folder / record] if (folder / record).exists() else []
    try:
        if empty and not moving.exists():
            for path in there:
                path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
            return None
        moving.mkdir(exist_ok=True)
        for path in there:
            os.rename(path, moving / path.name)
        target = next(t for n in itertools.count(1) if not (t := folder / f"{EARLIER}-{n}").exists())
        os.rename(moving, target)
    except OSError as error:
        raise write_error(folder, error) from None
    return target


def set_file_aside(path: Path) -> Path | None:
    """Give a file that will be written anew another name: ``train.json.earlier-1``, ``train.json.earlier-2``...

    Args:
        path: of a file that a user named.

    Returns:
        Its name now; ``None`` when there was none. It is told.

    Raises:
        OutputError: not writable.
    """
    if not path.is_file():
        return None
    target = next(t for n in itertools.count(1) if not (t := path.with_name(f"{path.name}.{EARLIER}-{n}")).exists())
    try:
        os.rename(path, target)
    except OSError as error:
        raise write_error(path, error) from None
    _tell(f"{path} was there already; it is {target} now")
    return target


def keep_copy(path: Path) -> Path:
    """As :func:`set_file_aside`, for a file that is never to be missing: it keeps its name as well, until another file
    takes it.

    Args:
        path: of a file that is there.

    Returns:
        The other name.

    Raises:
        OutputError: not writable.
    """
    target = next(t for n in itertools.count(1) if not (t := path.with_name(f"{path.name}.{EARLIER}-{n}")).exists())
    try:
        try:
            os.link(path, target)
        except OSError:  # a file system without links
            with atomic_write(target) as file, open(path, "rb") as original:
                shutil.copyfileobj(original, file)
    except OSError as error:
        raise write_error(target, error) from None
    return target


def _holds_something(path: Path) -> bool:
    if path.is_symlink():
        return True
    return any(path.iterdir()) if path.is_dir() else path.stat().st_size > 0


def refuse_strangers(folder: Path, names: Sequence[str]) -> None:
    """Refuse to write where something else has the name of what will be written.

    Args:
        folder: to be written into.
        names: of what will be written.

    Raises:
        OutputError: the first of them that is there.
    """
    for name in names:
        if os.path.lexists(folder / name):
            raise OutputError(
                f"{folder / name} is there already, and nothing in {folder} says which run it is of. "
                f"Move it away, or choose another --out"
            )
