"""Label Studio: ``tasks.json`` with predictions, ``label_config.xml`` for the project, and ``images/``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote
from xml.sax.saxutils import quoteattr

from ptedge.files import atomic_write

from .frames import PrelabelledFrame, Prelabels

URL = "/data/local-files/?d=images/"  # as Label Studio serves files below LABEL_STUDIO_LOCAL_FILES_DOCUMENT_ROOT


def write_label_studio(frames: Prelabels, out: Path) -> None:
    """Write tasks whose predictions carry scores; sigma stands in ``meta`` of each region.

    Args:
        frames: to write.
        out: empty folder; it is what the local file serving is to be pointed at.

    Raises:
        OutputError: not writable, or disk full.
    """
    (out / "images").mkdir()
    labels = "".join(f"    <Label value={quoteattr(name)}/>\n" for name in frames.class_names)
    with atomic_write(out / "label_config.xml", "w") as file:
        file.write(
            '<View>\n  <Image name="image" value="$image"/>\n  <RectangleLabels name="label" toName="image">\n'
            f"{labels}  </RectangleLabels>\n</View>\n"
        )
    with atomic_write(out / "tasks.json", "w") as file:
        file.write("[")
        for number, frame in enumerate(frames):
            frames.place_image(frame.name, out / "images" / frame.name)
            file.write(
                ("," if number else "") + "\n" + json.dumps(_task(frame, frames.class_names), ensure_ascii=False)
            )
        file.write("\n]\n")


def _task(frame: PrelabelledFrame, class_names: tuple[str, ...]) -> dict[str, Any]:
    found = frame.detections
    regions = [_region(frame, i, class_names) for i in range(len(found))]
    # tasks are sorted by it: the doubtful ones first are those of the lowest
    score = round(float(found.scores.mean()), 4) if len(found) else 0.0
    model = frame.model[:12] or "ptedge"
    prediction = {"model_version": model, "score": score, "result": regions}
    return {"data": {"image": URL + quote(frame.name)}, "predictions": [prediction]}


def _region(frame: PrelabelledFrame, i: int, class_names: tuple[str, ...]) -> dict[str, Any]:
    """A box in per cent of the image, as Label Studio counts."""
    found = frame.detections
    x1, y1, x2, y2 = (float(v) for v in found.boxes[i])
    value = {
        "x": round(100 * x1 / frame.width, 4),
        "y": round(100 * y1 / frame.height, 4),
        "width": round(100 * (x2 - x1) / frame.width, 4),
        "height": round(100 * (y2 - y1) / frame.height, 4),
        "rotation": 0,
        "rectanglelabels": [class_names[int(found.labels[i])]],
    }
    return {
        "id": f"box{i}",
        "from_name": "label",
        "to_name": "image",
        "type": "rectanglelabels",
        "original_width": frame.width,
        "original_height": frame.height,
        "image_rotation": 0,
        "value": value,
        "score": round(float(found.scores[i]), 4),
        "meta": {"sigma": [round(float(v), 2) for v in found.sigma[i]]},
    }
