"""Look into a file of ``torch.save`` without torch, which devices do not have; and refuse what is none.

Such a file is a zip: ``data.pkl`` holds the document, ``data/<key>`` the bytes of each tensor, nothing is compressed.
The pickle is read by :mod:`ptedge.artifacts.torch_pickle`, so nothing in the file can run. The same check stands before
``torch.load`` (:func:`ptedge.artifacts.checkpoint.load_tensors`): torch takes a zip with ``constants.pkl`` for a
program and, in old versions, starts it.
"""

from __future__ import annotations

import os
import re
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from ptedge.artifacts.torch_pickle import MOST_PICKLE_BYTES, PickleReader, StoredTensor, TorchFileError
from ptedge.errors import ArtifactError
from ptedge.files import open_regular

MOST_ENTRIES = 20_000
MOST_DIRECTORY_BYTES = 4 << 20  # zipfile keeps the list of entries in memory, ten times as large
MOST_BYTES = (4 << 30) - 1  # beyond, a zip needs other numbers

_MAGIC = b"PK\x03\x04"
_OF_A_PROGRAM = re.compile(r"[^/]*/(code/|constants\.pkl|bytecode\.pkl)")
# names with a dot are torch's own notes
_KNOWN = re.compile(r"[^/]+/(data\.pkl|version|byteorder|data/[0-9]+|\.[a-z_/]+)")

# class of a torch storage -> numpy dtype; bfloat16 has none
_DTYPES = {
    "DoubleStorage": "f8",
    "FloatStorage": "f4",
    "HalfStorage": "f2",
    "LongStorage": "i8",
    "IntStorage": "i4",
    "ShortStorage": "i2",
    "CharStorage": "i1",
    "ByteStorage": "u1",
    "BoolStorage": "?",
}


def starts_as_zip(file: BinaryIO) -> bool:
    """Whether an open file begins as a zip does."""
    file.seek(0)
    return file.read(len(_MAGIC)) == _MAGIC


def is_torch_zip(path: Path) -> bool:
    """Whether a file is a zip with a pickle in it, as ``torch.save`` writes it; damaged ones not always."""
    try:
        with open_regular(path) as file:
            if not starts_as_zip(file):
                return False
            _check_directory(file)
            with zipfile.ZipFile(file) as archive:
                return any(name == "data.pkl" or name.endswith("/data.pkl") for name in archive.namelist())
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return False


def read_torch_zip(path: Path) -> Any:
    """The document in a file of ``torch.save``, with a :class:`StoredTensor` in place of each tensor.

    Args:
        path: the file.

    Raises:
        ArtifactError: unreadable, damaged, or it holds something other than tensors and plain values.
    """
    try:
        with open_regular(path) as file:
            return read_open_zip(file)
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}. Copy the file again") from None
    except TorchFileError as error:
        raise ArtifactError(f"{path} is damaged, or no file of weights: {error}. Copy the file again") from None


def read_open_zip(file: BinaryIO) -> Any:
    """As :func:`read_torch_zip`, of a file that is open already.

    Args:
        file: the file; where it stands does not matter.

    Raises:
        TorchFileError: as :func:`read_torch_zip`; the text is the reason alone.
    """
    try:
        if not starts_as_zip(file):
            raise TorchFileError("it is truncated, or not in the form that torch.save has written since version 1.6")
        _check_directory(file)
        with zipfile.ZipFile(file) as archive:
            prefix = _check_entries(archive, os.fstat(file.fileno()).st_size)
            reader = PickleReader()
            document = reader.read(archive.read(prefix + "data.pkl"))
            for storage in reader.storages.values():
                _check_storage(archive, f"{prefix}data/{storage.key}", storage.nbytes)
            return document
    except TorchFileError:
        raise
    except Exception as error:  # a damaged zip can raise nearly anything
        raise TorchFileError(str(error) or type(error).__name__) from None


