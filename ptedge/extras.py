"""Optional packages: which extra brings each, and the sentence that says so where one is absent."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from ptedge.errors import MissingExtraError, missing_extra

# top-level import name -> extra that brings it
EXTRAS = {
    "torch": "train",
    "torchvision": "train",
    "timm": "train",
    "tomli_w": "train",
    "rich": "train",
    "h5py": "weights",
    "matplotlib": "train",
    "tensorboard": "train",
    "onnx": "export",
    "tensorrt": "tensorrt",
    "pycuda": "tensorrt",
    "cryptography": "sign",
    "kornia": "shift",
    "pandas": "python",
    "supervision": "python",
}


def absent_extra(error: ModuleNotFoundError) -> MissingExtraError | None:
    """The error that names the extra; ``None`` where the module belongs to none, so that its absence is a bug.

    Args:
        error: of an import.
    """
    name = (error.name or "").split(".")[0]
    return missing_extra(name, EXTRAS[name]) if name in EXTRAS else None


@contextlib.contextmanager
def named_extras() -> Iterator[None]:
    """A block in which the absence of an optional package is told as one sentence.

    Raises:
        MissingExtraError: with the extra to install.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (named := absent_extra(error)) is None:
            raise
        raise named from None


__all__ = ["EXTRAS", "absent_extra", "named_extras"]
