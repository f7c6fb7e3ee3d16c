"""Making a field folder smaller by hand."""

from __future__ import annotations

from ptedge.config import from_dict
from ptedge.errors import ConfigError, OutputError

from ..field import FieldFolder
from .ledger import Ledger, entries_of, protected_images
from .policy import Shares
from .reading import removing

ANY = 1 << 62  # bytes or images


def prune(folder: FieldFolder, max_bytes: int | None, max_images: int | None) -> int:
    """Remove the least informative images until the folder is small enough; those in ``keep.txt`` stay.

    Args:
        folder: to prune; the caller holds it.
        max_bytes: images' bytes that may stay.
        max_images: images that may stay.

    Returns:
        Images removed.

    Raises:
        OutputError: not writable, a part of the folder is a link, or its images are being exported or pushed.
    """
    ledger = Ledger(entries_of(folder.records()), shares_of(folder).by_name)
    bytes_left = ANY if max_bytes is None else max_bytes
    images_left = ANY if max_images is None else max_images
    gone = ledger.least_until(bytes_left, images_left, protected_images(folder.path))
    files = {file for entry in gone for file in entry.files}
    with removing(folder.path) as free:
        if not free:
            raise OutputError(f"images of {folder.path} are being exported or pushed. Prune it when that is done")
        folder.remove(files)
    return len(files)


def shares_of(folder: FieldFolder) -> Shares:
    """The shares that a folder was collected with; the defaults where it does not say, as in older ones."""
    policy = folder.about.get("policy")
    shares = policy.get("shares") if isinstance(policy, dict) else None
    try:
        return from_dict(Shares, shares, "field.json") if isinstance(shares, dict) else Shares()
    except ConfigError:
        return Shares()
