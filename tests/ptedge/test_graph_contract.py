from __future__ import annotations

import numpy as np

from ptedge.graph_contract import (
    OUTPUTS,
    ROW_OUTPUTS,
    converged_images,
    detections_of,
    input_signature,
    output_signature,
    unused_rows,
)

# two images of two rows: the first has one detection, the second none and was cut short
ANSWER = {
    "boxes": np.array([[[1, 2, 3, 4], [0, 0, 0, 0]], [[0, 0, 0, 0], [0, 0, 0, 0]]], np.float32),
    "scores": np.array([[0.5, 0], [0, 0]], np.float32),
    "labels": np.array([[1, 0], [0, 0]], np.int32),
    "sigma": np.array([[[5, 6, 7, 8], [0, 0, 0, 0]], [[0, 0, 0, 0], [0, 0, 0, 0]]], np.float32),
    "num_detections": np.array([1, 0], np.int32),
    "entropy": np.array([[0.25, 0], [0, 0]], np.float32),
    "converged": np.array([1, 0], np.int32),
}


def test_signatures__written_out() -> None:
    shapes = {name: (shape, kind.name) for name, (shape, kind) in input_signature(2, (64, 96)).items()}
    assert shapes == {"images": ((2, 3, 64, 96), "uint8")}
    shapes = {name: (shape, kind.name) for name, (shape, kind) in output_signature(2, 5).items()}
    assert shapes == {
        "boxes": ((2, 5, 4), "float32"),
        "scores": ((2, 5), "float32"),
        "labels": ((2, 5), "int32"),
        "sigma": ((2, 5, 4), "float32"),
        "num_detections": ((2,), "int32"),
        "entropy": ((2, 5), "float32"),
        "converged": ((2,), "int32"),
    }
    assert tuple(shapes) == OUTPUTS
    assert tuple(name for name, (shape, _) in shapes.items() if len(shape) > 1) == ROW_OUTPUTS


def test_detections_of__takes_the_used_rows_of_one_image() -> None:
    found = detections_of(ANSWER, 0)
    assert found.boxes.tolist() == [[1, 2, 3, 4]] and found.sigma.tolist() == [[5, 6, 7, 8]]
    assert found.scores.tolist() == [0.5] and found.entropy.tolist() == [0.25]
    assert found.labels.tolist() == [1] and found.labels.dtype == np.int64
    assert len(detections_of(ANSWER, 1)) == 0


def test_detections_of__keeps_nothing_of_the_outputs() -> None:
    outputs = {name: value.copy() for name, value in ANSWER.items()}
    found = detections_of(outputs, 0)
    outputs["boxes"][:] = outputs["sigma"][:] = -1
    assert found.boxes.tolist() == [[1, 2, 3, 4]] and found.sigma.tolist() == [[5, 6, 7, 8]]


def test_unused_rows_and_converged_images__by_hand() -> None:
    assert unused_rows(ANSWER).tolist() == [[False, True], [True, True]]
    assert converged_images(ANSWER).tolist() == [True, False]
