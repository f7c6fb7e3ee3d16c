"""Detections of one image: what every detector, backend and file of ptedge exchanges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.boxes import box_iou
from ptedge.errors import InputError


@dataclass(frozen=True)
class Detections:
    """Boxes found in one image, best score first.

    Attributes:
        boxes: [N, 4] float32, xyxy in pixels.
        scores: [N] float32 in [0, 1].
        labels: [N] int64, 0-based index into the class names (background has no label).
        sigma: [N, 4] float32, standard deviation in pixels of x1, y1, x2, y2.
        entropy: [N] float32, entropy in nats of the class distribution, background included.
    """

    boxes: NDArray[np.float32]
    scores: NDArray[np.float32]
    labels: NDArray[np.int64]
    sigma: NDArray[np.float32]
    entropy: NDArray[np.float32]

    def __post_init__(self) -> None:
        count = len(self.boxes)
        shapes = [self.boxes.shape, self.scores.shape, self.labels.shape, self.sigma.shape, self.entropy.shape]
        if shapes != [(count, 4), (count,), (count,), (count, 4), (count,)]:
            raise ValueError(f"boxes, scores, labels, sigma, entropy do not belong together: shapes {shapes}")

    def __len__(self) -> int:
        return len(self.boxes)

    @classmethod
    def empty(cls) -> Detections:
        """No detections."""
        return cls(
            boxes=np.zeros((0, 4), np.float32),
            scores=np.zeros(0, np.float32),
            labels=np.zeros(0, np.int64),
            sigma=np.zeros((0, 4), np.float32),
            entropy=np.zeros(0, np.float32),
        )

    def select(self, keep: NDArray[np.bool_] | NDArray[np.int64]) -> Detections:
        """The detections at a boolean mask or at indices.

        Args:
            keep: [N] bool, or [M] indices.
        """
        return Detections(self.boxes[keep], self.scores[keep], self.labels[keep], self.sigma[keep], self.entropy[keep])

    def to_json(self, class_names: Sequence[str]) -> list[dict[str, Any]]:
        """One dictionary a detection, as in a line of ``detections.jsonl``.

        Args:
            class_names: names by label.
        """
        columns = (self.labels, self.scores, self.boxes, self.sigma, self.entropy)
        return [
            {
                "label": label,
                "class": class_names[label],
                "score": round(score, 5),
                "box": [round(v, 2) for v in box],
                "sigma": [round(v, 3) for v in sigma],
                "entropy": round(entropy, 4),
            }
            # whole arrays as lists: number by number, this would take longer than all else that a frame's line takes
            for label, score, box, sigma, entropy in zip(*(column.tolist() for column in columns), strict=True)
        ]

    @classmethod
    def from_json(cls, rows: Sequence[Mapping[str, Any]]) -> Detections:
        """Read what :meth:`to_json` wrote.

        Raises:
            InputError: a row lacks a field, or a field does not hold what it should.
        """
        if not rows:
            return cls.empty()
        try:
            return cls(
                boxes=np.array([row["box"] for row in rows], np.float32).reshape(-1, 4),
                scores=np.array([row["score"] for row in rows], np.float32),
                labels=np.array([row["label"] for row in rows], np.int64),
                sigma=np.array([row["sigma"] for row in rows], np.float32).reshape(-1, 4),
                entropy=np.array([row["entropy"] for row in rows], np.float32),
            )
        except KeyError as error:
            raise InputError(f"a detection has no field {error}; ptedge run writes it") from None
        except (TypeError, ValueError) as error:
            raise InputError(f"a detection is not as ptedge run writes it: {error}") from None


def class_iou(first: Detections, second: Detections) -> NDArray[np.float32]:
    """Intersection over union of each pair of one class.

    Args:
        first: N detections.
        second: M detections of the same picture.

    Returns:
        [N, M] in [0, 1]; 0 where the classes differ.
    """
    same = first.labels[:, None] == second.labels[None, :]
    return np.where(same, box_iou(first.boxes, second.boxes), np.float32(0))
