"""A data set of any format written as another, in a new folder, with its images copied, linked or left."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from ptedge.data.dataset import Dataset
from ptedge.data.locate import require_images
from ptedge.data.writing.formats import write_coco_folder, write_kitti_folder, write_voc_folder, write_yolo_folder
from ptedge.data.writing.names import image_names
from ptedge.files import write_error
from ptedge.folders import hold_folder, refuse_strangers

Format = Literal["coco", "voc", "yolo", "kitti"]
ImageWay = Literal["copy", "link", "none"]


@dataclass(frozen=True)
class _Layout:
    """What a format's folder looks like.

    Attributes:
        images: folder of the images in it.
        tops: names that are written in it.
        allowed: the nearest name of an image, without suffix, that it can hold.
        write: writes the annotations.
    """

    images: str
    tops: tuple[str, ...]
    allowed: Callable[[str], str]
    write: Callable[[Dataset, list[str], Path, Counter[str]], None]


def _as_it_is(name: str) -> str:
    return name


def _no_images_folder(name: str) -> str:
    """Labels lie where ``labels`` stands for ``images`` in a path, so that a sub-folder may be called neither."""
    return "/".join(f"{part}_" if part in ("images", "labels") else part for part in name.split("/"))


def _flat(name: str) -> str:
    return name.replace("/", "_")


_LAYOUTS: dict[Format, _Layout] = {
    "coco": _Layout("images", ("images", "annotations.json"), _as_it_is, write_coco_folder),
    "voc": _Layout("JPEGImages", ("JPEGImages", "Annotations", "ImageSets"), _as_it_is, write_voc_folder),
    "yolo": _Layout("images", ("images", "labels", "data.yaml"), _no_images_folder, write_yolo_folder),
    "kitti": _Layout("training/image_2", ("training", "ImageSets"), _flat, write_kitti_folder),
}


def convert_dataset(dataset: Dataset, kind: Format, out: Path, images: ImageWay = "copy") -> dict[str, int]:
    """Write a data set as another format; boxes read back within a hundredth of a pixel.

    Args:
        dataset: widths and heights must be known.
        kind: format to write.
        out: folder; nothing in it may have a name that is written.
        images: ``copy`` them, ``link`` to them (symbolic links), or ``none``: a COCO file then leads to where they are,
            for the others they have to be put into the folder of the images under the names of their label files.

    Returns:
        What the format cannot hold, and names that changed: reasons and counts.

    Raises:
        InputError: images are missing or of another size than their labels are for, or have no usual suffix.
        OutputError: something is there already, or it cannot be written.
    """
    layout, lost = _LAYOUTS[kind], Counter[str]()
    names = image_names(dataset.samples, layout.allowed, lost)
    if images != "none":
        require_images(dataset)
    with hold_folder(out, "data convert"):
        refuse_strangers(out, layout.tops)
        if images != "none":
            homes = [out / layout.images / name for name in names]
            for sample, home in zip(dataset.samples, homes, strict=True):
                _place(Path(os.path.abspath(sample.path)), home, images)
            samples = [replace(s, path=home) for s, home in zip(dataset.samples, homes, strict=True)]
            dataset = replace(dataset, samples=tuple(samples))
        layout.write(dataset, names, out, lost)
    return dict(+lost)


def _place(source: Path, home: Path, way: ImageWay) -> None:
    try:
        home.parent.mkdir(parents=True, exist_ok=True)
        if way == "link":
            home.symlink_to(source)
        else:
            shutil.copyfile(source, home)
    except OSError as error:
        raise write_error(home, error) from None


def images_folder(kind: Format, out: Path) -> Path:
    """Where the images of a converted data set lie."""
    return out / _LAYOUTS[kind].images
