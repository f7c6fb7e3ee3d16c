from __future__ import annotations

import numpy as np
import pytest

from ptedge.detections import Detections
from ptedge.drift.measures import measure_found, measure_frame, measure_names, measure_picture, split_name, weigh


def found() -> Detections:
    return Detections(
        boxes=np.array([[0, 0, 40, 10], [10, 10, 30, 30], [0, 0, 5, 5]], np.float32),
        scores=np.array([0.9, 0.5, 0.1], np.float32),
        labels=np.array([1, 1, 0]),
        sigma=np.array([[1, 2, 3, 4], [2, 2, 2, 2], [1, 1, 1, 1]], np.float32),
        entropy=np.array([0.25, 0.5, 0.75], np.float32),
    )


def test_measure_found__by_hand() -> None:
    values = measure_found(found(), width=100, height=64, classes=2)
    assert values["boxes:0"] == [0] and values["boxes:1"] == [2]  # the third scores below 0.2
    assert values["score:1"] == pytest.approx([0.9, 0.5])
    assert values["size:1"] == pytest.approx([20 / 80, 20 / 80])  # roots of 400 and 6400
    assert values["sigma:1"] == pytest.approx(np.log([2.5 / 20, 2 / 20]))
    assert values["entropy:1"].tolist() == [0.25, 0.5]
    assert len(values["score:0"]) == 0


def test_measure_found__nothing() -> None:
    values = measure_found(Detections.empty(), 100, 64, 1)
    assert values["boxes:0"] == [0] and all(len(values[f"{kind}:0"]) == 0 for kind in ("score", "size", "sigma"))


def test_measure_picture__one_colour() -> None:
    image = np.full((48, 64, 3), (100, 60, 20), np.uint8)
    values = {name: float(value[0]) for name, value in measure_picture(image).items()}
    grey = round(0.299 * 100 + 0.587 * 60 + 0.114 * 20)
    assert values["brightness"] == grey and values["contrast"] == 0
    assert values["saturation"] == 80 and values["warmth"] == 80
    assert values["sharpness"] == pytest.approx(np.log(0.5))
    assert all(values[f"{kind}:{part}"] == pytest.approx(0) for kind in ("light", "detail") for part in range(12))


def test_measure_picture__a_bright_part_with_detail() -> None:
    # the part of the second row and third column: rows 16 to 31, columns 32 to 47
    image = np.full((48, 64, 3), 20, np.uint8)
    image[18:30:2, 34:46] = 220
    values = measure_picture(image)
    parts = np.array([[float(values[f"{kind}:{part}"][0]) for part in range(12)] for kind in ("light", "detail")])
    assert parts.argmax(axis=1).tolist() == [6, 6]
    mean = 20 + 200 * 6 * 12 / (48 * 64)
    assert parts[0, 6] == pytest.approx(np.log((20 + 200 * 6 * 12 / 256 + 4) / (mean + 4)), abs=1e-5)
    assert parts[0, 0] == pytest.approx(np.log(24 / (mean + 4)), abs=1e-5)


def test_measure_frame__has_every_name_and_does_not_mind_the_resolution() -> None:
    small = np.random.default_rng(0).integers(0, 256, (24, 32, 3), np.uint8)
    names = measure_names(2)
    one, two = (
        measure_frame(image, found(), (48, 64), 2)
        for image in (small.repeat(4, 0).repeat(4, 1), small.repeat(8, 0).repeat(8, 1))
    )
    assert set(one) == set(names) and len(names) == len(set(names)) == 5 + 24 + 10
    for name in ("brightness", "sharpness", "light:3", "detail:7"):
        assert one[name] == pytest.approx(two[name], rel=1e-3)


def test_split_name() -> None:
    assert [split_name(name) for name in ("brightness", "light:7", "score:0")] == [
        ("brightness", None),
        ("light", 7),
        ("score", 0),
    ]


def test_weigh__each_frame_counts_once() -> None:
    frames = [{"score:0": np.array(values, float)} for values in ([3, 1], [], [2])]
    values, weights = weigh(frames, "score:0")
    assert values.tolist() == [1, 2, 3] and weights.tolist() == [0.5, 1, 0.5]
