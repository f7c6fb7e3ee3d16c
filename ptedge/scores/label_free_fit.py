"""What corrupted pictures with labels teach: from signs that need no label to the scale of sigma and to AP.

For each corrupted set both are known, the signs and the truth; two small regressions join them. On pictures nobody
labelled the signs alone give the estimate. It holds as far as the new place differs from the source as corruptions do,
in how pictures look: objects of other sizes, or labels drawn by another rule, leave no sign.

Reference: method.md section 8, "Judging without labels".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ptedge.artifacts.estimate import AP_SIGNS, FEWEST_PAIRS, LabelFreeEstimate, LabelFreeFit, Ridge
from ptedge.calibration import Sides
from ptedge.data.dataset import Sample
from ptedge.errors import InputError
from ptedge.scores.average_precision import evaluate_detections, match_detections
from ptedge.scores.label_free import ONE_SIGMA, Answers, Signs, signs_of
from ptedge.scores.ridge import fit_ridge
from ptedge.scores.sigma_quality import MIN_SIGMA

MATCH_IOU = 0.5
FEWEST_FOUND = 5  # true positives of a set; a quantile of fewer says nothing
MOST_SCALE = 8.0  # and its inverse: nothing measured lies near it


@dataclass(frozen=True)
class LabelledSet:
    """A corrupted set: its signs, and what is true of it.

    Attributes:
        kind: of corruption; sets of one kind are left out together.
        signs: label-free.
        found: true positives.
        scale: of x1, y1, x2, y2: what sigma had to be multiplied by for 68.3 % of the errors to lie within it; ``None``
            with fewer than :data:`FEWEST_FOUND` true positives.
        ap50: average precision at IoU 0.5; ``None`` where no box is labelled.
        ap75: at IoU 0.75.
    """

    kind: str
    signs: Signs
    found: int
    scale: Sides | None
    ap50: float | None
    ap75: float | None


def labelled_set(
    kind: str, answers: Sequence[Answers], samples: Sequence[Sample], class_names: Sequence[str]
) -> LabelledSet:
    """Signs and truth of one corrupted set.

    Args:
        kind: of corruption.
        answers: one a picture.
        samples: the labels, in the same pixels.
        class_names: names by label.
    """
    found = [one.plain for one in answers]
    matches = match_detections(found, samples, len(class_names), MATCH_IOU)
    metrics = evaluate_detections(found, samples, class_names)
    scale: Sides | None = None
    if len(matches) >= FEWEST_FOUND and matches.sigma.any():
        ratio = np.abs(matches.boxes - matches.truth) / np.maximum(matches.sigma, MIN_SIGMA)
        x1, y1, x2, y2 = np.maximum(np.quantile(ratio, ONE_SIGMA, axis=0), 1 / MOST_SCALE).tolist()
        scale = (x1, y1, x2, y2)
    return LabelledSet(kind, signs_of(answers), len(matches), scale, metrics.ap50, metrics.ap75)


def fit_label_free(sets: Sequence[LabelledSet], sigma_rule: str) -> LabelFreeFit:
    """Join signs and truth.

    Args:
        sets: of several kinds; those without a detection or without a label teach nothing.
        sigma_rule: by which the model makes sigma.

    Raises:
        InputError: too few sets with objects that were found.
    """
    judged = [one for one in sets if one.ap50 is not None and not math.isnan(one.signs.score)]
    sized = [one for one in judged if one.scale is not None and one.signs.disagreement is not None]
    try:
        x1, y1, x2, y2 = (_fit_side(sized, side) for side in range(4))
        ap50, ap75 = (_fit_ap(judged, name) for name in ("ap50", "ap75"))
    except ValueError as error:
        raise InputError(
            f"too little to learn an estimate from: {error}. Give more labelled images, or images on which the model "
            "finds something"
        ) from None
    images = sum(one.signs.frames for one in sets)
    return LabelFreeFit(x1, y1, x2, y2, ap50=ap50, ap75=ap75, sets=len(sets), images=images, sigma_rule=sigma_rule)


def estimate(fit: LabelFreeFit, signs: Signs, sigma_rule: str) -> LabelFreeEstimate:
    """What the signs of frames without labels say.

    Args:
        fit: learned at the source, of the model or of the one it was adapted from.
        signs: of the model on the frames.
        sigma_rule: by which the model makes sigma; there is no scale where the fit is of another rule.
    """
    nothing = math.isnan(signs.score)  # no detection: no AP
    x = [getattr(signs, name) for name in AP_SIGNS]
    ap50, ap75 = (0.0 if nothing else min(1.0, max(0.0, one.predict(x))) for one in (fit.ap50, fit.ap75))
    outside = [] if nothing else [name for i, name in enumerate(AP_SIGNS) if _beyond(fit.ap50, i, x[i])]
    scale: Sides | None = None
    if signs.disagreement is not None and signs.pairs >= FEWEST_PAIRS and sigma_rule == fit.sigma_rule:
        logs = [_log(value) for value in signs.disagreement]
        x1, y1, x2, y2 = (
            min(MOST_SCALE, max(1 / MOST_SCALE, math.exp(side.predict([log]))))
            for side, log in zip(fit.sides, logs, strict=True)
        )
        scale = (x1, y1, x2, y2)
        if any(side.outside([log]) for side, log in zip(fit.sides, logs, strict=True)):
            outside.append("disagreement")
    return LabelFreeEstimate(
        frames=signs.frames,
        pairs=signs.pairs,
        ap50=ap50,
        ap50_error=fit.ap50.error,
        ap75=ap75,
        ap75_error=fit.ap75.error,
        scale=scale,
        scale_error=(fit.x1.error, fit.y1.error, fit.x2.error, fit.y2.error),
        outside=tuple(outside),
    )


def _fit_side(sets: Sequence[LabelledSet], side: int) -> Ridge:
    x = np.array([[_log(one.signs.disagreement[side])] for one in sets if one.signs.disagreement is not None])
    y = np.array([math.log(one.scale[side]) for one in sets if one.scale is not None])
    weights = np.array([one.found for one in sets], np.float64)
    return fit_ridge(x.reshape(-1, 1), y, weights, [one.kind for one in sets])


def _fit_ap(sets: Sequence[LabelledSet], name: str) -> Ridge:
    x = np.array([[getattr(one.signs, sign) for sign in AP_SIGNS] for one in sets]).reshape(-1, len(AP_SIGNS))
    y = np.array([getattr(one, name) for one in sets], np.float64)
    return fit_ridge(x, y, np.ones(len(sets)), [one.kind for one in sets])


def _log(value: float) -> float:
    return math.log(max(value, MOST_SCALE**-4))


def _beyond(fit: Ridge, index: int, value: float) -> bool:
    return not fit.low[index] <= value <= fit.high[index]
