"""What can go wrong, as one tree that the command line turns into a sentence and exit status 1.

PtedgeError
├── InputError       a path, an image, a video or an annotation the user gave
│   └── ClassMismatchError   two class lists that ought to be the same
├── ConfigError      a TOML file or a --set value
├── OutputError      a place to write that does not take it (not writable, full)
├── ArtifactError    something ptedge wrote before: checkpoint, bundle, engine, field folder
├── StoreError       a store of objects (folder, bucket) that is not there, refuses or holds something else
├── BackendError     ONNX Runtime, TensorRT or a GPU that is not there or refuses
├── TrainingError    a run that cannot go on (non-finite loss, no usable data)
└── MissingExtraError    an optional dependency; the text names the extra to install

A message says what is wrong, where, and what to do.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

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
    "tensorrt_rtx": "tensorrt-rtx",
    "pycuda": "tensorrt",
    "cryptography": "sign",
    "kornia": "shift",
    "boto3": "s3",
    "botocore": "s3",
    "oras": "oci",
    "pandas": "python",
    "supervision": "python",
    "mlflow": "mlflow",
}


class PtedgeError(Exception):
    """Base of all errors a user can cause or repair."""


class InputError(PtedgeError):
    """A path, image, video or annotation given by the user is missing, empty or unreadable."""


class ClassMismatchError(InputError):
    """Two class lists differ; the text shows both."""

    def __init__(self, what: str, got: Sequence[str], other: str, expected: Sequence[str], advice: str) -> None:
        super().__init__(
            f"{what} has classes {list(got)}, but {other} has {list(expected)} "
            f"(every name counts, their order does not). {advice}"
        )


class ConfigError(PtedgeError):
    """A configuration file or a ``--set`` value is wrong."""


class OutputError(PtedgeError):
    """A file or folder cannot be written."""


class ArtifactError(PtedgeError):
    """A checkpoint, bundle, engine or field folder is broken, foreign or does not match its parts."""


class StoreError(PtedgeError):
    """A store of objects, a folder or a bucket, cannot be reached, refuses, or holds something unexpected."""


class BackendError(PtedgeError):
    """An inference backend is not available or refuses its input."""


class TrainingError(PtedgeError):
    """A training run cannot continue."""


class MissingExtraError(PtedgeError):
    """A part of ptedge needs a package that is not installed."""


def missing_extra(package: str, extra: str) -> MissingExtraError:
    """Build the error for an optional dependency that is absent.

    Args:
        package: import name of what is missing, e.g. ``"torch"``.
        extra: name of the extra that brings it, e.g. ``"train"``.
    """
    return MissingExtraError(f'{package} is not installed. Install it with: pip install "ptedge[{extra}]"')


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
