"""What float16 and int8 cost: the table "Precision" of docs/results.md.

    python tests/bench/precision.py DATA CHECKPOINT... [--precisions fp16 int8] [--noise 5] [--out FILE.json]

DATA holds target/val.json (labelled, to measure on) and target/frames (unlabelled, to calibrate int8 on). Every
checkpoint is exported in each precision and evaluated by ONNX Runtime on the CPU; differences are to its own float32
graph. Sigma is compared on all detections that both graphs give (same class, overlap above 0.5).

AP50 of a few boxes jumps when one of them crosses an overlap of 0.5. So with --noise N every graph is evaluated N times
more, on images in which each value moves by at most one grey level: how far float32 moves by that is the resolution of
the measurement, and the mean of the differences, copy by copy, is what a precision costs.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.backends.predictor import Predictor
from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset
from ptedge.detections import Detections
from ptedge.export.to_bundle import export_checkpoint
from ptedge.export.verify.compare import match
from ptedge.scores.evaluation import EvaluationResult, evaluate_model

Image = NDArray[np.uint8]

LIMITS = {"fp16": (0.002, 0.01, 0.02), "int8": (0.01, 0.05, 0.02)}  # AP50 lost, sigma, coverage


class OneGreyLevel:
    """A model that sees every value of an image moved by -1, 0 or 1."""

    def __init__(self, model: Predictor, seed: int) -> None:
        self._model, self._random = model, np.random.default_rng(seed)
        self.class_names, self.input_size, self.model_hash = model.class_names, model.input_size, model.model_hash

    def detect(self, image: Image) -> Detections:
        """Detections of the moved image."""
        moved = image + self._random.integers(-1, 2, image.shape)
        return self._model.detect(moved.clip(0, 255).astype(np.uint8))

    def close(self) -> None:
        """Free the model."""
        self._model.close()


def measure(
    checkpoint: Path, precision: str, frames: Path, val: Dataset, threads: int, copies: int
) -> tuple[list[EvaluationResult], dict[str, Any]]:
    """Export one checkpoint in one precision and evaluate it.

    Args:
        checkpoint: ``model.pt``.
        precision: of the graph.
        frames: to calibrate int8 on.
        val: to evaluate on.
        threads: of ONNX Runtime.
        copies: noisy ones of the images.

    Returns:
        The evaluations: on the images as they are, then on each copy; and what the file is like.
    """
    with tempfile.TemporaryDirectory() as folder:
        calibrate = str(frames) if precision == "int8" else None
        bundle, report = export_checkpoint(checkpoint, Path(folder) / "b", precision=precision, calibrate=calibrate)
        model = BundlePredictor(bundle.path, "cpu", threads)
        noisy = [OneGreyLevel(model, seed) for seed in range(1, copies + 1)]
        results = [evaluate_model(predictor, val) for predictor in (model, *noisy)]
        model.close()
    conversion = bundle.manifest.conversion
    about = {
        "megabytes": report.size / 1e6,
        "nodes": report.nodes,
        "converted": conversion.converted,
        "share_of_multiplications": conversion.share_of_multiplications,
        "ranges": conversion.calibration_method,
        "kept_float32": list(conversion.kept_float32),
    }
    return results, about


def differences(reference: EvaluationResult, other: EvaluationResult) -> dict[str, float]:
    """Matched share, and medians over what both graphs detect: relative for sigma, pixels for boxes."""
    sigma, box, score, count = [], [], [], 0
    for a, b in zip(reference.detections, other.detections, strict=True):
        count += len(a)
        for i, j in match(a, b):
            sigma.append(np.abs(b.sigma[j] / a.sigma[i] - 1))
            box.append(np.abs(b.boxes[j] - a.boxes[i]).max())
            score.append(abs(float(b.scores[j] - a.scores[i])))
    return {
        "matched": len(box) / max(1, count),
        "sigma": float(np.median(sigma)),
        "box": float(np.median(box)),
        "score": float(np.median(score)),
    }


def row(
    checkpoint: Path, precision: str, reference: list[EvaluationResult], other: list[EvaluationResult]
) -> dict[str, Any]:
    """Numbers of one precision of one checkpoint, and whether they are within the limits."""
    (ap0, s0), (ap1, s1) = ((r[0].metrics.to_json(), r[0].sigma.to_json()) for r in (reference, other))
    changes = [b.metrics.to_json()["AP50"] - a.metrics.to_json()["AP50"] for a, b in zip(reference, other, strict=True)]
    found = {
        "checkpoint": checkpoint.parent.name,
        "precision": precision,
        "AP50": ap1["AP50"],
        "AP75": ap1["AP75"],
        "AP50_change": changes[0],
        "AP50_change_mean": float(np.mean(changes)),
        "AP50_changes": changes,
        "AP50_copies": [result.metrics.to_json()["AP50"] for result in other],
        "AP75_change": ap1["AP75"] - ap0["AP75"],
        "coverage_1": s1["coverage_1"],
        "coverage_2": s1["coverage_2"],
        "coverage_change": max(abs(s1[k] - s0[k]) for k in ("coverage_1", "coverage_2")),
        **differences(reference[0], other[0]),
    }
    if precision in LIMITS:
        ap, sigma, coverage = LIMITS[precision]
        found["within_limits"] = bool(
            found["AP50_change"] >= -ap and found["sigma"] <= sigma and found["coverage_change"] <= coverage
        )
    return found


def table(rows: list[dict[str, Any]]) -> str:
    """Markdown, one line a row."""
    lines = [
        "| checkpoint | precision | AP50 (change) | mean change over the copies | AP75 (change) | sigma, median change "
        "| within 1 sigma | 2 sigma | matched | box, median | MB | operators | limits |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        verdict = "" if "within_limits" not in r else "met" if r["within_limits"] else "missed"
        lines.append(
            f"| {r['checkpoint']} | {r['precision']} | {r['AP50']:.4f} ({r['AP50_change']:+.4f}) "
            f"| {r['AP50_change_mean']:+.4f} | {r['AP75']:.3f} ({r['AP75_change']:+.3f}) | {r['sigma']:.2%} "
            f"| {r['coverage_1']:.3f} | {r['coverage_2']:.3f} | {r['matched']:.1%} | {r['box']:.2f} px "
            f"| {r['megabytes']:.1f} | {r['nodes']} | {verdict} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("checkpoints", type=Path, nargs="+")
    parser.add_argument("--precisions", nargs="+", choices=list(LIMITS), default=list(LIMITS))
    parser.add_argument("--noise", type=int, default=0, metavar="N", help="Also on N noisy copies of the images.")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="Also write the rows here, as JSON.")
    options = parser.parse_args()
    val, frames = open_dataset(options.data / "target/val.json"), options.data / "target/frames"
    rows = []
    for checkpoint in options.checkpoints:
        reference, about = measure(checkpoint, "fp32", frames, val, options.threads, options.noise)
        rows.append(row(checkpoint, "fp32", reference, reference) | about)
        for seed in range(1, options.noise + 1):
            rows.append(row(checkpoint, f"fp32, copy {seed}", reference[:1], reference[seed : seed + 1]) | about)
        for precision in options.precisions:
            results, about = measure(checkpoint, precision, frames, val, options.threads, options.noise)
            rows.append(row(checkpoint, precision, reference, results) | about)
            print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    print(table(rows))
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