def read_tensor(path: Path, tensor: StoredTensor) -> NDArray[Any]:
    """The values of one tensor.

    Args:
        path: the file it lies in.
        tensor: as :func:`read_torch_zip` gave it.

    Returns:
        An array of its shape.

    Raises:
        ArtifactError: a kind of number numpy does not have, or bytes that are missing.
    """
    if tensor.storage not in _DTYPES:
        raise ArtifactError(f"{path}: tensors of {tensor.storage} can be read with torch only")
    dtype = np.dtype(_DTYPES[tensor.storage])
    try:
        with open_regular(path) as file, zipfile.ZipFile(file) as archive:
            prefix = _check_entries(archive, os.fstat(file.fileno()).st_size)
            order = archive.read(prefix + "byteorder").decode() if prefix + "byteorder" in archive.namelist() else ""
            data = archive.read(f"{prefix}data/{tensor.key}")
    except Exception as error:  # a damaged zip can raise nearly anything
        raise ArtifactError(f"{path} is damaged: {error}") from None
    if order == "big":
        dtype = dtype.newbyteorder(">")
    if tensor.size * dtype.itemsize > len(data):
        raise ArtifactError(f"{path} is damaged: a tensor of shape {tensor.shape} has {len(data)} bytes")
    # element numbers, spelt out: numpy then checks that they lie inside, which a strided view would not
    index = np.full((), tensor.offset, np.int64)
    for n, step in zip(tensor.shape, tensor.stride, strict=True):
        index = index[..., None] + step * np.arange(n)
    try:
        return np.asarray(np.frombuffer(data, dtype)[index]).astype(dtype.newbyteorder("="))
    except (IndexError, ValueError):
        raise ArtifactError(f"{path} is damaged: a tensor of shape {tensor.shape} has {len(data)} bytes") from None


def stored_tensors(document: Any) -> Iterator[StoredTensor]:
    """Every tensor in a document, however deep."""
    if isinstance(document, StoredTensor):
        yield document
    elif isinstance(document, dict):
        for value in document.values():
            yield from stored_tensors(value)
    elif isinstance(document, (list, tuple)):
        for value in document:
            yield from stored_tensors(value)


def _check_directory(file: BinaryIO) -> None:
    """Look at the end of a zip before ``zipfile`` does, which reads a list of entries of any size.

    The list must stand at the end, as torch writes it: then all readers see the same one.

    Raises:
        ValueError: cut short, too large, or of another form.
    """
    size = file.seek(0, os.SEEK_END)
    if size > MOST_BYTES:
        raise ValueError(f"it has more than {MOST_BYTES >> 30} GB")
    file.seek(max(0, size - 42))  # the last record, and before it the place of the one for long files
    tail = file.read()
    last = tail[-22:]
    if len(last) < 22 or last[:4] != b"PK\x05\x06" or last[-2:] != b"\0\0":
        raise ValueError("its end is missing, it is truncated")
    count, length, offset = struct.unpack("<HLL", last[10:20])
    end = size - 22
    if len(tail) == 42 and tail[:4] == b"PK\x06\x07":
        end = struct.unpack("<Q", tail[8:16])[0]
        file.seek(end)
        record = file.read(56)
        if end != size - 22 - 20 - 56 or struct.unpack("<QQQ", record[32:56]) != (count, length, offset):
            raise ValueError("it has two lists of entries")
    if count > MOST_ENTRIES or length > MOST_DIRECTORY_BYTES:
        raise ValueError(f"it has {count} entries; {MOST_ENTRIES} are the most")
    if offset + length != end:
        raise ValueError("its list of entries is not where it should be")
    file.seek(0)


def _check_entries(archive: zipfile.ZipFile, size: int) -> str:
    """Refuse a zip that ``torch.save`` does not write; the folder that all its entries are in, with a slash.

    Raises:
        ValueError: with what is wrong.
    """
    entries = archive.infolist()
    names = [entry.filename for entry in entries]
    if any(_OF_A_PROGRAM.match(name) for name in names):
        raise TorchFileError("it is a program (TorchScript), not weights")
    prefix = names[0].partition("/")[0] + "/" if names else ""
    if prefix + "data.pkl" not in names:
        raise TorchFileError("no data.pkl inside")
    for entry in entries:
        if not entry.filename.startswith(prefix) or not _KNOWN.fullmatch(entry.filename):
            raise ValueError(f"it holds {entry.filename[:80]!r}, which torch does not write")
        if entry.flag_bits & 1:
            raise ValueError(f"its entry {entry.filename[:80]!r} is encrypted, which torch does not do")
        if entry.compress_type != zipfile.ZIP_STORED or entry.compress_size != entry.file_size or entry.extra:
            raise ValueError(f"its entry {entry.filename[:80]!r} is compressed, which torch does not do")
    if len(set(names)) != len(names):
        raise ValueError("it holds one name twice")
    if sum(entry.file_size for entry in entries) > size:
        raise ValueError("its entries are larger than the file")
    if archive.getinfo(prefix + "data.pkl").file_size > MOST_PICKLE_BYTES:
        raise ValueError(f"its description has more than {MOST_PICKLE_BYTES >> 20} MB")
    return prefix


def _check_storage(archive: zipfile.ZipFile, name: str, nbytes: int) -> None:
    try:
        found = archive.getinfo(name).file_size
    except KeyError:
        raise ValueError(f"the numbers {name} are missing") from None
    if found != nbytes:
        raise ValueError(f"the numbers {name} have {found} bytes, not {nbytes}")
