"""Look into a file of ``torch.save`` without torch, which devices do not have.

Such a file is a zip: ``data.pkl`` holds the document, ``data/<key>`` the bytes of each tensor. The pickle is read by an
unpickler that knows five names and replaces them with plain values here, so nothing in the file can run.
"""

from __future__ import annotations

import collections
import io
import math
import pickle
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.errors import ArtifactError

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


@dataclass(frozen=True)
class StoredTensor:
    """A tensor that lies in the file.

    Attributes:
        storage: class of its storage, for example ``FloatStorage``.
        key: name of its bytes in the zip.
        offset: its first element in the storage.
        shape: as torch has it.
        stride: in elements.
    """

    storage: str
    key: str
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def is_torch_zip(path: Path) -> bool:
    """Whether a file is a zip as ``torch.save`` writes it."""
    if not path.is_file() or not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return _pickle_name(archive) is not None


def read_torch_zip(path: Path) -> Any:
    """The document in a file of ``torch.save``, with a :class:`StoredTensor` in place of each tensor.

    Args:
        path: the file.

    Raises:
        ArtifactError: damaged, or it holds something other than tensors and plain values.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            name = _pickle_name(archive)
            if name is None:
                raise pickle.UnpicklingError("no data.pkl inside")
            return _Reader(io.BytesIO(archive.read(name))).load()
    except pickle.UnpicklingError as error:
        raise ArtifactError(f"{path} is no file of ptedge, or damaged: {error}") from None
    except Exception as error:  # a damaged pickle can raise nearly anything
        raise ArtifactError(f"{path} is damaged: {error}") from None


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
        with zipfile.ZipFile(path) as archive:
            prefix = str(_pickle_name(archive)).removesuffix("data.pkl")
            order = archive.read(prefix + "byteorder").decode() if prefix + "byteorder" in archive.namelist() else ""
            data = archive.read(f"{prefix}data/{tensor.key}")
    except (zipfile.BadZipFile, OSError, KeyError) as error:
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


def _pickle_name(archive: zipfile.ZipFile) -> str | None:
    return next((n for n in archive.namelist() if n == "data.pkl" or n.endswith("/data.pkl")), None)


def _tensor(storage: tuple[str, str], offset: int, shape: tuple[int, ...], stride: tuple[int, ...], *_: Any) -> Any:
    return StoredTensor(sys.intern(storage[0]), storage[1], int(offset), tuple(shape), tuple(stride))


def _parameter(data: Any, *_: Any) -> Any:
    return data


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module == "torch" and name.endswith("Storage"):
            return name
        known = {
            ("collections", "OrderedDict"): collections.OrderedDict,
            ("torch._utils", "_rebuild_tensor_v2"): _tensor,
            ("torch._utils", "_rebuild_parameter"): _parameter,
            ("torch", "Size"): tuple,
        }
        if (module, name) not in known:
            raise pickle.UnpicklingError(f"it holds a {module}.{name}, more than tensors and plain values")
        return known[module, name]

    def persistent_load(self, pid: Any) -> Any:
        _, storage, key, *_ = pid
        return str(storage), str(key)
