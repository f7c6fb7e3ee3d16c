"""FiftyOne's FiftyOneImageDetectionDataset: ``labels.json`` and ``data/``, with confidence and sigma."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ptedge.files import atomic_write

from .frames import PrelabelledFrame, Prelabels


def write_fiftyone(frames: Prelabels, out: Path) -> None:
    """Write what ``fiftyone.types.FiftyOneImageDetectionDataset`` reads.

    Args:
        frames: to write.
        out: empty folder.

    Raises:
        OutputError: not writable, or disk full.
    """
    (out / "data").mkdir()
    with atomic_write(out / "labels.json", "w") as file:
        file.write(f'{{"classes": {json.dumps(list(frames.class_names), ensure_ascii=False)}, "labels": {{')
        for number, frame in enumerate(frames):
            frames.place_image(frame.name, out / "data" / frame.name)
            found = json.dumps(_boxes(frame), ensure_ascii=False)
            file.write(f"{',' if number else ''}\n{json.dumps(Path(frame.name).stem, ensure_ascii=False)}: {found}")
        file.write("\n}}\n")


def _boxes(frame: PrelabelledFrame) -> list[dict[str, Any]]:
    """Boxes as shares of the image: left, top, width, height."""
    found = frame.detections
    boxes = []
    for i in range(len(found)):
        x1, y1, x2, y2 = (float(v) for v in found.boxes[i])
        width, height = frame.width, frame.height
        share = (x1 / width, y1 / height, (x2 - x1) / width, (y2 - y1) / height)
        sigma = {
            f"sigma_{side}": round(float(v), 3)
            for side, v in zip(("x1", "y1", "x2", "y2"), found.sigma[i], strict=True)
        }
        boxes.append(
            {
                "label": int(found.labels[i]),
                "bounding_box": [round(v, 6) for v in share],
                "confidence": round(float(found.scores[i]), 5),
                "attributes": sigma,
            }
        )
    return boxes
