"""YOLO: ``data.yaml``, ``images/train/``, ``labels/train/``; a line holds no score and no sigma."""

from __future__ import annotations

from pathlib import Path

import yaml

from ptedge.files import atomic_write

from .frames import Prelabels, centre_form


def write_yolo(frames: Prelabels, out: Path) -> None:
    """Write a data set as ``yolo`` reads it. One part serves as train and val: what is for what is yours to say.

    Args:
        frames: to write.
        out: empty folder.

    Raises:
        OutputError: not writable, or disk full.
    """
    images, labels = out / "images" / "train", out / "labels" / "train"
    for folder in (images, labels):
        folder.mkdir(parents=True)
    for frame in frames:
        frames.place_image(frame.name, images / frame.name)
        with atomic_write(labels / f"{Path(frame.name).stem}.txt", "w") as file:
            for label, box in zip(frame.detections.labels, frame.detections.boxes, strict=True):
                file.write(
                    " ".join([str(int(label)), *(f"{v:.6f}" for v in centre_form(box, frame.width, frame.height))])
                )
                file.write("\n")
    names = dict(enumerate(frames.class_names))
    with atomic_write(out / "data.yaml", "w") as file:
        yaml.safe_dump({"train": "images/train", "val": "images/train", "names": names}, file, allow_unicode=True)
