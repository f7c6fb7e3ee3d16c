"""What a few labels give: the table "A few labels" of docs/results.md.

    python tests/bench/calibration.py DATA MODEL... [--boxes 10 30 50] [--repeats 20] [--sigma-rule cluster] [--out F]

Every checkpoint answers DATA once. Then, again and again, images are drawn at random until they hold so many labelled
boxes; these calibrate, and all other images, the empty ones too, are judged before and after. Draws are by seed, the
same for all models. A row holds the median over models and draws unless it says otherwise; coverage and intervals are
counted over the sides of the true positives of the images judged.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ptedge.backends.checkpoint_predictor import CheckpointPredictor
from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset
from ptedge.detections import Detections
from ptedge.scores.average_precision import evaluate_detections
from ptedge.scores.calibrate import FEWEST_BOXES, find_sample
from ptedge.scores.evaluation import detect_all
from ptedge.scores.side_fit import SideSample, fit_sides
from ptedge.scores.sides import move_sides
from ptedge.scores.sigma_quality import SHARES, interval_width

COVERAGES = tuple(share / 100 for share in SHARES)


@dataclass(frozen=True)
class Draw:
    """One calibration and what it does to the other images.

    Attributes:
        found: boxes it was measured on; fewer than ``FEWEST_BOXES`` leave the model as it is.
        applied: whether there was an offset.
        ap: (AP50, AP75) before and after.
        coverage: [2, 4] at ``SHARES``, before and after.
        intervals: [4] share of sides held at ``SHARES``; NaN where the boxes were too few.
    """

    found: int
    applied: bool
    ap: np.ndarray
    coverage: np.ndarray
    intervals: np.ndarray


def draw(found: list[Detections], dataset: Dataset, boxes: int, seed: int) -> Draw:
    """Calibrate on some images and judge the rest."""
    counts = [int((~sample.ignore).sum()) for sample in dataset.samples]
    order = np.random.default_rng(seed).permutation(np.flatnonzero(counts))
    few = set(order[: int(np.searchsorted(np.cumsum([counts[i] for i in order]), boxes)) + 1].tolist())
    rest = [i for i in range(len(counts)) if i not in few]
    (sample, _), (judged, _) = (_sample(found, dataset, rows) for rows in (sorted(few), rest))
    names, labels, before = dataset.class_names, [dataset.samples[i] for i in rest], [found[i] for i in rest]
    offset, scale, factors, applied = np.zeros(4), np.ones(4), {}, False
    if len(sample) >= FEWEST_BOXES:
        fit = fit_sides(sample, COVERAGES)
        offset, scale, factors, applied = fit.offset.offset, fit.scale, fit.intervals, fit.offset.helps
    after = [move_sides(one, label, offset) for one, label in zip(before, labels, strict=True)]
    metrics = [evaluate_detections(boxes, labels, names) for boxes in (before, after)]
    errors, sigma = np.abs(judged.errors - offset), judged.sigma * scale
    held = [np.mean(errors <= factors[c] * sigma) if c in factors else np.nan for c in COVERAGES]
    return Draw(
        len(sample),
        applied,
        np.array([[m.ap50, m.ap75] for m in metrics], np.float64),
        np.array([_coverage(np.abs(judged.errors), judged.sigma), _coverage(errors, sigma)]),
        np.array(held),
    )


def _sample(found: list[Detections], dataset: Dataset, rows: list[int]) -> tuple[SideSample, Any]:
    part = replace(dataset, samples=tuple(dataset.samples[i] for i in rows))
    return find_sample([found[i] for i in rows], part)


def _coverage(errors: np.ndarray, sigma: np.ndarray) -> list[float]:
    return [float(np.mean(errors <= interval_width(share) * sigma)) for share in SHARES]


def summarise(draws: list[Draw]) -> dict[str, Any]:
    """One row of the table."""
    gain = np.array([one.ap[1, 1] - one.ap[0, 1] for one in draws])
    coverage = np.array([one.coverage for one in draws])
    return {
        "found": float(np.median([one.found for one in draws])),
        "applied": float(np.mean([one.applied for one in draws])),
        "AP50": np.median([one.ap[:, 0] for one in draws], axis=0).tolist(),
        "AP75": np.median([one.ap[:, 1] for one in draws], axis=0).tolist(),
        "AP75_gain": {"median": float(np.median(gain)), "worst": float(gain.min()), "lost": float(np.mean(gain < 0))},
        "coverage": np.median(coverage, axis=0).tolist(),
        "coverage_off": np.mean(np.abs(coverage - COVERAGES), axis=0).tolist(),
        "intervals": [_mean_of_known(column) for column in np.array([one.intervals for one in draws]).T],
    }


def _mean_of_known(values: np.ndarray) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else None


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("models", type=Path, nargs="+")
    parser.add_argument("--boxes", type=int, nargs="+", default=[10, 30, 50])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--sigma-rule", help="instead of the checkpoints' own")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    answers = []
    for path in options.models:
        predictor = CheckpointPredictor(path, options.threads, calibrated=False)
        if options.sigma_rule is not None:
            predictor.model.config = replace(predictor.model.config, sigma_rule=options.sigma_rule)
        dataset = open_dataset(options.data, class_names=predictor.class_names, use="score")
        answers.append(detect_all(predictor, dataset))
    rows = {}
    for boxes in options.boxes:
        each = [[draw(found, dataset, boxes, seed) for seed in range(options.repeats)] for found in answers]
        models = {str(path): summarise(own) for path, own in zip(options.models, each, strict=True)}
        rows[boxes] = {"all": summarise([one for own in each for one in own]), "models": models}
        print(boxes, json.dumps(rows[boxes]["all"]), flush=True)
        for path, row in models.items():
            print("  ", path, json.dumps(row), flush=True)
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
