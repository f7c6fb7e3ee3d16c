"""A calibration from detections and labels, and what it says of images left out."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import cv2
import numpy as np
import pytest

from ptedge.data.dataset import Dataset, Sample
from ptedge.detections import Detections
from ptedge.errors import InputError
from ptedge.scores.calibrate import digest_of, find_sample, measure_calibration

OFFSET = np.array([0.1, -0.05, 0.0, 0.05])


def made(folder: Path, count: int, sigma: float = 1.0, spread: float = 0.0) -> tuple[list[Detections], Dataset]:
    """Images of one labelled box each; what is found is off by ``OFFSET`` and, in pixels, by ``spread``."""
    rng = np.random.default_rng(0)
    found, samples = [], []
    for i in range(count):
        path = folder / f"{i}.png"
        cv2.imwrite(str(path), np.full((80, 120, 3), i, np.uint8))
        x, y, w, h = rng.uniform(20, 30), rng.uniform(15, 20), rng.uniform(30, 60), rng.uniform(25, 40)
        box = np.array([[x, y, x + w, y + h]])
        truth = box - OFFSET * [w, h, w, h] + spread * rng.normal(size=(1, 4))
        one = np.ones(1)
        deviation = np.full((1, 4), sigma)
        found.append(
            Detections(*(a.astype(t) for a, t in zip((box, 0.9 * one, 0 * one, deviation, one), "fflff", strict=True)))
        )
        ignore = np.zeros(1, np.bool_)
        samples.append(Sample(path, 120, 80, truth.astype(np.float32), np.zeros(1, np.int64), ignore, i))
    return found, Dataset(folder, "made", ("car",), tuple(samples))


def test_measure_calibration__finds_what_was_put_in_and_tells_of_images_left_out(tmp_path: Path) -> None:
    found, dataset = made(tmp_path, 12, sigma=1.0, spread=2.0)
    result = measure_calibration(found, dataset, [0.5, 0.95], model="ab")
    assert result.calibration.offset == pytest.approx(OFFSET, abs=0.03)
    assert np.mean(result.calibration.scale) == pytest.approx(2.0, rel=0.3)
    assert set(result.calibration.intervals) == {"0.5"} and result.fit.too_few == {0.95: 19}
    origin = result.calibration.origin
    assert (origin.how, origin.boxes, origin.images, origin.model) == ("labels", 12, 12, "ab")
    assert origin.data == digest_of(dataset)
    before, after = result.before, result.after
    assert before["AP50"] == after["AP50"] == 1.0 and after["AP75"] > before["AP75"]
    assert abs(after["coverage_68"] - 0.68) < abs(before["coverage_68"] - 0.68)
    assert 0.3 < result.held["0.5"] < 0.8
    values = result.to_json()
    assert values["sides"]["x1"]["offset"] == result.calibration.offset[0]
    assert values["intervals_too_few"] == {"0.95": 19} and values["offset_applied"] is True


def test_measure_calibration__the_same_error_everywhere_is_taken_away_whole(tmp_path: Path) -> None:
    found, dataset = made(tmp_path, 6)
    result = measure_calibration(found, dataset)
    assert result.calibration.offset == pytest.approx(OFFSET, abs=1e-5)
    assert result.after["AP"] == 1.0 > result.before["AP"]


def test_measure_calibration__images_without_a_box_count_for_the_scores_alone(tmp_path: Path) -> None:
    found, dataset = made(tmp_path, 7, spread=1.0)
    empty = dataclasses.replace(dataset.samples[0], boxes=np.zeros((0, 4), np.float32), labels=np.zeros(0, np.int64))
    empty = dataclasses.replace(empty, ignore=np.zeros(0, np.bool_))
    more = dataclasses.replace(dataset, samples=(*dataset.samples, empty))
    alarm = dataclasses.replace(found[0], scores=np.ones(1, np.float32))
    one, two = measure_calibration(found, dataset), measure_calibration([*found, alarm], more)
    assert one.calibration.offset == two.calibration.offset and one.calibration.scale == two.calibration.scale
    assert two.calibration.origin.images == 8
    assert two.before["AP50"] < one.before["AP50"] and two.after["AP50"] < one.after["AP50"]  # by the false alarm


def test_measure_calibration__too_few_boxes(tmp_path: Path) -> None:
    found, dataset = made(tmp_path, 4)
    with pytest.raises(InputError, match=r"found 4 of the 4 labelled boxes .* takes 5 at least"):
        measure_calibration(found, dataset)


def test_measure_calibration__a_detector_without_sigma(tmp_path: Path) -> None:
    found, dataset = made(tmp_path, 6, sigma=0.0)
    result = measure_calibration(found, dataset, [0.5])
    assert result.calibration.scale == (1.0, 1.0, 1.0, 1.0) and result.calibration.intervals == {}
    assert result.before["coverage_90"] is None and result.after["coverage_90"] is None


def test_find_sample__shares_of_the_detected_box(tmp_path: Path) -> None:
    found, dataset = made(tmp_path, 3, sigma=2.0)
    sample, places = find_sample(found, dataset)
    assert sample.errors == pytest.approx(np.tile(OFFSET, (3, 1)), abs=1e-5)
    size = found[1].boxes[0, 2:] - found[1].boxes[0, :2]
    assert sample.sigma[1] == pytest.approx(2.0 / np.tile(size, 2), rel=1e-5)
    assert sample.images.tolist() == [0, 1, 2] and [rows.tolist() for rows in places] == [[0], [1], [2]]


def test_digest_of__knows_images_and_labels_and_no_order(tmp_path: Path) -> None:
    _, dataset = made(tmp_path, 3)
    same = dataclasses.replace(dataset, samples=dataset.samples[::-1], root=Path("elsewhere"))
    assert digest_of(same) == digest_of(dataset)
    moved = dataclasses.replace(dataset.samples[0], boxes=dataset.samples[0].boxes + 1)
    assert digest_of(dataclasses.replace(dataset, samples=(moved, *dataset.samples[1:]))) != digest_of(dataset)
    before = digest_of(dataset)
    cv2.imwrite(str(dataset.samples[0].path), np.full((80, 120, 3), 99, np.uint8))
    assert digest_of(dataset) != before
    dataset.samples[0].path.unlink()
    with pytest.raises(InputError, match=r"cannot read .*0\.png: No such file"):
        digest_of(dataset)
