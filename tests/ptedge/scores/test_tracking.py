"""Tracks of a few boxes, by hand."""

from __future__ import annotations

import numpy as np
from made_answers import found

from ptedge.detections import Detections
from ptedge.scores.tracking import Track, link_detections


def as_lists(tracks: list[Track]) -> list[tuple[int, list[int], list[int]]]:
    return [(track.label, track.frames.tolist(), track.rows.tolist()) for track in tracks]


def at(x: float, label: int = 0, score: float = 0.9) -> tuple[float, int, list[float]]:
    """A box of 20 x 20 whose left side is at x."""
    return score, label, [x, 0, x + 20, 20]


def test_link__two_objects_whose_rows_change_places() -> None:
    frames = [found(at(0), at(100)), found(at(102), at(2)), found(at(4), at(104))]
    assert as_lists(link_detections(frames, least_score=0.5)) == [(0, [0, 1, 2], [0, 1, 0]), (0, [0, 1, 2], [1, 0, 1])]


def test_link__classes_stay_apart_and_low_scores_out() -> None:
    frames = [found(at(0), at(50, score=0.4)), found(at(0, label=1), at(50))]
    assert as_lists(link_detections(frames, least_score=0.5)) == [(0, [0], [0]), (1, [1], [0]), (0, [1], [1])]


def test_link__largest_overlap_goes_first() -> None:
    """The second detection overlaps the first track more than its own; the nearer pair decides."""
    frames = [found(at(0), at(8)), found(at(6), at(0))]
    # track at 0: overlap 1 with the box at 0; then the track at 8 takes the box at 6
    assert as_lists(link_detections(frames, least_score=0.5)) == [(0, [0, 1], [0, 1]), (0, [0, 1], [1, 0])]


def test_link__expects_a_box_where_it_was_going() -> None:
    frames = [found(at(9.0 * i)) for i in range(4)]
    frames[2] = Detections.empty()
    # 18 pixels on, a box of 20 x 20 overlaps its last place by 2 / 38; its pace of 9 a frame finds it
    assert as_lists(link_detections(frames, least_score=0.5, least_iou=0.3)) == [(0, [0, 1], [0, 0]), (0, [3], [0])]
    kept = link_detections(frames, least_score=0.5, least_iou=0.3, most_missed=1)
    assert as_lists(kept) == [(0, [0, 1, 3], [0, 0, 0])]
    frames[2:2] = [Detections.empty()]  # two in a row are one too many
    assert len(link_detections(frames, least_score=0.5, least_iou=0.3, most_missed=1)) == 2


def test_link__one_detection_never_has_two_tracks() -> None:
    rng = np.random.default_rng(0)
    frames = [found(*(at(float(x)) for x in rng.uniform(0, 60, rng.integers(0, 5)))) for _ in range(30)]
    tracks = link_detections(frames, least_score=0.5, most_missed=2)
    seen = [(frame, row) for track in tracks for frame, row in zip(track.frames, track.rows, strict=True)]
    assert len(seen) == len(set(seen)) == sum(map(len, frames))
    assert all((np.diff(track.frames) >= 1).all() and (np.diff(track.frames) <= 3).all() for track in tracks)


def test_link__nothing() -> None:
    assert link_detections([], least_score=0.5) == []
    assert link_detections([Detections.empty()] * 3, least_score=0.5) == []
