"""What a graph's answers promise, broken one by one."""

from __future__ import annotations

import numpy as np
from tiny_model import tiny_manifest

from ptedge.backends.promises import broken_promises, promises_kept


def test_broken_promises__names_each() -> None:
    opened = tiny_manifest(input_size=(96, 128))
    D = opened.max_detections
    good = {
        "boxes": np.zeros((1, D, 4), np.float32),
        "scores": np.zeros((1, D), np.float32),
        "labels": np.zeros((1, D), np.int32),
        "sigma": np.zeros((1, D, 4), np.float32),
        "num_detections": np.array([2], np.int32),
        "entropy": np.zeros((1, D), np.float32),
        "converged": np.ones(1, np.int32),
    }
    good["boxes"][0, :2] = [[0, 0, 10, 10], [5, 5, 128, 96]]
    good["scores"][0, :2] = [0.9, 0.2]
    assert broken_promises(good, opened) == []

    def with_value(name: str, index: tuple[int, ...], value: float) -> list[str]:
        array = good[name].copy()
        array[index] = value
        return broken_promises({**good, name: array}, opened)

    assert with_value("boxes", (0, 1, 2), 129) == ["a box is inverted or outside the input"]
    assert with_value("scores", (0, 1), 0.95) == ["scores are not in descending order within (threshold, 1]"]
    assert with_value("scores", (0, 1), 0.01) == ["scores are not in descending order within (threshold, 1]"]
    assert with_value("labels", (0, 0), 2) == ["a label has no class"]
    assert with_value("sigma", (0, 0, 0), -1) == ["sigma or entropy is negative"]
    assert with_value("sigma", (0, 4, 0), 1) == ["sigma beyond num_detections are not zero"]
    assert with_value("entropy", (0, 0), np.nan) == ["numbers that are not finite"]
    assert with_value("converged", (0,), 0) == ["NMS not at its fixpoint in 1 images"]
    cut_short = {**good, "converged": np.zeros(1, np.int32)}
    assert broken_promises(cut_short, opened, made=True) == []
    answers = {"black": cut_short, "noise": good}
    assert promises_kept(answers).endswith("NMS cut short in 1 of black; detections: black 2, noise 2")
    assert "NMS converged" in promises_kept({"noise": good})
