"""Memory of ``ptedge run``: resident size over a long run, which ought to stay flat.

Run: python tests/bench/run_memory.py BUNDLE [--frames 20000] [--sources 4] [--save jsonl,coco,csv] [--json FILE]
It makes its own video, which every source plays in a loop, and looks at the process from outside. *Flat* compares the
median of the last tenth with that of the second tenth; the first is the run getting going.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np

PAGE = os.sysconf("SC_PAGE_SIZE")


def make_video(path: Path, frames: int = 250) -> None:
    """A moving pattern, 640 x 360, 25 frames a second."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 25.0, (640, 360))
    base = np.random.default_rng(0).integers(0, 256, (23, 40, 3), np.uint8).repeat(16, 0).repeat(16, 1)[:360]
    for i in range(frames):
        writer.write(np.ascontiguousarray(np.roll(base, i * 3, axis=1)))
    writer.release()


def resident(process: int) -> int:
    """Bytes of a process in memory; 0 when it is gone."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text("ascii").split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def measure(command: list[str], seconds: float = 0.5) -> tuple[list[tuple[float, int]], dict[str, Any]]:
    """Run a command; (second, bytes) meanwhile, and its report."""
    with tempfile.TemporaryFile("w+") as stdout:
        process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.DEVNULL)
        start, seen = time.monotonic(), []
        while process.poll() is None:
            if size := resident(process.pid):
                seen.append((time.monotonic() - start, size))
            time.sleep(seconds)
        stdout.seek(0)
        return seen, json.loads(stdout.read())


def summarize(seen: list[tuple[float, int]]) -> dict[str, float]:
    """Megabytes early and late, their ratio, and the peak."""
    sizes = [size / 1e6 for _, size in seen]
    tenth = max(1, len(sizes) // 10)
    early, late = statistics.median(sizes[tenth : 2 * tenth] or sizes), statistics.median(sizes[-tenth:])
    return {
        "early_mb": round(early, 1),
        "late_mb": round(late, 1),
        "ratio": round(late / early, 4),
        "peak_mb": max(sizes),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle")
    parser.add_argument("--frames", type=int, default=20_000, help="of all sources together")
    parser.add_argument("--sources", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--save", default="jsonl,coco,csv,video")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    found = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_video(folder / "video.mp4")
        for count in options.sources:
            out = folder / f"out{count}"
            command = [sys.executable, "-m", "ptedge", "run", options.bundle, *[str(folder / "video.mp4")] * count]
            command += ["--loop", "--limit", str(options.frames // count), "--out", str(out), "--save", options.save]
            command += [
                "--collect",
                str(out / "field"),
                "--threads",
                str(options.threads),
                "--backend",
                "cpu",
                "--json",
            ]
            seen, report = measure(command)
            found.append({"sources": count, "frames": report["frames"], "fps": report["fps"], **summarize(seen)})
    print("| sources | frames | frames/s | early, MB | late, MB | late / early | peak, MB |\n" + "|---" * 7 + "|")
    for f in found:
        numbers = f"{f['early_mb']:.1f} | {f['late_mb']:.1f} | {f['ratio']:.3f} | {f['peak_mb']:.1f}"
        print(f"| {f['sources']} | {f['frames']} | {f['fps']:.1f} | {numbers} |")
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
