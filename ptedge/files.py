"""Files: written whole or not at all (temporary name, fsync, rename), and read within bounds.

Whatever ptedge reads may come from a stranger: a pipe that never answers, a device without end, a text that unpacks to
gigabytes. Readers of whole files go through :func:`read_bounded` and :func:`parse_json`.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO

from ptedge.errors import OutputError

LONGEST_NAME = 255  # bytes, where the system does not say
TEMPORARY = 44  # bytes left free: a temporary name has dots, a process's number and .tmp more; others add to it too
MOST_DEPTH = 50  # tables and lists within each other; ptedge itself writes six at most
_HERE, _NO_REPLACE, _EXCHANGE = -100, 1, 2  # AT_FDCWD, RENAME_NOREPLACE, RENAME_EXCHANGE of renameat2(2)
MOST_JSON_BYTES = 4 << 20  # of a description; a manifest of 1,000 classes has 20 kB


@contextlib.contextmanager
def atomic_write(path: Path, mode: str = "wb") -> Iterator[IO[Any]]:
    """Open a temporary file beside ``path``; on success it takes that name, on any error it vanishes.

    Args:
        path: final name; its folder is made when missing.
        mode: ``"wb"`` or ``"w"`` (UTF-8).

    Raises:
        OutputError: the folder is not writable, or the disk is full. What stood under ``path`` before is untouched.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.unlink(missing_ok=True)  # of a killed process of the same number, or a link that leads elsewhere
        with open(temporary, mode.replace("w", "x"), encoding=None if "b" in mode else "utf-8") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        sync_folder(path.parent)
    except OSError as error:
        raise write_error(path, error) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


