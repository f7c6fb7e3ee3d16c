"""The TOML description of a data set: what cannot be told from the files alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptedge.config import from_dict, require_one_of
from ptedge.data.bdd100k import read_bdd100k
from ptedge.data.cityscapes import FOG_BETAS, read_cityscapes
from ptedge.data.classes import ClassRules
from ptedge.data.coco import read_coco
from ptedge.data.dataset import REGIONS, Dataset, with_regions
from ptedge.data.kitti import read_kitti
from ptedge.data.parsing.documents import read_text
from ptedge.data.splits import Use, refuse_split
from ptedge.data.voc import read_voc
from ptedge.data.yolo import read_yolo, read_yolo_folder
from ptedge.errors import ConfigError, InputError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FORMATS = ("coco", "voc", "yolo", "kitti", "cityscapes", "foggy_cityscapes", "bdd100k", "sim10k")


@dataclass(frozen=True)
class Description:
    """Keys of the file; paths are relative to ``root``, and ``root`` is relative to the file.

    Attributes:
        format: one of :data:`FORMATS`.
        root: folder of the data; the file's own folder when left out.
        annotations: json, yaml, or folder of annotations, where it is not the format's usual place.
        images: folder of the images, where it is not the format's usual place.
        split: part to read (``train``, ``val``, ...), where the format has parts.
        classes: class names in label order; others are left out, counted.
        ignore: names whose boxes become ignore regions.
        regions: what becomes of ignore regions, one of :data:`~ptedge.data.dataset.REGIONS`.
        attributes: of the frames to read, for ``bdd100k``: ``timeofday`` = ``daytime``.
        beta: fog densities, for ``foggy_cityscapes``.
    """

    format: str
    root: str = "."
    annotations: str | None = None
    images: str | None = None
    split: str | None = None
    classes: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    regions: str = "ignore"
    attributes: dict[str, str] = field(default_factory=dict)
    beta: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        require_one_of("format", self.format, FORMATS)
        require_one_of("regions", self.regions, REGIONS)
        if self.regions == "keep" and self.ignore:
            raise ValueError('regions = "keep" makes boxes of what ignore names. Leave one of them out')
        if self.format == "foggy_cityscapes" and not (self.beta and set(self.beta) <= set(FOG_BETAS)):
            found = ", ".join(map(str, self.beta)) or "missing"
            raise ValueError(
                f"beta is {found}; foggy_cityscapes has {', '.join(map(str, FOG_BETAS))}, or a list of them"
            )
        if len(set(self.beta)) != len(self.beta):
            raise ValueError(f"beta {list(self.beta)} holds a density twice")
        if self.format != "foggy_cityscapes" and self.beta:
            raise ValueError("beta goes with the format foggy_cityscapes only")
        if self.format != "bdd100k" and self.attributes:
            raise ValueError("attributes goes with the format bdd100k only")
        if self.classes is not None and len(set(self.classes)) != len(self.classes):
            raise ValueError(f"classes {list(self.classes)} holds a name twice")
        if self.classes is not None and not all(name.strip() for name in self.classes):
            raise ValueError(f"classes {list(self.classes)} holds an empty name")


def read_description(path: Path, split: str | None = None, use: Use = "look") -> Dataset:
    """Read the data set that a TOML file describes.

    Args:
        path: TOML file with the keys of :class:`Description` and a table ``class_map`` (name in the annotations =
            our name).
        split: part to read; ``None`` for the file's, or where it has none for what ``use`` needs.
        use: what the data are for.

    Raises:
        ConfigError: no TOML, or a wrong key or value.
        InputError: the data are missing or of another form.
    """
    return read_described(_load(path), path, split, use)


def read_described(values: Mapping[str, Any], path: Path, split: str | None = None, use: Use = "look") -> Dataset:
    """Read the data set that tables of a TOML file describe; as :func:`read_description`.

    Args:
        values: keys of :class:`Description` and ``class_map``.
        path: the file they stand in, or would: a relative root counts from its folder.
        split: part to read, as there.
        use: what the data are for.
    """
    description, rules = parse_description(values, str(path))
    dataset = _read(path, description, rules, split or description.split, use)
    return with_regions(dataset, description.regions)


def parse_description(values: Mapping[str, Any], where: str) -> tuple[Description, ClassRules]:
    """A description from the tables of a TOML file.

    Args:
        values: keys of :class:`Description` and ``class_map``; ``beta`` may be one number.
        where: file and table, for messages.

    Raises:
        ConfigError: a wrong key or value.
    """
    values = dict(values)
    class_map = values.pop("class_map", {})
    if isinstance(values.get("beta"), (int, float)):
        values["beta"] = [values["beta"]]
    if not isinstance(class_map, dict) or not all(isinstance(n, str) and n.strip() for n in class_map.values()):
        raise ConfigError(f"{where}: class_map is a table of name in the annotations = our name, got {class_map!r}")
    if "format" not in values:
        raise ConfigError(f"{where}: the key format is missing; it is one of {', '.join(FORMATS)}")
    description = from_dict(Description, values, where)
    foreign = sorted(set(class_map.values()) - set(description.classes or class_map.values()) - set(description.ignore))
    if foreign:
        raise ConfigError(
            f"{where}: class_map leads to {foreign}, which classes {list(description.classes or ())} lacks"
        )
    return description, ClassRules(description.classes, class_map, frozenset(description.ignore))


def _read(path: Path, description: Description, rules: ClassRules, split: str | None, use: Use) -> Dataset:
    root = path.parent / description.root
    annotations = root / description.annotations if description.annotations is not None else None
    images = root / description.images if description.images is not None else None
    for place in (root, annotations, images):
        if place is not None and not os.path.exists(place):
            raise InputError(f"{path} points to {place}, which does not exist")
    kind = description.format
    if kind in ("coco", "bdd100k"):
        if annotations is None or (kind == "coco" and not annotations.is_file()):
            raise InputError(f'{path}: format {kind} needs annotations = "....json"')
        refuse_split(split, path, kind)
        coco = kind == "coco"
        wanted = description.attributes
        return read_coco(annotations, rules, images) if coco else read_bdd100k(annotations, rules, images, wanted)
    if kind in ("voc", "sim10k"):
        return read_voc(annotations or root, rules, images, split, kind, use)
    if kind == "kitti":
        return read_kitti(root, rules, images, annotations, split, use)
    if kind == "yolo":
        if annotations is not None and annotations.is_file():
            return read_yolo(annotations, rules, split, use)
        return read_yolo_folder(annotations or root, rules, images, split=split, use=use)
    return read_cityscapes(root, rules, split, description.beta, annotations, images, use)


def _load(path: Path) -> dict[str, Any]:
    try:
        values: dict[str, Any] = tomllib.loads(read_text(path).replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    return values
