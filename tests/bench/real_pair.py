"""The table of docs/results.md: source only, oracle, mean teacher and Probabilistic Teacher on a real pair.

    python tests/bench/real_pair.py ../shared/data/carla_to_road --out runs/real_pair --seeds 0 1 2

Everything runs through the ``ptedge`` command, so each row can be repeated by hand; finished steps are skipped, so the
script can be stopped and started again. DATA holds source/train.json, target/frames, target/val.json and
target/oracle.json. AP is always that of the last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

SETTINGS = Path("samples/carla_to_road")
# a mean teacher without uncertainty: hard labels above a score threshold, background from all that matches nothing
MEAN_TEACHER = [
    "pseudo.hard_labels=true",
    "pseudo.score_threshold=0.5",
    "pseudo.focal_cls=0",
    "pseudo.focal_box=0",
    "target.background=true",
    "optim.anchor_lr=0",
]
ROWS: dict[str, tuple[str, str, list[str]]] = {  # row -> (kind, TOML, --set)
    "source only, weak": ("source", "train.toml", ["view=weak"]),
    "source only, strong": ("source", "train.toml", []),
    "oracle": ("oracle", "oracle.toml", []),
    "mean teacher, source-free": ("source_free", "source_free.toml", MEAN_TEACHER),
    "PT source-free": ("source_free", "source_free.toml", []),
    "mean teacher, with source": ("adapt", "adapt.toml", MEAN_TEACHER),
    "PT with source": ("adapt", "adapt.toml", []),
}


def run(*arguments: str) -> str:
    """Run one ptedge command; its stdout."""
    command = [sys.executable, "-m", "ptedge", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def measure(data: Path, out: Path, row: str, seed: int) -> dict[str, Any]:
    """Train or adapt one row with one seed, export it, and evaluate checkpoint and bundle."""
    kind, toml, overrides = ROWS[row]
    folder = out / f"{row.replace(',', '').replace(' ', '_')}_{seed}"
    result = folder / "result.json"
    if result.exists():
        return dict(json.loads(result.read_text()))
    model = folder / "model.pt"
    if not (folder / "summary.json").exists():
        common = ["--config", str(SETTINGS / toml), "--out", str(folder), "--set", f"seed={seed}"]
        common += [part for override in overrides for part in ("--set", override)]
        start = str(out / f"source_only_strong_{seed}" / "model.pt")
        frames, source = str(data / "target/frames"), str(data / "source/train.json")
        if kind in ("source", "oracle"):
            run("train", source if kind == "source" else str(data / "target/oracle.json"), *common)
        elif kind == "adapt":
            run("adapt", start, "--target", frames, "--source", source, *common)
        else:
            run("adapt", start, "--target", frames, "--source-free", *common)
    bundle = folder / "bundle"
    if not bundle.exists():
        run("export", str(model), "--out", str(bundle))
    val = str(data / "target/val.json")
    document = {
        "row": row,
        "seed": seed,
        "seconds": json.loads((folder / "summary.json").read_text())["seconds"],
        "checkpoint": json.loads(run("eval", str(model), val, "--json")),
        "bundle": json.loads(run("eval", str(bundle), val, "--json")),
    }
    result.write_text(json.dumps(document, indent=2))
    return document


def spread(values: list[float], digits: int = 3) -> str:
    """Median and range."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"


def table(results: list[dict[str, Any]]) -> str:
    """Markdown: median and range over seeds."""
    lines = [
        "| row | seeds | AP50 | AP50, bundle | AP75 | AP | within 1 sigma | within 2 sigma | seconds |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        of_row = [r for r in results if r["row"] == row]
        if not of_row:
            continue
        points = [r["checkpoint"] for r in of_row]
        cells = [
            row,
            str(len(of_row)),
            spread([p["AP50"] for p in points]),
            spread([r["bundle"]["AP50"] for r in of_row]),
            spread([p["AP75"] for p in points]),
            spread([p["AP"] for p in points]),
            spread([p["sigma"]["coverage_1"] for p in points], 2),
            spread([p["sigma"]["coverage_2"] for p in points], 2),
            spread([r["seconds"] for r in of_row], 0),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("runs/real_pair"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rows", nargs="+", choices=list(ROWS), default=list(ROWS))
    options = parser.parse_args()
    results = []
    for seed in options.seeds:
        # every adaptation starts from the strong source model of its seed
        for row in sorted(options.rows, key=lambda r: r != "source only, strong"):
            results.append(measure(options.data, options.out, row, seed))
            print(f"{row}, seed {seed}: AP50 {results[-1]['checkpoint']['AP50']:.3f}", file=sys.stderr, flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