def sync_folder(path: Path) -> None:
    """Have a folder's new names on disk too, where the system lets a folder be opened."""
    with contextlib.suppress(OSError):
        number = os.open(path, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def exchange(one: Path, other: Path) -> bool:
    """Give two files or folders each other's name in one step: whoever looks finds either both before or both after.

    Args:
        one: there already, as ``other``; on the same file system.
        other: see ``one``.

    Returns:
        Whether it was done; not outside Linux, and not on a file system that cannot.
    """
    return _renamed(one, other, _EXCHANGE) == 0


def take_name(temporary: Path, path: Path) -> bool:
    """Give a file another name, if nothing has it; in one step, so that of several who try one succeeds.

    Args:
        temporary: the file; where this succeeds, it may keep its name too.
        path: on the same file system.

    Returns:
        Whether it has the name; ``False`` where something else has.

    Raises:
        OSError: not writable, or a file system with neither links nor such a step.
    """
    try:
        os.link(temporary, path)
        return True
    except FileExistsError:
        return False
    except OSError as error:  # a file system without links, as FAT
        code = _renamed(temporary, path, _NO_REPLACE)
        if code == errno.EEXIST:
            return False
        if code == 0:
            return True
        if sys.platform == "win32":
            return _renamed_on_windows(temporary, path)
        raise error


def _renamed(one: Path, other: Path, flag: int) -> int:
    """The number of the error of ``renameat2``, 0 for success; ENOSYS where there is no such call."""
    if sys.platform != "linux":
        return errno.ENOSYS
    import ctypes

    library = ctypes.CDLL(None, use_errno=True)
    rename = getattr(library, "renameat2", None)  # not in every C library
    if rename is None:
        return errno.ENOSYS
    done = rename(_HERE, os.fsencode(one), _HERE, os.fsencode(other), flag)
    return 0 if done == 0 else ctypes.get_errno()


def _renamed_on_windows(temporary: Path, path: Path) -> bool:
    try:
        os.rename(temporary, path)  # which replaces nothing there
    except FileExistsError:
        return False
    return True


def write_error(path: Path, error: OSError) -> OutputError:
    """The sentence for an OSError met while writing ``path``."""
    if error.errno == errno.ENOSPC:
        return OutputError(f"cannot write {path}: the disk is full. Free some space or choose another --out")
    return OutputError(f"cannot write {path}: {error.strerror or error}. Choose another --out")


def write_json(path: Path, value: Any) -> None:
    """Write one JSON document, indented, atomically.

    Raises:
        OutputError: as :func:`atomic_write`.
    """
    with atomic_write(path, "w") as file:
        json.dump(value, file, indent=2, ensure_ascii=False)
        file.write("\n")


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file, or a link to one, for reading; nothing else is opened, so that nothing is waited for.

    A pipe would be waited for until someone writes into it, a device has no end, and opening one may act on it.

    Args:
        path: file.

    Raises:
        OSError: it cannot be opened, or is something else; ``strerror`` says what.
    """
    try:
        _require_regular(os.stat(path))
        # it may have been exchanged since: without waiting, and looked at once more
        flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
        number = os.open(path, flags)
    except ValueError:
        raise OSError(errno.EINVAL, "its name holds a zero byte") from None
    try:
        _require_regular(os.fstat(number))
        return os.fdopen(number, "rb")
    except BaseException:
        os.close(number)
        raise


def _require_regular(status: os.stat_result) -> None:
    if stat.S_ISREG(status.st_mode):
        return
    kinds = {stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}
    what = kinds.get(stat.S_IFMT(status.st_mode), "a device")
    code = errno.EISDIR if stat.S_ISDIR(status.st_mode) else errno.EINVAL
    raise OSError(code, f"it is {what}, not a file")


def make_output_folder(path: Path) -> Path:
    """Make an output folder and prove that files can be written in it, before any long work starts.

    Raises:
        OutputError: it is a file, or not writable.
    """
    probe = path / f".write-test.{os.getpid()}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise write_error(path, error) from None
    return path


def cut_last_line(path: Path) -> None:
    """Remove what stands after the last newline: half a line that a kill or a power loss left.

    Raises:
        OSError: not writable.
    """
    with open(path, "rb+") as file:
        end = file.seek(0, os.SEEK_END)
        while end > 0:
            start = max(0, end - 65536)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                file.truncate(start + newline + 1)
                return
            end = start
        file.truncate(0)


def shown_name(name: str) -> str:
    """A file's name as text that JSON, CSV and every other machine can hold.

    Args:
        name: as the system gives it; bytes that are no UTF-8 become ``\\xe9`` and the like.
    """
    return name if name.isascii() else os.fsencode(name).decode("utf-8", "backslashreplace")


def fit_name(folder: Path, head: str, stem: str, suffix: str) -> str:
    """A file name made of three parts, the middle one cut so that it and its temporary names fit the file system.

    Args:
        folder: where it goes; asked for its longest name.
        head: kept whole.
        stem: cut between two characters where needed; counted in bytes, as file systems do.
        suffix: kept whole.
    """
    try:
        longest = os.pathconf(folder, "PC_NAME_MAX")
    except (OSError, ValueError, AttributeError):  # not there yet; a system that does not say
        longest = LONGEST_NAME
    room = longest - TEMPORARY - len(os.fsencode(head + suffix))
    size = 0
    for i, character in enumerate(stem):
        size += len(os.fsencode(character))
        if size > room:
            return f"{head}{stem[:i]}{suffix}"
    return f"{head}{stem}{suffix}"


def sha256_file(path: Path) -> str:
    """Hex digest of a file's content.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    with open_regular(path) as file:
        return sha256_rest(file)


def sha256_rest(file: BinaryIO) -> str:
    """Hex digest of an open file from where it stands to its end."""
    digest = hashlib.sha256()
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()


def read_bounded(path: Path, most: int = MOST_JSON_BYTES) -> bytes:
    """A regular file whole.

    Args:
        path: the file.
        most: bytes it may have.

    Raises:
        OSError: as :func:`open_regular`, or it is larger; ``strerror`` says so.
    """
    with open_regular(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        size = f"{most >> 20} MB" if most >> 20 else f"{most} bytes"
        raise OSError(errno.EFBIG, f"it has more than {size}, the most such a file may have", str(path))
    return content


def parse_json(text: str | bytes) -> Any:
    """JSON as plain values, nested no deeper than :data:`MOST_DEPTH`, every text of whole characters.

    Args:
        text: of bounded size; bytes are UTF-8, UTF-16 or UTF-32.

    Raises:
        ValueError: anything else; its text says what and where.
    """
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None
    _check_plain(value)
    return value


def _check_plain(value: Any) -> None:
    """Refuse depth that would end a recursive reader, and halves of surrogate pairs, which nothing can print."""
    level = [value]
    for _ in range(MOST_DEPTH):
        texts = [v for v in level if isinstance(v, str) and not v.isascii()]
        tables = [v for v in level if isinstance(v, dict)]
        texts += [key for table in tables for key in table if not key.isascii()]
        for text in texts:
            text.encode("utf-8")  # UnicodeEncodeError is a ValueError
        level = [v for table in tables for v in table.values()] + [v for w in level if isinstance(w, list) for v in w]
        if not level:
            return
    raise ValueError(f"nested too deep, more than {MOST_DEPTH} levels")


def user_cache(folder: Path | None = None) -> Path:
    """Where is kept what can be made again: ``ptedge`` in the user's cache folder.

    Args:
        folder: instead of ``$XDG_CACHE_HOME`` or ``~/.cache``.
    """
    return (folder or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")) / "ptedge"
