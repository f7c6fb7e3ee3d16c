"""What is missing in the folder of a public data set, one sentence a part."""

from __future__ import annotations

from pathlib import Path

from ptedge.data.public.guides import ALL_GUIDES


def missing_parts(name: str, root: Path) -> tuple[list[str], list[str]]:
    """Compare a folder with the official layout.

    Args:
        name: key of :data:`~ptedge.data.public.guides.ALL_GUIDES`.
        root: folder of the data.

    Returns:
        Sentences about parts of which nothing is there, and about those that have another number of files, or that only
        some purpose needs.
    """
    missing, other = [], []
    for part in ALL_GUIDES[name].parts:
        count = sum(1 for _ in root.glob(part.pattern))
        if count == part.count:
            continue
        if count:
            other.append(f"{root / part.pattern}: {count} files, the official set has {part.count}")
        elif part.needed:
            missing.append(f"{root / part.pattern}: nothing there. Unpack {part.archive} into {root}")
        else:
            other.append(f"{root / part.pattern}: nothing there; only `ptedge data fog` needs it ({part.archive})")
    return missing, other


def recognised(root: Path) -> str | None:
    """Which public data set a folder is laid out as, where nothing else is: one that no format reads by itself."""
    marks = {"foggy_cityscapes": "leftImg8bit_foggy", "cityscapes": "leftImg8bit", "bdd100k": "images/100k"}
    if (root / "gtFine").is_dir() and not (root / "leftImg8bit_foggy").is_dir():
        return "cityscapes"
    return next((name for name, mark in marks.items() if (root / mark).is_dir()), None)
