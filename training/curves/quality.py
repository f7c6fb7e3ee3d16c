"""How well score and sigma foretell a box's IoU: the pairs behind the paper's scatter plots. Needs labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.boxes import box_area, box_iou
from ptedge.data.dataset import Sample
from ptedge.detections import Detections
from ptedge.errors import ArtifactError
from ptedge.files import write_json
from ptedge.scores.sigma_quality import spearman

from .read import FloatArray

QUALITY_FILE = "val_boxes.json"  # in RUN
LEAST_IOU = 0.1  # below it a detection shows another thing than the labelled one
IGNORED = 0.5  # share of a detection in an ignore region from which it is left out


@dataclass(frozen=True)
class QualityPairs:
    """Detections that touch a labelled box of their class.

    Attributes:
        iou: [N] with the labelled box they overlap most, at least ``LEAST_IOU``.
        score: [N] in [0, 1].
        sigma: [N] mean over the four sides, as a share of sqrt(box area): IoU does not know scale, pixels do. Zeros
            for a detector without variance heads.
        elsewhere: detections that touch no labelled box, in no ignore region: left out.
    """

    iou: FloatArray
    score: FloatArray
    sigma: FloatArray
    elsewhere: int

    def __len__(self) -> int:
        return len(self.iou)

    @property
    def rank_score(self) -> float | None:
        """Spearman correlation of score and IoU; 1 is best."""
        return spearman(self.score, self.iou)

    @property
    def rank_sigma(self) -> float | None:
        """Spearman correlation of sigma and IoU; -1 is best."""
        return spearman(self.sigma, self.iou)

    def write(self, path: Path) -> None:
        """As JSON."""
        lists = {key: np.round(getattr(self, key), 6).tolist() for key in ("iou", "score", "sigma")}
        write_json(path, {**lists, "elsewhere": self.elsewhere})


def read_quality(path: Path) -> QualityPairs:
    """What :meth:`QualityPairs.write` wrote.

    Raises:
        ArtifactError: unreadable.
    """
    try:
        document: dict[str, Any] = json.loads(path.read_text("utf-8"))
        iou, score, sigma = (np.array(document[key], np.float64) for key in ("iou", "score", "sigma"))
        return QualityPairs(iou, score, sigma, int(document["elsewhere"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtifactError(f"{path} is not a file of box quality ({type(error).__name__})") from None


def quality_pairs(detections: Sequence[Detections], samples: Sequence[Sample]) -> QualityPairs:
    """Pair detections with labelled boxes.

    Unlike in average precision, several detections may show one box: all are pseudo boxes a student would learn from.

    Args:
        detections: one an image, in its pixels.
        samples: the same images in the same order.
    """
    rows: list[tuple[FloatArray, FloatArray, FloatArray]] = []
    elsewhere = 0
    for found, sample in zip(detections, samples, strict=True):
        if not len(found.boxes):
            continue
        best = np.zeros(len(found.boxes))
        truth = sample.boxes[~sample.ignore]
        if len(truth):
            same = found.labels[:, None] == sample.labels[~sample.ignore][None]
            best = np.where(same, box_iou(found.boxes, truth), 0.0).max(axis=1).astype(np.float64)
        kept = best >= LEAST_IOU
        elsewhere += int((~kept & ~_in_ignored(found.boxes, sample)).sum())
        root = np.sqrt(np.maximum(box_area(found.boxes), 1.0))
        sigma = found.sigma.mean(axis=1) / root
        rows.append((best[kept], found.scores[kept].astype(np.float64), sigma[kept].astype(np.float64)))
    iou, score, sigma = (np.concatenate([np.zeros(0), *(row[i] for row in rows)]) for i in range(3))
    return QualityPairs(iou, score, sigma, elsewhere)


def _in_ignored(boxes: NDArray[np.float32], sample: Sample) -> NDArray[np.bool_]:
    regions = sample.boxes[sample.ignore]
    if not len(regions):
        return np.zeros(len(boxes), bool)
    low = np.maximum(boxes[:, None, :2], regions[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], regions[None, :, 2:])
    shared = np.clip(high - low, 0, None).prod(axis=-1).max(axis=1)
    inside: NDArray[np.bool_] = shared >= IGNORED * np.maximum(box_area(boxes), 1e-6)
    return inside
