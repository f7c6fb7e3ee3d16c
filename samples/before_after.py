"""The same pictures before and after adaptation, side by side, with boxes, bands of sigma and what was to be found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.backends.predictor import Predictor, open_predictor
from ptedge.data import open_dataset
from ptedge.data.dataset import Sample
from ptedge.detections import Detections
from ptedge.drawing.draw import ADAPTED_COLOR, SOURCE_COLOR, TRUTH_COLOR, draw_boxes, draw_detections
from ptedge.drawing.legend import LegendRow
from ptedge.drawing.lettering import Color, Lettering
from ptedge.drawing.scale import at_shown_width
from ptedge.frames.images import read_image
from ptedge.scores.matching import UNMATCHED, match_boxes, overlaps

from .write import write_image

SURE = 0.5  # score from which a box is drawn and counted, as in the pictures of ``ptedge eval --out``
WIDTH = 720  # pixels of one panel
ON_SHEET = 3  # pairs on the first picture
GAP, PAPER, INK = 8, 24, (240, 240, 240)  # pixels between panels; grey of the ground, RGB of headings
FOLDER, SHEET = "pictures", "before_after.jpg"


def draw_before_and_after(out: Path, before: Path, after: Path, labels: Path, count: int) -> list[Path]:
    """Draw ``pictures/NAME.jpg`` of some labelled images, and ``before_after.jpg`` of the first few of them.

    Args:
        out: the demo's folder.
        before: checkpoint or bundle.
        after: the same classes, adapted.
        labels: DATA that neither has seen.
        count: images, spread evenly over all there are: not the ones where most has changed.

    Returns:
        The files; the sheet first.

    Raises:
        PtedgeError: unreadable model or data, or a place that is not writable.
    """
    dataset = open_dataset(labels)
    chosen = np.unique(np.linspace(0, len(dataset) - 1, min(count, len(dataset))).round().astype(int))
    samples = [dataset.samples[int(i)] for i in chosen]
    asked = (("before", before, SOURCE_COLOR), ("after", after, ADAPTED_COLOR))
    columns = [_column(title, path, color, samples) for title, path, color in asked]
    gutter = np.full((columns[0][0].shape[0], GAP, 3), PAPER, np.uint8)
    pairs = [np.hstack([left, gutter, right]) for left, right in zip(*columns, strict=True)]
    files = [out / SHEET]
    write_image(files[0], np.vstack(pairs[:ON_SHEET]))
    for sample, pair in zip(samples, pairs, strict=True):
        files.append(out / FOLDER / f"{sample.path.stem}.jpg")
        write_image(files[-1], pair)
    return files


def _column(title: str, path: Path, color: Color, samples: Sequence[Sample]) -> list[NDArray[np.uint8]]:
    """What one model finds on each image."""
    model = open_predictor(path)
    try:
        return [draw_panel(model, title, color, sample) for sample in samples]
    finally:
        model.close()


def draw_panel(model: Predictor, title: str, color: Color, sample: Sample) -> NDArray[np.uint8]:
    """One model on one image, under a heading that says how much of what is labelled it finds.

    Args:
        model: asked.
        title: of the heading.
        color: RGB of its boxes.
        sample: image and labels; boxes to ignore are neither drawn nor counted.

    Returns:
        [H, W, 3] uint8 RGB, ``WIDTH`` wide.
    """
    image = read_image(sample.path)
    found = model.detect(image)
    sure = found.select(found.scores >= SURE)
    hits, wrong = count_found(sure, sample)
    wanted = sample.boxes[~sample.ignore]
    shown, boxes = at_shown_width(image, sure, WIDTH, WIDTH, cv2.INTER_CUBIC)
    canvas = shown.copy()
    truth = wanted * np.float32(WIDTH / image.shape[1])
    draw_boxes(canvas, truth, [TRUTH_COLOR] * len(truth))
    rows = [LegendRow("what is there", TRUTH_COLOR), LegendRow(f"found {title}", color)]
    drawn = draw_detections(canvas, boxes, model.class_names, color=color, legend=rows)
    return np.vstack([_heading(f"{title}: {hits} of {len(wanted)} found, {wrong} wrong", drawn), drawn])


def count_found(found: Detections, sample: Sample) -> tuple[int, int]:
    """How many labelled boxes are found, at IoU 0.5, and how many detections are of nothing.

    Args:
        found: of the image, best score first.
        sample: its labels; what is found of boxes to ignore counts neither way.
    """
    hits = wrong = 0
    for label in np.unique(found.labels):
        mine, its = found.boxes[found.labels == label], sample.labels == label
        ignore = sample.ignore[its]
        matched = match_boxes(overlaps(mine, sample.boxes[its].astype(np.float64), ignore), ignore, [0.5])[0]
        hits, wrong = hits + int((matched >= 0).sum()), wrong + int((matched == UNMATCHED).sum())
    return hits, wrong


def _heading(text: str, panel: NDArray[np.uint8]) -> NDArray[np.uint8]:
    lettering = Lettering.fitting(panel.shape[0], panel.shape[1], 1.5)
    strip = np.full((lettering.size(text)[1], panel.shape[1], 3), PAPER, np.uint8)
    lettering.write(strip, text, 0, 0, INK)
    return strip


__all__ = ["FOLDER", "SHEET", "count_found", "draw_before_and_after", "draw_panel"]
