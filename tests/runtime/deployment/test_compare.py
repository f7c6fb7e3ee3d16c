"""Champion against challenger: the mirror image, the margin, and labels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_deployments import numbered_bundle
from square_finder import SquareFinder, write_squares

from ptedge.artifacts.bundle import open_bundle
from ptedge.detections import Detections
from ptedge.runtime.deployment.compare import (
    FEWEST_FRAMES,
    agreement,
    check_champion,
    check_labels,
    look_twice,
    score_of_as_many,
)
from ptedge.runtime.deployment.gate import run_gate
from ptedge.runtime.deployment.options import GateOptions


def frame(column: int, width: int = 96) -> np.ndarray:
    """A bright square in the dark."""
    image = np.zeros((64, width, 3), np.uint8)
    image[20:40, column : column + 20] = 255
    return image


class Exact(SquareFinder):
    """Finds the square where it is; ``shift`` pixels to the right of it; ``times`` over."""

    def __init__(self, shift: float = 0.0, times: int = 1, score: float = 0.9) -> None:
        super().__init__()
        self.shift, self.times, self.score = shift, times, score

    def detect(self, image: np.ndarray) -> Detections:
        found = super().detect(image)
        found = found.select(np.zeros(self.times * len(found), np.int64))
        boxes = found.boxes + np.array([self.shift - 1, 0, self.shift - 1, 1], np.float32)
        scores = np.full(len(found), self.score, np.float32)
        return Detections(boxes, scores, found.labels, found.sigma, found.entropy)


FRAMES = [frame(column) for column in range(10, 60, 4)]  # 13


def compare(champion: Any, challenger: Any, frames: list[np.ndarray] = FRAMES, margin: float = 0.05) -> Any:
    return check_champion(champion, challenger, frames, margin)


def views(finder: Any, image: np.ndarray) -> Any:
    return look_twice(finder, image)


def test_agreement__a_side_that_is_off_shows_in_the_mirror() -> None:
    assert agreement(views(Exact(), frame(10)), 0.5) == pytest.approx(1.0)
    # 2 px to the right in either view: boxes of 20 px lie 4 px apart, 16 of 24 px overlap
    off = views(Exact(shift=2), frame(10))
    assert agreement(off, 0.5) == pytest.approx(16 / 24)
    assert np.isnan(agreement(off, 0.95))  # the finder is less sure than that
    assert np.isnan(agreement(views(Exact(), np.zeros((64, 96, 3), np.uint8)), 0.5))


def test_agreement__of_both_views_alike() -> None:
    found, mirrored = views(Exact(), frame(10))
    nothing = found.select(np.zeros(0, np.int64))
    assert agreement((found, nothing), 0.5) == agreement((nothing, found), 0.5) == 0.0
    # one box in both views, one in either alone: 2 of 3 boxes are found again
    far = Detections(found.boxes + 30, found.scores, found.labels, found.sigma, found.entropy)
    both = Detections(*(np.concatenate(pair) for pair in zip(arrays(found), arrays(far), strict=True)))
    assert agreement((both, mirrored), 0.5) == agreement((mirrored, both), 0.5) == pytest.approx(2 / 3)
    other = Detections(found.boxes, found.scores, found.labels + 1, found.sigma, found.entropy)
    assert agreement((found, other), 0.5) == 0.0


def arrays(found: Detections) -> tuple[np.ndarray, ...]:
    return found.boxes, found.scores, found.labels, found.sigma, found.entropy


def test_score_of_as_many__by_hand() -> None:
    row = [views(Exact(score=score), frame(10)) for score in (0.9, 0.2, 0.6)]
    found = [score_of_as_many(row, count) for count in (0, 1, 2, 3, 4)]
    assert found == pytest.approx([1.0, 0.9, 0.6, 0.2, 0.0])


def test_check_champion__who_finds_more_is_asked_about_as_many() -> None:
    class Eager(Exact):
        """Also takes the upper left corner for something, in every view, and is not sure of it."""

        def detect(self, image: np.ndarray) -> Detections:
            found = super().detect(image)
            corner = found.boxes * 0 + np.array([0, 0, 8, 8], np.float32)
            low = Detections(corner, found.scores * 0 + 0.4, found.labels, found.sigma, found.entropy)
            return Detections(*(np.concatenate(pair) for pair in zip(arrays(found), arrays(low), strict=True)))

    eager = compare(Exact(), Eager())
    assert eager.passed and eager.figures["value"] == 1.0
    assert compare(Eager(), Exact()).figures["champion"] == pytest.approx(0.5)


def test_check_champion__no_worse_within_the_margin() -> None:
    assert compare(Exact(), Exact()).passed
    worse = compare(Exact(), Exact(shift=2))
    assert not worse.passed and worse.judged
    assert worse.figures["low"] == pytest.approx(-1 / 3, abs=1e-3)
    assert compare(Exact(shift=2), Exact()).passed
    assert compare(Exact(), Exact(shift=2), margin=0.34).passed


@pytest.mark.parametrize(("challenger", "ratio"), [(Exact(times=5), 5.0), (Exact(score=0.3), 1 / 3)])
def test_check_champion__a_flood_and_a_collapse(challenger: Exact, ratio: float) -> None:
    check = compare(Exact(), challenger)
    assert not check.passed and check.figures["found_ratio"] == pytest.approx(ratio, abs=1e-3)
    assert "(allowed: 0.5 to 4)" in check.detail


def test_check_champion__too_few_frames_say_nothing() -> None:
    dark = [np.zeros((64, 96, 3), np.uint8)] * 20
    check = compare(Exact(), Exact(shift=2), [*FRAMES[: FEWEST_FRAMES - 1], *dark])
    assert check.passed and not check.judged and "too few to compare" in check.detail


def test_check_labels__by_average_precision(tmp_path: Path) -> None:
    data = write_squares(tmp_path)
    good: Any = SquareFinder()
    blind: Any = Exact(shift=40)
    check = check_labels(good, blind, data, 0.05)
    assert not check.passed
    assert (check.figures["champion"], check.figures["value"]) == (1.0, 0.0)
    assert check_labels(blind, good, data, 0.05).passed
    alone = check_labels(None, good, data, 0.05)
    assert not alone.judged and alone.figures == {"ap50": 1.0}


def test_run_gate__compares_with_what_runs(tmp_path: Path) -> None:
    import cv2

    pictures = tmp_path / "pictures"
    pictures.mkdir()
    for number in range(FEWEST_FRAMES):
        cv2.imwrite(str(pictures / f"{number}.png"), FRAMES[number])
    champion = numbered_bundle(tmp_path / "champion", 0)
    bundle = open_bundle(numbered_bundle(tmp_path / "challenger", 1))
    options = GateOptions(backend="cpu", threads=1, seconds=0, frames=str(pictures))
    checks = {check.name: check for check in run_gate(bundle, champion, options, print)}
    assert checks["champion"].judged and checks["champion"].passed
    assert checks["champion"].figures["found_ratio"] == pytest.approx(1.51 / 1.5, abs=1e-3)
    assert "labels" not in checks
