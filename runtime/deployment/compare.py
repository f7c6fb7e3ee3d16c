"""Champion against challenger on the same frames: by how each agrees with itself, and with labels by AP50.

Without labels a model is asked about a frame and its mirror image. A box that is there in one view and not in the
other, or elsewhere, is wrong in one of them; what both views share is the *agreement*. A model that finds more is less
sure of what it finds last, so both are asked about equally many boxes: those that the champion is fairly sure of, and
as many of the challenger's best. It is a sign, no measure of AP (docs/deployments.md says how far to trust it).

Both tests ask the challenger to be no worse, within a margin, with 95 % confidence: one that is worse by more passes in
at most 5 % of cases.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ptedge.backends.predictor import Predictor
from ptedge.data import open_dataset
from ptedge.detections import Detections, class_iou
from ptedge.errors import InputError
from ptedge.progress import Progress
from ptedge.scores.evaluation import detect_all
from ptedge.scores.paired import Difference, paired_ap50, paired_mean

from .check import GateCheck

Views = tuple[Detections, Detections]  # of a frame, and of its mirror image

FEWEST_FRAMES = 10  # in which both find something; fewer say nothing
SURE = 0.3  # score from which the champion's boxes are compared
FEWER, MORE = 0.5, 4.0  # summed scores, relative to the champion's, that count as a collapse or a flood


def check_champion(
    champion: Predictor, challenger: Predictor, frames: Sequence[NDArray[np.uint8]], margin: float
) -> GateCheck:
    """Both on the same frames, without labels.

    Args:
        champion: runs now.
        challenger: to be promoted.
        frames: each [height, width, 3] uint8 RGB.
        margin: of agreement, 0 to 1, that may be lost.
    """
    with Progress("champion and challenger", 2 * len(frames)) as progress:
        rows: list[list[Views]] = []
        for predictor in (champion, challenger):
            rows.append([])
            for frame in frames:
                rows[-1].append(look_twice(predictor, frame))
                progress(sum(map(len, rows)))
    scores = [sum(float(plain.scores.sum()) for plain, _ in row) for row in rows]
    ratio = scores[1] / scores[0] if scores[0] else 1.0
    pairs = paired_agreement(*rows)
    figures = {"found_ratio": round(ratio, 4), "frames": float(len(frames)), "compared": float(len(pairs))}
    text = f"finds {ratio:.2f} times what the running version finds in {len(frames)} frames"
    if not FEWER <= ratio <= MORE:
        return GateCheck("champion", False, f"{text} (allowed: {FEWER:g} to {MORE:g})", figures=figures)
    if len(pairs) < FEWEST_FRAMES:
        text += f"; both find something in {len(pairs)} of them, too few to compare (needs {FEWEST_FRAMES})"
        return GateCheck("champion", True, text, judged=False, figures=figures)
    found = paired_mean(pairs[:, 0], pairs[:, 1])
    return _judged("champion", f"{text}; agreement of as many boxes with the mirror image", found, margin, figures)


def check_labels(champion: Predictor | None, challenger: Predictor, data: Path, margin: float) -> GateCheck:
    """Both on labelled pictures.

    Args:
        champion: runs now; ``None`` for none.
        challenger: to be promoted.
        data: labelled DATA.
        margin: of AP50, 0 to 1, that may be lost.

    Raises:
        InputError: no such data, or no box in it.
        ClassMismatchError: other classes.
    """
    dataset = open_dataset(data, class_names=challenger.class_names, use="score")
    with Progress("labelled pictures", len(dataset)) as progress:
        new = detect_all(challenger, dataset, lambda done, _: progress(done))
    old = new
    if champion is not None:
        with Progress("labelled pictures, running version", len(dataset)) as progress:
            old = detect_all(champion, dataset, lambda done, _: progress(done))
    found = paired_ap50(old, new, dataset.samples, len(dataset.class_names))
    if found is None:
        raise InputError(f"{data} has no labelled box, so there is nothing to compare. Give other --labels")
    if champion is None:
        text = f"AP50 {found.second:.3f} on {found.pictures} pictures; nothing to compare with"
        return GateCheck("labels", True, text, judged=False, figures={"ap50": round(found.second, 4)})
    return _judged("labels", "AP50", found, margin, {})


def look_twice(predictor: Predictor, frame: NDArray[np.uint8]) -> Views:
    """A frame and its mirror image.

    Args:
        predictor: asked.
        frame: [height, width, 3] uint8 RGB.

    Returns:
        Detections of the frame, and those of its mirror image as they lie in the frame.
    """
    return predictor.detect(frame), _mirrored(predictor.detect(np.ascontiguousarray(frame[:, ::-1])), frame.shape[1])


def paired_agreement(champion: Sequence[Views], challenger: Sequence[Views]) -> NDArray[np.float64]:
    """The agreement of both on equally many boxes: those the champion is fairly sure of, and as many of the other's.

    Args:
        champion: of each frame.
        challenger: of the same frames.

    Returns:
        [N, 2] of champion and challenger, of the frames in which both find something.
    """
    least = score_of_as_many(challenger, sum(int((plain.scores >= SURE).sum()) for plain, _ in champion))
    rows = [[agreement(views, SURE) for views in champion], [agreement(views, least) for views in challenger]]
    pairs = np.array(rows, np.float64).T
    both: NDArray[np.float64] = pairs[np.isfinite(pairs).all(axis=1)]
    return both


def score_of_as_many(row: Sequence[Views], count: int) -> float:
    """The score from which a model finds so many boxes; 0 where it finds fewer, 1 where none is asked for.

    Args:
        row: of each frame.
        count: of boxes, in all frames as they are.
    """
    scores = np.sort(np.concatenate([plain.scores for plain, _ in row]))[::-1]
    if not count:
        return 1.0
    return float(scores[count - 1]) if count <= len(scores) else 0.0


def agreement(views: Views, least: float) -> float:
    """How much of what either view holds the other has too.

    Args:
        views: of one frame.
        least: score from which boxes count.

    Returns:
        Mean overlap of every box of both views with the best one of its class in the other, 0 where there is none;
        ``nan`` where neither view has a box.
    """
    one, other = (found.select(found.scores >= least) for found in views)
    count = len(one) + len(other)
    if not count:
        return float("nan")
    if not len(one) or not len(other):
        return 0.0
    overlap = class_iou(one, other)
    return float((overlap.max(axis=0).sum() + overlap.max(axis=1).sum()) / count)


def _mirrored(found: Detections, width: int) -> Detections:
    """Detections of a mirror image, in the picture it is of."""
    columns = [2, 1, 0, 3]
    boxes = found.boxes[:, columns].copy()
    boxes[:, [0, 2]] = width - boxes[:, [0, 2]]
    return dataclasses.replace(found, boxes=boxes, sigma=found.sigma[:, columns])


def _judged(name: str, what: str, found: Difference, margin: float, figures: dict[str, float]) -> GateCheck:
    text = (
        f"{what} {found.second:.3f}, of the running version {found.first:.3f}, on {found.pictures} pictures; "
        f"difference above {found.low:+.3f} with 95 % confidence (allowed: {-margin:+g})"
    )
    if found.low < -margin and found.value >= -margin:
        text += ". Not shown to be as good: give more pictures"
    figures = figures | {
        "value": round(found.second, 4),
        "champion": round(found.first, 4),
        "low": round(found.low, 4),
        "high": round(found.high, 4),
    }
    return GateCheck(name, found.low >= -margin, text, figures=figures)
