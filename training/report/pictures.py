"""The same frames before and after: what two models find on them, and which frames are worth showing."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.backends.predictor import Predictor
from ptedge.detections import Detections, class_iou
from ptedge.drawing.draw import ADAPTED_COLOR, SOURCE_COLOR, draw_detections
from ptedge.drawing.legend import LegendRow
from ptedge.drawing.lettering import Color
from ptedge.drawing.scale import at_shown_width
from ptedge.errors import PtedgeError
from ptedge.frames.source import FrameIndex
from ptedge.progress import tracked

SURE = 0.3  # score from which a box is drawn and counted, as `ptedge run` draws them
SAME_IOU = 0.5  # boxes that overlap so much show one object
NARROWEST, WIDEST = 640, 960  # pixels of an embedded picture
JPEG_QUALITY = 80
LETTERS = 1.4  # pictures are shown at about half their size on a phone
MOST_RECORD = 8 << 20  # bytes of a line of frames.jsonl


@dataclass(frozen=True)
class Model:
    """Who answers on one side of the comparison.

    Attributes:
        title: for people.
        color: RGB of its boxes.
        predictor: asks it; ``None`` for answers read from a field folder.
        answers: by file name, where they were read.
    """

    title: str
    color: Color
    predictor: Predictor | None = None
    answers: Mapping[str, Detections] = dataclasses.field(default_factory=dict)

    def detect(self, image: NDArray[np.uint8], name: str) -> Detections:
        """What it finds in an RGB image of that name."""
        if self.predictor is not None:
            return self.predictor.detect(image)
        return self.answers.get(Path(name).name, Detections.empty())


@dataclass(frozen=True)
class View:
    """A frame and what each model found there.

    Attributes:
        name: of the frame.
        found: per model, in pixels of the frame, scores from ``SURE`` on.
        doubt: see :func:`doubt_of`, of the last model.
        pictures: per model, JPEG as a data URI.
    """

    name: str
    found: tuple[Detections, ...]
    doubt: float
    pictures: tuple[str, ...]

    @property
    def difference(self) -> int:
        """Boxes that one model has and the other has not."""
        return difference_of(*self.found) if len(self.found) == 2 else 0


def before_model(predictor: Predictor | None, answers: Mapping[str, Detections], title: str) -> Model:
    """The model that the run began with, or answers recorded with the frames."""
    return Model(title, SOURCE_COLOR, predictor, answers)


def after_model(predictor: Predictor, title: str) -> Model:
    """The model that came of the run."""
    return Model(title, ADAPTED_COLOR, predictor)


def compare(models: Sequence[Model], frames: FrameIndex, class_names: Sequence[str], most: int) -> list[View]:
    """Ask models about frames spread evenly over all there are.

    Args:
        models: one or two, the newer last.
        frames: to look at; those that cannot be read are passed over.
        class_names: names by label.
        most: frames to ask about.
    """
    views = []
    chosen = np.unique(np.linspace(0, len(frames) - 1, min(most, len(frames))).round().astype(int))
    for i in tracked(chosen, "asking the models", "frames"):
        name = frames.name(int(i))
        try:
            image = frames.read(int(i))
        except PtedgeError:
            continue
        found = tuple(model.detect(image, name) for model in models)
        sure = tuple(d.select(d.scores >= SURE) for d in found)
        pictures = tuple(_picture(image, d, class_names, model) for d, model in zip(sure, models, strict=True))
        views.append(View(name, sure, doubt_of(sure[-1]), pictures))
    return views


def most_changed(views: Sequence[View], count: int) -> list[View]:
    """The views on which the models differ most, in their own order."""
    ranked = sorted(range(len(views)), key=lambda i: -views[i].difference)[:count]
    return [views[i] for i in sorted(ranked)]


def least_sure(views: Sequence[View], count: int) -> list[View]:
    """The views with the most doubt, most first; those without any are left out."""
    return [view for view in sorted(views, key=lambda v: -v.doubt)[:count] if view.doubt > 0]


def doubt_of(found: Detections) -> float:
    """How much a model doubts: the sum of 4 p (1 - p) over its boxes, which is 1 for a box of score 0.5."""
    return float((4 * found.scores * (1 - found.scores)).sum())


def difference_of(one: Detections, other: Detections) -> int:
    """Boxes of either without a partner of the same class in the other."""
    alone = 0
    for a, b in ((one, other), (other, one)):
        if not len(b):
            alone += len(a)
        elif len(a):
            same = class_iou(a, b) >= SAME_IOU
            alone += int((~same.any(axis=1)).sum())
    return alone


def read_answers(field: Path, class_count: int) -> tuple[dict[str, Detections], set[str]]:
    """What the lines of a field folder hold: detections by file name, and the hashes of the models that made them.

    Lines that are broken, or of other classes, are passed over.
    """
    answers: dict[str, Detections] = {}
    models: set[str] = set()
    path = field / "frames.jsonl"
    if not path.is_file():
        return answers, models
    with open(path, "rb") as file:
        for line in iter(lambda: file.readline(MOST_RECORD), b""):
            try:
                record: Any = json.loads(line)
                found = Detections.from_json(record["detections"])
                name = Path(record["file"]).name
            except (ValueError, KeyError, TypeError, PtedgeError):
                continue
            if len(found) and (found.labels.min() < 0 or found.labels.max() >= class_count):
                continue
            answers[name] = found
            models.add(str(record.get("model", "")))
    return answers, models - {""}


def _picture(image: NDArray[np.uint8], found: Detections, class_names: Sequence[str], model: Model) -> str:
    """A frame with its boxes as a data URI, drawn at the size that is embedded."""
    image, found = at_shown_width(image, found, NARROWEST, WIDEST, cv2.INTER_CUBIC)
    rows = [LegendRow(f"found by: {model.title}", model.color)]
    drawn = draw_detections(image, found, class_names, color=model.color, legend=rows, letters=LETTERS)
    bgr = cv2.cvtColor(drawn, cv2.COLOR_RGB2BGR)
    _, data = cv2.imencode(".jpg", bgr, [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    return "data:image/jpeg;base64," + base64.b64encode(data.tobytes()).decode("ascii")
