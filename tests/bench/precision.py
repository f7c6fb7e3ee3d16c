"""What float16 and int8 cost: the table "Precision" of docs/results.md.

    python tests/bench/precision.py DATA CHECKPOINT... [--precisions fp16 int8] [--out FILE.json]

DATA holds target/val.json (labelled, to measure on) and target/frames (unlabelled, to calibrate int8 on). Every
checkpoint is exported in each precision and evaluated by ONNX Runtime on the CPU; differences are to its own float32
graph. Sigma is compared on all detections that both graphs give (same class, overlap above 0.5).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from ptedge.commands.evaluate import EvaluationResult, evaluate_model
from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset
from ptedge.export.compare import match
from ptedge.export.to_onnx import export_checkpoint
from ptedge.runner import BundlePredictor

LIMITS = {"fp16": (0.002, 0.01, 0.02), "int8": (0.01, 0.05, 0.02)}  # AP50 lost, sigma, coverage


def measure(
    checkpoint: Path, precision: str, frames: Path, val: Dataset, threads: int
) -> tuple[EvaluationResult, dict[str, Any]]:
    """Export one checkpoint in one precision and evaluate it.

    Returns:
        The evaluation, and what the file is like.
    """
    with tempfile.TemporaryDirectory() as folder:
        calibrate = str(frames) if precision == "int8" else None
        bundle, report = export_checkpoint(checkpoint, Path(folder) / "b", precision=precision, calibrate=calibrate)
        predictor = BundlePredictor(bundle.path, "cpu", threads)
        result = evaluate_model(predictor, val)
        predictor.close()
    conversion = bundle.manifest.conversion
    about = {
        "megabytes": report.size / 1e6,
        "nodes": report.nodes,
        "converted": conversion.converted,
        "share": conversion.share_of_multiplications,
        "kept_float32": list(conversion.kept_float32),
    }
    return result, about


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


def row(checkpoint: Path, precision: str, reference: EvaluationResult, other: EvaluationResult) -> dict[str, Any]:
    """Numbers of one precision of one checkpoint, and whether they are within the limits."""
    (ap0, s0), (ap1, s1) = ((r.metrics.to_json(), r.sigma.to_json()) for r in (reference, other))
    found = {
        "checkpoint": checkpoint.parent.name,
        "precision": precision,
        "AP50": ap1["AP50"],
        "AP75": ap1["AP75"],
        "AP50_change": ap1["AP50"] - ap0["AP50"],
        "AP75_change": ap1["AP75"] - ap0["AP75"],
        "coverage_1": s1["coverage_1"],
        "coverage_2": s1["coverage_2"],
        "coverage_change": max(abs(s1[k] - s0[k]) for k in ("coverage_1", "coverage_2")),
        **differences(reference, other),
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
        "| checkpoint | precision | AP50 (change) | AP75 (change) | sigma, median change | within 1 sigma | 2 sigma | "
        "matched | box, median | MB | operators | limits |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        verdict = "" if "within_limits" not in r else "met" if r["within_limits"] else "missed"
        lines.append(
            f"| {r['checkpoint']} | {r['precision']} | {r['AP50']:.4f} ({r['AP50_change']:+.4f}) "
            f"| {r['AP75']:.3f} ({r['AP75_change']:+.3f}) | {r['sigma']:.2%} | {r['coverage_1']:.3f} "
            f"| {r['coverage_2']:.3f} | {r['matched']:.1%} | {r['box']:.2f} px | {r['megabytes']:.1f} | {r['nodes']} "
            f"| {verdict} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("checkpoints", type=Path, nargs="+")
    parser.add_argument("--precisions", nargs="+", choices=list(LIMITS), default=list(LIMITS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="Also write the rows here, as JSON.")
    options = parser.parse_args()
    val, frames = open_dataset(options.data / "target/val.json"), options.data / "target/frames"
    rows = []
    for checkpoint in options.checkpoints:
        reference, about = measure(checkpoint, "fp32", frames, val, options.threads)
        rows.append(row(checkpoint, "fp32", reference, reference) | about)
        for precision in options.precisions:
            result, about = measure(checkpoint, precision, frames, val, options.threads)
            rows.append(row(checkpoint, precision, reference, result) | about)
            print(table(rows[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    print(table(rows))
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
