from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_windows import rows

from ptedge.detections import Detections, class_iou
from ptedge.errors import InputError

NAMES = ("car", "person")


def make(count: int, seed: int = 0) -> Detections:
    rng = np.random.default_rng(seed)
    return Detections(
        boxes=rng.uniform(0, 4000, (count, 4)).astype(np.float32),
        scores=np.sort(rng.uniform(0, 1, count).astype(np.float32))[::-1],
        labels=rng.integers(0, 2, count),
        sigma=rng.uniform(0, 50, (count, 4)).astype(np.float32),
        entropy=rng.uniform(0, 1.2, count).astype(np.float32),
    )


def test_empty__has_the_shapes_and_types_of_any_other() -> None:
    empty = Detections.empty()
    assert len(empty) == 0
    assert empty.boxes.shape == (0, 4)
    assert empty.labels.dtype == np.int64
    assert empty.to_json(NAMES) == []


@pytest.mark.parametrize("wrong", ["boxes", "scores", "labels", "sigma", "entropy"])
def test_init__arrays_that_do_not_belong_together(wrong: str) -> None:
    good = vars(make(3))
    with pytest.raises(ValueError, match="do not belong together"):
        Detections(**{**good, wrong: good[wrong][:2]})


def test_select__by_mask_and_by_index() -> None:
    three = make(3)
    np.testing.assert_array_equal(three.select(np.array([True, False, True])).scores, three.scores[[0, 2]])
    np.testing.assert_array_equal(three.select(np.array([2, 0])).sigma, three.sigma[[2, 0]])
    assert len(three.select(np.zeros(3, bool))) == 0


def test_to_json__one_row_by_hand() -> None:
    one = Detections(
        boxes=np.array([[1.23456, 2, 3, 4]], np.float32),
        scores=np.array([0.9876543], np.float32),
        labels=np.array([1]),
        sigma=np.array([[0.12345, 1, 2, 3]], np.float32),
        entropy=np.array([0.69315], np.float32),
    )
    assert one.to_json(NAMES) == [
        {
            "label": 1,
            "class": "person",
            "score": 0.98765,
            "box": [1.23, 2.0, 3.0, 4.0],
            "sigma": [0.123, 1.0, 2.0, 3.0],
            "entropy": 0.6931,
        }
    ]


@given(st.integers(0, 12), st.integers(0, 2**32 - 1))
def test_from_json__gives_back_what_was_written_within_rounding(count: int, seed: int) -> None:
    before = make(count, seed)
    after = Detections.from_json(json.loads(json.dumps(before.to_json(NAMES))))
    np.testing.assert_allclose(after.boxes, before.boxes, atol=0.0055)
    np.testing.assert_allclose(after.scores, before.scores, atol=6e-6)
    np.testing.assert_array_equal(after.labels, before.labels)
    np.testing.assert_allclose(after.sigma, before.sigma, atol=6e-4)
    np.testing.assert_allclose(after.entropy, before.entropy, atol=6e-5)
    assert after.boxes.dtype == before.boxes.dtype
    assert after.labels.dtype == before.labels.dtype


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sigma": None}, "not as ptedge run writes it"),
        ({"box": [1, 2, 3]}, "not as ptedge run writes it"),
        ({"score": "high"}, "not as ptedge run writes it"),
        ({"label": [1, 2]}, "not as ptedge run writes it"),
    ],
)
def test_from_json__spoilt_row(change: dict[str, Any], message: str) -> None:
    row = {**make(1).to_json(NAMES)[0], **change}
    with pytest.raises(InputError, match=message):
        Detections.from_json([row])


def test_from_json__row_without_sigma() -> None:
    row = make(1).to_json(NAMES)[0]
    del row["sigma"]
    with pytest.raises(InputError, match="a detection has no field 'sigma'"):
        Detections.from_json([row])


def test_class_iou__of_one_class_alone() -> None:
    first, second = rows((0.9, 0.0), (0.8, 10.0)), rows((0.5, 0.0))
    assert class_iou(first, second).tolist() == [[1.0], [pytest.approx(1 / 3)]]
    assert class_iou(first, rows((0.5, 0.0), label=1)).tolist() == [[0.0], [0.0]]
    assert class_iou(first, rows()).shape == (2, 0)
