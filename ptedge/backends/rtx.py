"""What TensorRT-RTX has of its own: kernels are made on the GPU when a context is made, and kept for the next time.

An engine of TensorRT-RTX holds layers and weights and no kernels, so that one file serves every RTX card from Ampere
on. Making the kernels takes seconds; the file of made ones belongs to this machine, its driver and its version of
TensorRT-RTX, which checks that by itself.
"""

from __future__ import annotations

import contextlib
import hashlib
from pathlib import Path
from typing import Any

from ptedge.errors import OutputError
from ptedge.files import atomic_write, read_bounded, user_cache

MOST_BYTES = 1 << 30


class KernelCache:
    """Made kernels of one engine, read from a file of the user's cache folder and written back to it.

    Args:
        path: of the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cache: Any = None
        self._settings: list[Any] = []  # have to live as long as the contexts that were made with them
        self._saved = b""

    @classmethod
    def of(cls, engine: bytes, folder: Path | None = None) -> KernelCache:
        """The cache of an engine.

        Args:
            engine: serialised.
            folder: instead of the user's cache folder.
        """
        return cls(user_cache(folder) / f"rtx-{hashlib.sha256(engine).hexdigest()[:32]}.kernels")

    def new_context(self, engine: Any) -> Any:
        """An execution context of the engine (TensorRT's, or ``None`` where it has no memory for one).

        Args:
            engine: deserialised by TensorRT-RTX, the CUDA context current.
        """
        settings = engine.create_runtime_config()
        if self._cache is None:
            self._cache = settings.create_runtime_cache()
            with contextlib.suppress(OSError, ValueError):  # none there yet, or too large to be one
                self._saved = read_bounded(self._path, MOST_BYTES)
                self._cache.deserialize(self._saved)  # one of another machine or version is refused, and replaced
        settings.set_runtime_cache(self._cache)
        self._settings.append(settings)
        return engine.create_execution_context(settings)

    def save(self) -> None:
        """Write kernels that were made since; where that cannot be, they are made again the next time."""
        if self._cache is None:
            return
        content = bytes(memoryview(self._cache.serialize()))
        if content != self._saved:
            with contextlib.suppress(OSError, OutputError), atomic_write(self._path) as file:
                file.write(content)
            self._saved = content

    def close(self) -> None:
        """Let go of it, after the contexts."""
        self._settings.clear()
        self._cache = None
