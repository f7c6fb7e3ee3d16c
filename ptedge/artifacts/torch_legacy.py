"""The form that torch wrote before version 1.6, in which some published weights still come (VGG16's, for example).

Five pickles one behind the other (a magic number, a version, facts on the machine, the document, the keys of its
storages), then for each storage its number of elements in eight bytes and the elements.

Reference: ``torch/serialization.py``, ``_legacy_save``.
"""

from __future__ import annotations

import os
import struct
from typing import Any, BinaryIO

from ptedge.artifacts.torch_pickle import PickleReader, TorchFileError

MAGIC_PICKLE = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
VERSION = 1001
MOST_BYTES = 2 << 30


def read_legacy(file: BinaryIO) -> Any:
    """The document, with a :class:`ptedge.artifacts.torch_pickle.StoredTensor` in place of each tensor.

    Args:
        file: open; where it stands does not matter.

    Raises:
        TorchFileError: damaged, or it holds something other than tensors and plain values.
    """
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    try:
        if size > MOST_BYTES:
            raise TorchFileError(f"it has more than {MOST_BYTES >> 30} GB")
        if file.read(len(MAGIC_PICKLE)) != MAGIC_PICKLE:
            raise TorchFileError("it does not begin as torch begins a file")
        if PickleReader().read(file) != VERSION:
            raise TorchFileError("its version is not known")
        PickleReader().read(file)
        reader = PickleReader()
        document = reader.read(file)
        keys = PickleReader().read(file)
        if not isinstance(keys, list) or sorted(map(str, keys)) != sorted(reader.storages):
            raise TorchFileError("its list of storages is not that of its document")
        for key in keys:
            storage = reader.storages[key]
            if file.read(8) != struct.pack("<q", storage.count):
                raise TorchFileError(f"the numbers {key[:80]!r} are not as many as they should be")
            if file.seek(storage.nbytes, os.SEEK_CUR) > size:
                raise TorchFileError(f"the numbers {key[:80]!r} are cut short")
        if file.tell() != size:
            raise TorchFileError("it goes on behind its end")
        return document
    except (KeyError, TypeError) as error:
        raise TorchFileError(f"its list of storages is damaged ({type(error).__name__})") from None
