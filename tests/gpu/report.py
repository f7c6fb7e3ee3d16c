"""Put together what the steps of tests/gpu/run.sh left: OUT/report.json, and tables on stdout."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from ptedge.boxes import box_iou

PRECISIONS = ("fp32", "fp16", "int8")


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


def gather(out: Path, names: list[str]) -> dict[str, Any]:
    """All parts that are there."""
    report: dict[str, Any] = {"students": {}}
    for name in names:
        student: dict[str, Any] = {"torch": _json(out / f"{name}-torch-bench.json")}
        for precision in PRECISIONS:
            answer, reference = out / f"{name}-{precision}.npz", out / f"{name}-torch.npz"
            part: dict[str, Any] = {"bench": _json(out / f"{name}-{precision}-bench.json")}
            part["eval"] = _json(out / f"steps/eval-{name}-{precision}.log")
            part["agreement"] = agreement(reference, answer) if answer.exists() and reference.exists() else None
            student[precision] = part
        report["students"][name] = student
    report["soak"] = _json(out / "soak.json")
    rows = [line.split("\t") for line in (out / "steps.tsv").read_text().splitlines()]
    report["steps"] = {name: {"status": int(status), "seconds": int(seconds)} for name, status, seconds in rows}
    return report


def tables(report: dict[str, Any]) -> str:
    """Markdown."""
    lines = [
        "| student | precision | AP50 | within 1 sigma | matched | box px | score | sigma |",
        "|---|---|---|---|---|---|---|---|",
    ]
    speed = ["| student | what | ms an image | fp16 engine is faster by |", "|---|---|---|---|"]
    for name, student in report["students"].items():
        for precision in PRECISIONS:
            part = student[precision]
            found, score = part["agreement"], part["eval"]
            cells = [name, precision]
            cells += [f"{score['AP50']:.4f}", f"{score['sigma']['coverage_1']:.3f}"] if score else ["-", "-"]
            if found and found["box_px"]:
                cells.append(f"{found['matched']} of {found['detections']}, {found['unmatched']} without a partner")
                cells += [
                    f"{found[k]['median']:.2g} (max {found[k]['max']:.2g})"
                    for k in ("box_px", "score", "sigma_relative")
                ]
            else:
                cells += ["-"] * 4
            lines.append("| " + " | ".join(cells) + " |")
        fast = (student["fp16"]["bench"] or {}).get("graph", {}).get("infer_ms")
        rows = {f"TensorRT {p}": (student[p]["bench"] or {}).get("graph", {}).get("infer_ms") for p in PRECISIONS}
        rows |= {k: v.get("ms") for k, v in (student["torch"] or {}).items() if isinstance(v, dict)}
        for what, ms in rows.items():
            if ms is not None:
                speed.append(
                    f"| {name} | {what} | {ms:.3f} | {ms / fast:.1f} |"
                    if fast
                    else f"| {name} | {what} | {ms:.3f} | - |"
                )
    return "\n".join([*lines, "", *speed])


def _json(path: Path) -> Any:
    """A document, or what comes after the progress lines in a log; ``None`` when there is none."""
    try:
        text = path.read_text()
        return json.loads(text[text.index("{") :])
    except (OSError, ValueError):
        return None


def main() -> None:
    """Write and print."""
    out, names = Path(sys.argv[1]), sys.argv[2:]
    report = gather(out, names)
    (out / "report.json").write_text(json.dumps(report, indent=2))
    print(tables(report))
    failed = [name for name, step in report["steps"].items() if step["status"] != 0]
    if failed:
        print(f"\nfailed steps: {', '.join(failed)}")


if __name__ == "__main__":
    main()
