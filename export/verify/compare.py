"""Two implementations of one detector, compared by their boxes.

Rows may come in another order, and near-ties (an IoU just at the threshold, two equal scores) may fall otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptedge.boxes import box_iou
from ptedge.detections import Detections

BOX_TOLERANCE = 0.1  # pixels
RELATIVE_TOLERANCE = 1e-3  # of scores and sigma
ENTROPY_TOLERANCE = 1e-3  # nats


@dataclass(frozen=True)
class Comparison:
    """What comparing two answers for the same images found.

    Attributes:
        detections: in the reference.
        matched: pairs within all tolerances.
        borderline: detections of either side that differ, and hang on a near-tie.
        wrong: detections of either side that differ without such a reason.
        box: largest difference of a matched pair in pixels.
        score: largest relative difference of a matched pair.
        sigma: largest relative difference of a matched pair.
        entropy: largest difference of a matched pair in nats.
        examples: what the first few wrong ones are.
    """

    detections: int = 0
    matched: int = 0
    borderline: int = 0
    wrong: int = 0
    box: float = 0.0
    score: float = 0.0
    sigma: float = 0.0
    entropy: float = 0.0
    examples: tuple[str, ...] = ()

    @property
    def borderline_limit(self) -> int:
        """Near-ties beyond this many are too many to be chance."""
        return 2 + self.detections // 50

    @property
    def passed(self) -> bool:
        """Nothing wrong, and few near-ties."""
        return self.wrong == 0 and self.borderline <= self.borderline_limit

    def __add__(self, other: Comparison) -> Comparison:
        return Comparison(
            self.detections + other.detections,
            self.matched + other.matched,
            self.borderline + other.borderline,
            self.wrong + other.wrong,
            max(self.box, other.box),
            max(self.score, other.score),
            max(self.sigma, other.sigma),
            max(self.entropy, other.entropy),
            (self.examples + other.examples)[:3],
        )

    def __str__(self) -> str:
        text = (
            f"{self.matched} of {self.detections} detections agree (box {self.box:.2g} px, score {self.score:.1g}, "
            f"sigma {self.sigma:.1g})"
        )
        if self.borderline:
            text += f", {self.borderline} borderline (limit {self.borderline_limit})"
        if self.wrong:
            text += f", {self.wrong} differ: {'; '.join(self.examples)}"
        return text


def match(a: Detections, b: Detections) -> list[tuple[int, int]]:
    """Pairs of one class, the highest overlap first, each detection at most once; overlap above 0.5."""
    iou = _overlap(a, b)
    # duplicates have the same IoU with both partners: the nearer score decides
    closeness = iou - 1e-4 * np.abs(a.scores[:, None] - b.scores[None, :])
    pairs: list[tuple[int, int]] = []
    free_a, free_b = set(range(len(a))), set(range(len(b)))
    for flat in np.argsort(-closeness, axis=None, kind="stable"):
        i, j = divmod(int(flat), max(1, len(b)))
        if iou[i, j] <= 0.5:
            break
        if i in free_a and j in free_b:
            pairs.append((i, j))
            free_a.remove(i)
            free_b.remove(j)
    return pairs


def compare(reference: Detections, other: Detections, variants: Sequence[Detections] = ()) -> Comparison:
    """Compare two answers for one image.

    Args:
        reference: input pixels.
        other: input pixels.
        variants: answers of the reference implementation after small disturbances, see
            :func:`ptedge.export.verify.near_ties.disturbed`. A detection
            only in ``reference`` is borderline when some variant lacks it; one only in ``other`` when some
            variant has it, or when it replaces a borderline one.
    """
    agreeing, differences = _agreeing(reference, other)
    lost = sorted(set(range(len(reference))) - {i for i, _ in agreeing})
    extra = sorted(set(range(len(other))) - {j for _, j in agreeing})
    confirmed = [{i for i, _ in _agreeing(reference, v)[0]} for v in variants]
    unstable = [i for i in lost if any(i not in rows for rows in confirmed)]
    seen = {j for v in variants for _, j in _agreeing(v, other)[0]}
    close = _overlap(other, reference.select(np.array(unstable, np.int64)))
    borderline_extra = [j for j in extra if j in seen or close[j].max(initial=0.0) > 0.5]
    wrong = [("missing", reference, i) for i in lost if i not in unstable]
    wrong += [("extra", other, j) for j in extra if j not in borderline_extra]
    return Comparison(
        detections=len(reference),
        matched=len(agreeing),
        borderline=len(unstable) + len(borderline_extra),
        wrong=len(wrong),
        box=float(differences[0]),
        score=float(differences[1]),
        sigma=float(differences[2]),
        entropy=float(differences[3]),
        examples=tuple(_describe(*example) for example in wrong[:3]),
    )


def _overlap(a: Detections, b: Detections) -> NDArray[np.float32]:
    """IoU of every pair of one class, 0 for others; boxes are widened, so that one cut to a line overlaps itself."""
    margin = np.array([-1, -1, 1, 1], np.float32)
    iou = box_iou(a.boxes + margin, b.boxes + margin)
    overlap: NDArray[np.float32] = np.where(a.labels[:, None] == b.labels[None, :], iou, np.float32(0))
    return overlap


def _agreeing(a: Detections, b: Detections) -> tuple[list[tuple[int, int]], list[float]]:
    """Matched pairs within all tolerances, and the largest differences (box, score, sigma, entropy) among them."""
    pairs = match(a, b)
    if not pairs:
        return [], [0.0] * 4
    i, j = np.array(pairs).T
    differences = np.stack(
        [
            np.abs(a.boxes[i] - b.boxes[j]).max(1),
            _relative(a.scores[i], b.scores[j]),
            _relative(a.sigma[i], b.sigma[j]).max(1),
            np.abs(a.entropy[i] - b.entropy[j]),
        ],
        axis=1,
    )  # [P, 4]
    limits = [BOX_TOLERANCE, RELATIVE_TOLERANCE, RELATIVE_TOLERANCE, ENTROPY_TOLERANCE]
    good: NDArray[np.bool_] = np.all(differences <= limits, axis=1)
    agreeing = [pairs[k] for k in np.flatnonzero(good)]
    return agreeing, [float(v) for v in differences[good].max(0, initial=0.0)]


def _relative(a: NDArray[np.float32], b: NDArray[np.float32]) -> NDArray[np.float32]:
    largest = np.maximum(np.maximum(np.abs(a), np.abs(b)), np.float32(1e-6))
    ratio: NDArray[np.float32] = np.abs(a - b) / largest
    return ratio


def _describe(kind: str, detections: Detections, row: int) -> str:
    box = ", ".join(f"{v:.1f}" for v in detections.boxes[row])
    return f"{kind} class {detections.labels[row]} score {detections.scores[row]:.4f} at [{box}]"
