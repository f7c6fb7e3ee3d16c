"""Data that a study describes itself: where they lie, what of them is read, and how many there should be."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from ptedge.config import from_dict
from ptedge.data.dataset import Dataset
from ptedge.data.description import parse_description
from ptedge.errors import ConfigError

PARTS = ("source", "val", "oracle", "source_val")


@dataclass(frozen=True)
class Official:
    """What a data set holds by those who made it or published on it.

    Attributes:
        images: how many.
        boxes: class -> how many, or (fewest, most) where counts of others differ by a few.
        told_by: who says so.
    """

    images: int
    boxes: dict[str, tuple[int, int]] = field(default_factory=dict)
    told_by: str = ""


@dataclass(frozen=True)
class Described:
    """A part of a study's data.

    Attributes:
        part: of :data:`PARTS`.
        values: a TOML description as ``ptedge`` takes it for DATA; its root is relative to the study's.
        official: counts to compare with, or ``None``.
    """

    part: str
    values: Mapping[str, Any]
    official: Official | None = None


@dataclass(frozen=True)
class Counted:
    """What of a part is there.

    Attributes:
        part: of :data:`PARTS`.
        images: found.
        boxes: class -> found, without ignore regions.
        official: what there should be, or ``None``.
    """

    part: str
    images: int
    boxes: Mapping[str, int]
    official: Official | None = None

    @property
    def off(self) -> list[str]:
        """What differs, one phrase each."""
        if self.official is None:
            return []
        found = [] if self.images == self.official.images else [f"{self.images:,} images, not {self.official.images:,}"]
        for name, (fewest, most) in self.official.boxes.items():
            count = self.boxes.get(name, 0)
            if not fewest <= count <= most:
                found.append(f"{count:,} boxes of {name}, not {shown_range(fewest, most)}")
        return found


def shown_range(fewest: int, most: int) -> str:
    """``17,800 to 18,000``, or one number where both are the same."""
    return f"{fewest:,}" if fewest == most else f"{fewest:,} to {most:,}"


def take_described(values: dict[str, Any], where: str) -> tuple[Described, ...]:
    """Take the tables ``describe.PART`` out of a study's values.

    Args:
        values: of the study's TOML; ``describe`` is removed.
        where: the file, for messages.

    Raises:
        ConfigError: an unknown part, or a description that would be refused.
    """
    tables = values.pop("describe", {})
    if not isinstance(tables, dict) or not all(isinstance(table, dict) for table in tables.values()):
        raise ConfigError(f"{where}: describe holds tables, [describe.source] and the like")
    return tuple(_described(part, dict(table), where) for part, table in tables.items())


def _described(part: str, table: dict[str, Any], where: str) -> Described:
    if part not in PARTS:
        raise ConfigError(f"{where}: describe.{part} is no part of the data; there are {', '.join(PARTS)}")
    here = f"{where}: describe.{part}"
    official = table.pop("official", None)
    parse_description(table, here)
    if official is None:
        return Described(part, table)
    if isinstance(official, dict) and isinstance(official.get("boxes"), dict):
        boxes = {name: [n, n] if isinstance(n, int) else n for name, n in official["boxes"].items()}
        official = {**official, "boxes": boxes}
    if not isinstance(official, Mapping):
        raise ConfigError(f"{here}.official is a table: images, boxes, told_by")
    return Described(part, table, from_dict(Official, official, f"{here}.official"))


def count_of(described: Described, dataset: Dataset) -> Counted:
    """Count an opened part."""
    boxes = dict.fromkeys(dataset.class_names, 0)
    for sample in dataset.samples:
        for label in sample.labels[~sample.ignore].tolist():
            boxes[dataset.class_names[label]] += 1
    return Counted(described.part, len(dataset), boxes, described.official)


def differences(counted: Iterable[Counted]) -> str:
    """What is off, in one sentence; empty where nothing is."""
    told = []
    for one in counted:
        if one.off and one.official is not None:
            by = f" ({one.official.told_by})" if one.official.told_by else ""
            told.append(f"{one.part} has {', '.join(one.off)}{by}")
    return "; ".join(told)
