"""The files ``ptedge eval --out`` writes: results.json, detections.json, and pictures of the worst images."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.data.coco import coco_category_ids
from ptedge.data.coco_results import coco_results
from ptedge.data.dataset import Dataset, Sample
from ptedge.detections import Detections
from ptedge.drawing.draw import TRUTH_COLOR, draw_boxes, draw_detections
from ptedge.drawing.legend import LegendRow
from ptedge.files import atomic_write, fit_name, parse_json, read_bounded, write_json
from ptedge.folders import refuse_strangers, set_aside
from ptedge.frames.images import read_image
from ptedge.scores.average_precision import match_detections

MOST_RESULTS = 64 << 20  # bytes of results.json
SURE = 0.5  # score from which a detection is drawn, and is an error when no box is there

IGNORED = (128, 128, 128)  # RGB of labelled boxes that do not count


RESULTS, FOUND, PICTURES, SIDES_PLOT = "results.json", "detections.json", "pictures", "sides.png"


def make_room(folder: Path) -> Path | None:
    """Have an earlier evaluation step aside.

    Args:
        folder: that the caller holds.

    Returns:
        Where it is now; ``None`` where there was none.

    Raises:
        OutputError: something else has the name of one of the files.
    """
    ours = (FOUND, PICTURES, SIDES_PLOT) if _is_evaluation(folder / RESULTS) else ()
    moved = set_aside(folder, ours, RESULTS) if ours or not (folder / RESULTS).exists() else None
    refuse_strangers(folder, (RESULTS, FOUND, PICTURES, SIDES_PLOT))
    return moved


def _is_evaluation(path: Path) -> bool:
    try:
        found = parse_json(read_bounded(path, MOST_RESULTS))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and {"model_hash", "AP50"} <= found.keys()


def write_evaluation(
    folder: Path, document: dict[str, Any], detections: Sequence[Detections], dataset: Dataset, pictures: int
) -> None:
    """Write all files of an evaluation.

    Args:
        folder: exists.
        document: what ``ptedge eval --json`` prints.
        detections: one an image.
        dataset: what they were made on.
        pictures: how many images to draw.

    Raises:
        OutputError: not writable, or the disk is full.
    """
    write_json(folder / RESULTS, document)
    write_json(folder / FOUND, _results(detections, dataset))
    for rank, index in enumerate(worst_images(detections, dataset)[:pictures], start=1):
        sample = dataset.samples[index]
        picture = draw_comparison(read_image(sample.path), detections[index], sample, dataset.class_names)
        done, data = cv2.imencode(".jpg", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 90])
        if done:
            with atomic_write(folder / PICTURES / fit_name(folder, f"{rank:03d}-", sample.path.stem, ".jpg")) as file:
                file.write(data.tobytes())


def _results(detections: Sequence[Detections], dataset: Dataset) -> list[dict[str, Any]]:
    """COCO results with the ids of the user's own annotations, else those that writing the data as COCO gives them."""
    category_ids = coco_category_ids(dataset.root, dataset.class_names) if dataset.root.is_file() else None
    if category_ids is not None:
        return coco_results(detections, [sample.image_id for sample in dataset.samples], category_ids)
    return coco_results(detections, range(1, len(dataset) + 1), range(1, len(dataset.class_names) + 1))


def worst_images(detections: Sequence[Detections], dataset: Dataset) -> list[int]:
    """Indices of all images, most errors first; an error is a missed box or a sure detection without one.

    Args:
        detections: one an image.
        dataset: what they were made on.
    """
    errors = []
    for found, sample in zip(detections, dataset.samples, strict=True):
        sure = found.select(found.scores >= SURE)
        hits = len(match_detections([sure], [sample], len(dataset.class_names)))
        errors.append(len(sure) + int((~sample.ignore).sum()) - 2 * hits)
    return sorted(range(len(errors)), key=lambda i: -errors[i])  # stable: equals stay in the data set's order


def draw_comparison(
    image: NDArray[np.uint8], detections: Detections, sample: Sample, class_names: Sequence[str]
) -> NDArray[np.uint8]:
    """Labelled boxes in white (ignored ones in grey) under the sure detections with their sigma.

    Args:
        image: [H, W, 3] uint8 RGB.
        detections: in pixels of the image.
        sample: its labels.
        class_names: names by label.

    Returns:
        [H, W, 3] uint8 RGB; the argument is unchanged.
    """
    canvas = image.copy()
    colors = [IGNORED if ignore else TRUTH_COLOR for ignore in sample.ignore]
    draw_boxes(canvas, sample.boxes, colors, wider=1)
    rows = [LegendRow("labelled", TRUTH_COLOR)]
    rows += [LegendRow("labelled, not counted", IGNORED)] if sample.ignore.any() else []
    return draw_detections(canvas, detections.select(detections.scores >= SURE), class_names, legend=rows)
