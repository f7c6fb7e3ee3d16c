"""COCO: ``annotations.json`` and ``images/``; score and sigma stand beside each box."""

from __future__ import annotations

from pathlib import Path

from ptedge.data.coco_results import CocoWriter

from .frames import Prelabels


def write_coco(frames: Prelabels, out: Path, license_name: str) -> None:
    """Write COCO instances.

    Args:
        frames: to write.
        out: empty folder.
        license_name: of the images.

    Raises:
        OutputError: not writable, or disk full.
    """
    (out / "images").mkdir()
    about = f"Pre-labels of ptedge field folder {frames.folder.path.resolve().name}"
    writer = CocoWriter(out / "annotations.json", frames.class_names, about, license_name)
    try:
        for frame in frames:
            frames.place_image(frame.name, out / "images" / frame.name)
            writer.add(frame.name, frame.width, frame.height, frame.detections)
    except BaseException:
        writer.discard()
        raise
    writer.close()
