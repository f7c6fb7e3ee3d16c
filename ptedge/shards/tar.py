"""Shards: plain tar files in WebDataset's naming, ``KEY.jpg`` and ``KEY.json`` for each frame.

KEY is the sha256 of the image, so a frame has one name wherever it lies. Nothing of the machine or the moment goes into
a shard: the same frames make the same bytes, and so the same name of the shard, which is the sha256 of them.

Reference: WebDataset, "The WebDataset Format": files of one sample follow one another and share the name up to its
first dot.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from typing import Any

BLOCK = tarfile.BLOCKSIZE
_END = bytes(2 * BLOCK)


class ShardWriter:
    """A shard that grows in memory, frame by frame."""

    def __init__(self) -> None:
        self._buffer = io.BytesIO()
        self.frames = 0

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._buffer.tell()

    def add(self, key: str, image: bytes, record: Mapping[str, Any]) -> None:
        """Add a frame.

        Args:
            key: sha256 of the image, in hex.
            image: JPEG as it lies in the field folder.
            record: what is known of the frame.
        """
        self._file(f"{key}.jpg", image)
        self._file(f"{key}.json", json.dumps(record, ensure_ascii=False).encode())
        self.frames += 1

    def finish(self) -> tuple[str, bytes]:
        """Digest and content of the shard; a new one is begun."""
        self._buffer.write(_END)
        content = self._buffer.getvalue()
        self._buffer, self.frames = io.BytesIO(), 0
        return hashlib.sha256(content).hexdigest(), content

    def _file(self, name: str, content: bytes) -> None:
        about = tarfile.TarInfo(name)
        about.size = len(content)
        self._buffer.write(about.tobuf(tarfile.USTAR_FORMAT))
        self._buffer.write(content)
        self._buffer.write(bytes(-len(content) % BLOCK))
