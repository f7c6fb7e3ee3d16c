"""What two graphs with NumPy between them cost against the one graph, on ONNX Runtime's CPU.

    python tests/bench/split_stages.py ONE_BUNDLE SPLIT_BUNDLE FRAMES [--calls 60]

Both answer the same frames in turns, one thread. Processor time is counted, so that other load on the machine meets
neither more than the other. Prints medians, their ratio, and NumPy's part of the two stages.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.frames.source import open_frames
from ptedge.graph_contract import IMAGES


def milliseconds(work: Any) -> float:
    """Processor time of this process that a call takes."""
    start = time.process_time()
    work()
    return (time.process_time() - start) * 1000


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("one", type=Path)
    parser.add_argument("split", type=Path)
    parser.add_argument("frames")
    parser.add_argument("--calls", type=int, default=60)
    options = parser.parse_args()
    one, split = (BundlePredictor(path, "cpu", 1) for path in (options.one, options.split))
    stages: Any = split.runner
    first, second = stages.stages
    inputs = [{IMAGES: one.preprocess([frame.image])[0]} for frame in open_frames(options.frames, limit=32)]
    graph, halves, dense = [], [], []
    for call in range(options.calls + 3):
        feeds = inputs[call % len(inputs)]
        middle = first.infer(feeds)
        given = stages.second_inputs(middle)[0]
        turns = [
            (graph, lambda feeds=feeds: one.runner.infer(feeds)),
            (halves, lambda feeds=feeds: stages.infer(feeds)),
            (dense, lambda feeds=feeds, given=given: (first.infer(feeds), second.infer(given))),
        ]
        for times, work in turns if call % 2 else reversed(turns):
            times.append(milliseconds(work))
    medians = [statistics.median(times[3:]) for times in (graph, halves, dense)]
    ratios = sorted(b / a for a, b in zip(graph[3:], halves[3:], strict=True))
    print(f"one graph {medians[0]:.1f} ms, two stages {medians[1]:.1f} ms of processor time")
    print(f"two stages against one graph: {statistics.median(ratios):.3f}, half of the calls within", end=" ")
    print(f"{ratios[len(ratios) // 4]:.3f} and {ratios[-len(ratios) // 4]:.3f}")
    print(f"NumPy's part of the two stages: {1 - medians[2] / medians[1]:.1%}, {medians[1] - medians[2]:.1f} ms")


if __name__ == "__main__":
    main()
