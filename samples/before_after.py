"""The same pictures before and after adaptation, side by side, with boxes, bands of sigma and what was to be found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
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
from ptedge.scores.average_precision import match_detections

from .write import write_image

SURE = 0.5  # score from which a box is drawn and counted, as in the pictures of ``ptedge eval --out``
WIDTH = 720  # pixels of one panel
ON_SHEET = 3  # pairs on the first picture, those that gain most
GAP, PAPER, INK = 8, 24, (240, 240, 240)  # pixels between panels; grey of the ground, RGB of headings
FOLDER, SHEET = "pictures", "before_after.jpg"


@dataclass(frozen=True)
class Panel:
    """One model on one image.

    Attributes:
        picture: [H, W, 3] uint8 RGB, ``WIDTH`` wide.
        hits: labelled boxes that it finds.
        wrong: detections of nothing.
    """

    picture: NDArray[np.uint8]
    hits: int
    wrong: int


def draw_before_and_after(out: Path, before: Path, after: Path, labels: Path, count: int) -> list[Path]:
    """Draw ``pictures/NAME.jpg`` of some labelled images, and ``before_after.jpg`` of those of them that gain most.

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
    files, pairs, gains = [out / SHEET], list[NDArray[np.uint8]](), list[int]()
    for sample, left, right in zip(samples, *columns, strict=True):
        pairs.append(np.hstack([left.picture, np.full((len(left.picture), GAP, 3), PAPER, np.uint8), right.picture]))
        gains.append(right.hits - right.wrong - left.hits + left.wrong)
        files.append(out / FOLDER / f"{sample.path.stem}.jpg")
        write_image(files[-1], pairs[-1])
    best = sorted(range(len(pairs)), key=lambda i: -gains[i])[:ON_SHEET]
    write_image(files[0], np.vstack([pairs[i] for i in best]))
    return files


def _column(title: str, path: Path, color: Color, samples: Sequence[Sample]) -> list[Panel]:
    """What one model finds on each image."""
    model = open_predictor(path)
    try:
        return [draw_panel(model, title, color, sample) for sample in samples]
    finally:
        model.close()


def draw_panel(model: Predictor, title: str, color: Color, sample: Sample) -> Panel:
    """One model on one image, under a heading that says how much of what is labelled it finds.

    Args:
        model: asked.
        title: of the heading.
        color: RGB of its boxes.
        sample: image and labels; boxes to ignore are neither drawn nor counted.
    """
    image = read_image(sample.path)
    found = model.detect(image)
    sure = found.select(found.scores >= SURE)
    hits, wrong = count_found(sure, sample, len(model.class_names))
    wanted = sample.boxes[~sample.ignore]
    shown, boxes = at_shown_width(image, sure, WIDTH, WIDTH, cv2.INTER_CUBIC)
    canvas = shown.copy()
    truth = wanted * np.float32(WIDTH / image.shape[1])
    draw_boxes(canvas, truth, [TRUTH_COLOR] * len(truth))
    rows = [LegendRow("what is there", TRUTH_COLOR), LegendRow(f"found {title}", color)]
    drawn = draw_detections(canvas, boxes, model.class_names, color=color, legend=rows)
    heading = _heading(f"{title}: {hits} of {len(wanted)} found, {wrong} wrong", drawn)
    return Panel(np.vstack([heading, drawn]), hits, wrong)


def count_found(found: Detections, sample: Sample, num_classes: int) -> tuple[int, int]:
    """How many labelled boxes are found, at IoU 0.5, and how many detections are of nothing.

    Args:
        found: of the image, best score first.
        sample: its labels; what is found of boxes to ignore counts neither way.
        num_classes: labels are 0..num_classes-1.
    """
    every = replace(sample, ignore=np.zeros_like(sample.ignore))
    hits, of_something = (len(match_detections([found], [labels], num_classes)) for labels in (sample, every))
    return hits, len(found) - of_something


def _heading(text: str, panel: NDArray[np.uint8]) -> NDArray[np.uint8]:
    lettering = Lettering.fitting(panel.shape[0], panel.shape[1], 1.5)
    strip = np.full((lettering.size(text)[1], panel.shape[1], 3), PAPER, np.uint8)
    lettering.write(strip, text, 0, 0, INK)
    return strip


__all__ = ["FOLDER", "SHEET", "Panel", "count_found", "draw_before_and_after", "draw_panel"]
