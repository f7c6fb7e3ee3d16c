"""A report's facts and findings, made without a model."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from made_run import write_run

from ptedge.detections import Detections
from ptedge.training.report.gather import Facts, gather
from ptedge.training.report.page import Findings
from ptedge.training.report.pictures import Model, compare

SCORES = {
    "images": 12,
    "boxes": 30,
    "AP50": 0.5,
    "AP75": 0.25,
    "AP": 0.3,
    "sigma": {"coverage_50": 0.3, "coverage_68": 0.4, "coverage_90": 0.7, "coverage_95": 0.8},
    "sides": {side: {"offset": 0.1, "spread": 0.05, "sigma": 0.04} for side in ("x1", "y1", "x2", "y2")},
}


def boxes(*rows: tuple[float, float, float, float], score: float = 0.9) -> Detections:
    count = len(rows)
    return Detections(
        np.array(rows, np.float32).reshape(-1, 4),
        np.full(count, score, np.float32),
        np.zeros(count, np.int64),
        np.full((count, 4), 2, np.float32),
        np.zeros(count, np.float32),
    )


class Frames:
    """Frames of noise, for what asks for a FrameIndex."""

    def __init__(self, names: list[str]) -> None:
        self.names, self.spec = names, "frames"

    def __len__(self) -> int:
        return len(self.names)

    def name(self, i: int) -> str:
        return self.names[i]

    def read(self, i: int) -> np.ndarray:
        return np.random.default_rng(i).integers(0, 256, (120, 200, 3), np.uint8)


def made_facts(run: Path, classes: tuple[str, ...] = ("car",)) -> Facts:
    write_run(run)
    summary = {"command": "adapt", "kind": "adapted", "classes": list(classes), "target_frames": 5, "source_images": 6}
    summary |= {"seconds": 90.0, "steps": 8, "last": {"step": 8}, "chosen": {"step": 8}}
    (run / "summary.json").write_text(json.dumps(summary))
    return gather(run, None, None, None)


def made_findings(names: list[str], classes: tuple[str, ...] = ("car",)) -> Findings:
    before = {name: boxes((20, 20, 60, 60), score=0.5) for name in names}
    after = {name: boxes((20, 20, 60, 60), (100, 30, 140, 90)) for name in names}
    models = [
        Model("source model", (230, 159, 0), answers=before),
        Model("adapted model", (86, 180, 233), answers=after),
    ]
    views = compare(models, Frames(names), classes, 4)  # type: ignore[arg-type]
    scores = {"source model": SCORES, "adapted model": {**SCORES, "AP50": 0.75}}
    return Findings(tuple(model.title for model in models), views, scores, "frames (4)")
