"""Memory of ``ptedge run``: peak resident size on a short and a long source, which ought to be the same.

Run: python tests/bench/run_memory.py BUNDLE [--frames 200 2000] [--save jsonl,coco,csv,video]
It generates the videos itself. The long peak may exceed the short one by a few per cent, not by a multiple.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import cv2
import numpy as np


def make_video(path: Path, frames: int) -> None:
    """A moving pattern, 640 x 360, 25 frames a second."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 25.0, (640, 360))
    base = np.random.default_rng(0).integers(0, 256, (23, 40, 3), np.uint8).repeat(16, 0).repeat(16, 1)[:360]
    for i in range(frames):
        writer.write(np.ascontiguousarray(np.roll(base, i * 3, axis=1)))
    writer.release()


def peak_megabytes(command: list[str]) -> tuple[float, int]:
    """Peak resident size of a command, and the frames it did; measured in a process of its own."""
    code = (
        "import json, resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE, check=True)\n"
        "peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss\n"
        "print(json.dumps([peak, json.loads(done.stdout)['frames']]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *command], stdout=subprocess.PIPE, check=True)
    peak, frames = json.loads(done.stdout)
    return peak / 1024, frames  # Linux counts in KiB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle")
    parser.add_argument("--frames", type=int, nargs=2, default=(200, 2000), metavar=("SHORT", "LONG"))
    parser.add_argument("--save", default="jsonl,coco,csv,video")
    options = parser.parse_args()
    peaks = []
    with tempfile.TemporaryDirectory() as folder:
        for count in options.frames:
            video, out = Path(folder) / f"{count}.mp4", Path(folder) / f"out{count}"
            make_video(video, count)
            command = [sys.executable, "-m", "ptedge", "run", options.bundle, str(video), "--out", str(out)]
            command += ["--save", options.save, "--collect", str(out / "field"), "--json"]
            peak, frames = peak_megabytes(command)
            print(f"{frames} frames: peak {peak:.1f} MB")
            peaks.append(peak)
    print(f"ratio: {peaks[1] / peaks[0]:.3f}")


if __name__ == "__main__":
    main()
