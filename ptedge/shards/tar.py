"""Shards: plain tar files in WebDataset's naming, ``KEY.jpg`` and ``KEY.json`` for each frame.

KEY is the sha256 of the image, so a frame has one name wherever it lies. Nothing of the machine or the moment goes into
a shard: the same frames make the same bytes, and so the same name of the shard, which is the sha256 of them.

Reference: WebDataset, "The WebDataset Format": files of one sample follow one another and share the name up to its
first dot.
"""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Mapping
from typing import Any

BLOCK = tarfile.BLOCKSIZE
_END = bytes(2 * BLOCK)


class ShardWriter:
    """A shard that grows in memory, frame by frame.

    Attributes:
        size: bytes so far.
        places: offset and bytes of each file so far, of an image and of its record in turns.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._pieces: list[bytes] = []  # joined once: a buffer that grows copies what it holds again and again
        self._digest = hashlib.sha256()
        self.size = 0
        self.places: list[tuple[int, int]] = []

    @property
    def frames(self) -> int:
        """Frames so far."""
        return len(self.places) // 2

    def add(self, key: str, image: bytes, record: Mapping[str, Any]) -> None:
        """Add a frame.

        Args:
            key: sha256 of the image, in hex.
            image: JPEG as it lies in the field folder.
            record: what is known of the frame.
        """
        self._file(f"{key}.jpg", image)
        self._file(f"{key}.json", json.dumps(record, ensure_ascii=False).encode())

    def finish(self) -> tuple[str, bytes]:
        """Digest and content of the shard; a new one is begun."""
        self._piece(_END)
        done = self._digest.hexdigest(), b"".join(self._pieces)
        self._begin()
        return done

    def _file(self, name: str, content: bytes) -> None:
        about = tarfile.TarInfo(name)
        about.size = len(content)
        self._piece(about.tobuf(tarfile.USTAR_FORMAT))
        self.places.append((self.size, len(content)))
        self._piece(content)
        self._piece(bytes(-len(content) % BLOCK))

    def _piece(self, content: bytes) -> None:
        self._pieces.append(content)
        self._digest.update(content)
        self.size += len(content)
