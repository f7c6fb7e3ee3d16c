"""The hash of a file for ``ptedge inspect``, which answers at once whatever it is given."""

from __future__ import annotations

from pathlib import Path

from ptedge.errors import ArtifactError
from ptedge.files import sha256_file

MOST_HASHED = 1 << 30  # bytes; about a second


def digest_of(path: Path) -> str:
    """sha256 of a file, or in words why it was left out.

    Args:
        path: the file.

    Raises:
        ArtifactError: unreadable.
    """
    try:
        if path.stat().st_size > MOST_HASHED:
            return f"not computed, the file has more than {MOST_HASHED >> 30} GB (sha256sum does it)"
        return sha256_file(path)
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}. Copy the file again") from None
