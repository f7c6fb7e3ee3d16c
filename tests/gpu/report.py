"""Put together what the steps of tests/gpu/run.sh left so far: RESULTS/report.json, and tables on stdout.

report.py PREPARED RESULTS
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ptedge.boxes import box_iou

PRECISIONS = ("fp32", "fp16", "int8")
GOALS = {"faster_than_torch_eager_fp16": 3.0, "busy": 0.95, "overhead": 0.05}  # the last one at most


def agreement(reference: Path, answer: Path) -> dict[str, Any]:
    """How two sets of answers to the same inputs agree: detections of both with score above 0.1, matched one to one.

    A pair has the same class and IoU of at least 0.5; best IoU first.
    """
    a, b = np.load(reference), np.load(answer)
    boxes, scores, sigmas, alone, total = [], [], [], 0, 0
    for i in range(len(a["num_detections"])):
        left, right = (np.arange(int(s["num_detections"][i])) for s in (a, b))
        left, right = left[a["scores"][i][left] > 0.1], right[b["scores"][i][right] > 0.1]
        total += len(left)
        iou = box_iou(a["boxes"][i][left], b["boxes"][i][right])
        iou[a["labels"][i][left][:, None] != b["labels"][i][right][None]] = 0
        pairs = 0
        while iou.size and iou.max() >= 0.5:
            row, column = np.unravel_index(int(iou.argmax()), iou.shape)
            iou[row], iou[:, column] = 0, 0
            m, n = left[row], right[column]
            boxes.append(float(np.abs(a["boxes"][i][m] - b["boxes"][i][n]).max()))
            scores.append(float(abs(a["scores"][i][m] - b["scores"][i][n])))
            sigmas.append(float(np.abs(b["sigma"][i][n] / a["sigma"][i][m] - 1).max()))
            pairs += 1
        alone += len(left) + len(right) - 2 * pairs
    found: dict[str, Any] = {"detections": total, "matched": len(boxes), "unmatched": alone}
    found["finite"] = bool(all(np.isfinite(b[name]).all() for name in ("boxes", "scores", "sigma")))
    found["converged"] = bool(b["converged"].all())
    for name, values in (("box_px", boxes), ("score", scores), ("sigma_relative", sigmas)):
        found[name] = {"median": float(np.median(values)), "max": float(np.max(values))} if values else None
    return found


def gather(prepared: Path, results: Path) -> dict[str, Any]:
    """All parts that are there."""
    report: dict[str, Any] = {"machine": _json(results / "machine.log"), "torch": {}}
    for what in ("eager", "compiled", "onnxruntime"):
        report["torch"] |= _json(results / f"torch-{what}.json") or {}
    for precision in PRECISIONS:
        reference, answer = prepared / f"{precision}-cpu.npz", results / f"{precision}.npz"
        there = reference.exists() and answer.exists()
        report[precision] = {
            "build": _json(results / f"build-{precision}.log") or _json(results / f"build-{precision}-split.log"),
            "agreement": agreement(reference, answer) if there else None,
            "bench": _json(results / f"{precision}-bench.json"),
        }
    report["soak"] = _json(results / "fp16-soak.json")
    rows = [line.split("\t") for line in (results / "steps.tsv").read_text().splitlines()]
    report["steps"] = {name: {"status": status, "seconds": int(seconds)} for name, status, seconds in rows}
    report["goals"] = goals(report)
    return report


def goals(report: dict[str, Any]) -> dict[str, Any]:
    """What was to be shown, of the fp16 engine with a CUDA graph: value, goal and whether it is met."""
    bench = report["fp16"]["bench"] or {}
    graph, eager = bench.get("graph", {}), report["torch"].get("torch eager fp16", {}).get("ms")
    values = {
        "faster_than_torch_eager_fp16": eager / graph["infer_ms"] if eager and graph else None,
        "busy": bench.get("throughput", {}).get("busy"),
        "overhead": graph.get("overhead"),
    }
    found = {}
    for name, value in values.items():
        goal = GOALS[name]
        met = None if value is None else value <= goal if name == "overhead" else value >= goal
        found[name] = {"value": value, "goal": goal, "met": met}
    return found


def tables(report: dict[str, Any]) -> str:
    """Markdown."""
    lines = [
        "| precision | engine | built in s | matched, against ONNX Runtime | box px | score | sigma |",
        "|---|---|---|---|---|---|---|",
    ]
    for precision in PRECISIONS:
        part = report[precision]
        found, engine = part["agreement"], (part["build"] or {})
        cells = [precision, engine.get("of", "none"), f"{engine['engine']['seconds']:.0f}" if engine else "-"]
        if found and found["box_px"]:
            cells.append(f"{found['matched']} of {found['detections']}, {found['unmatched']} without a partner")
            names = ("box_px", "score", "sigma_relative")
            cells += [f"{found[k]['median']:.2g} (max {found[k]['max']:.2g})" for k in names]
        else:
            cells += ["-"] * 4
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| what | ms an image | fp16 engine is faster by |", "|---|---|---|"]
    rows = {f"TensorRT {p}": (report[p]["bench"] or {}).get("graph", {}).get("infer_ms") for p in PRECISIONS}
    rows |= {name: value.get("ms") for name, value in report["torch"].items() if isinstance(value, dict)}
    fast = rows["TensorRT fp16"]
    lines += [f"| {what} | {ms:.3f} | {ms / fast if fast else float('nan'):.1f} |" for what, ms in rows.items() if ms]
    lines += ["", "| goal, fp16 engine | value | wanted |", "|---|---|---|"]
    for name, entry in report["goals"].items():
        value = "-" if entry["value"] is None else f"{entry['value']:.3f}"
        lines.append(f"| {name.replace('_', ' ')} | {value} | {entry['goal']} |")
    failed = [f"{name} ({step['status']})" for name, step in report["steps"].items() if step["status"] != "0"]
    return "\n".join([*lines, "", f"failed or left out: {', '.join(failed) or 'nothing'}"])


def _json(path: Path) -> Any:
    """A document, or what comes after the progress lines in a log; ``None`` when there is none."""
    try:
        text = path.read_text()
        return json.JSONDecoder().raw_decode(text[text.index("{") :])[0]
    except (OSError, ValueError):
        return None


def main() -> None:
    """Write and print."""
    prepared, results = Path(sys.argv[1]), Path(sys.argv[2])
    report = gather(prepared, results)
    temporary = results / "report.json.new"
    temporary.write_text(json.dumps(report, indent=2))
    temporary.replace(results / "report.json")
    print(tables(report))


if __name__ == "__main__":
    main()
