"""Which format, and into which folder."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from ptedge.errors import OutputError
from ptedge.files import make_output_folder

from ..field import FieldFolder
from .coco import write_coco
from .cvat import write_cvat
from .fifty_one import write_fiftyone
from .frames import Prelabels
from .label_studio import write_label_studio
from .yolo import write_yolo

FORMATS = ("coco", "yolo", "cvat", "labelstudio", "fiftyone")


def write_prelabels(folder: FieldFolder, out: Path, form: str, min_score: float, license_name: str) -> Prelabels:
    """Write a field folder's images and detections for an annotation tool.

    Args:
        folder: to write.
        out: new or empty folder.
        form: one of :data:`FORMATS`.
        min_score: boxes below it are left out.
        license_name: of the images, where the format has a place for it.

    Returns:
        What was written and left out.

    Raises:
        OutputError: ``out`` is not empty or not writable, or the disk is full.
        ArtifactError, InputError: a broken line of the field folder.
    """
    writers: dict[str, Callable[[Prelabels, Path], None]] = {
        "coco": partial(write_coco, license_name=license_name),
        "yolo": write_yolo,
        "cvat": write_cvat,
        "labelstudio": write_label_studio,
        "fiftyone": write_fiftyone,
    }
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise OutputError(f"{out} is not an empty folder; labels corrected by hand may be there. Choose another --out")
    frames = Prelabels(folder, min_score)
    writers[form](frames, make_output_folder(out))
    return frames
