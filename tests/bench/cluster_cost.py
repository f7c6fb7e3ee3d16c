"""What the sigma of clusters costs: the same weights exported under both rules, run in turns on ONNX Runtime's CPU.

CPU seconds of one thread are counted, not the clock, so a machine that is busy with other work does less harm.

Run: python tests/bench/cluster_cost.py model.pt [--frames FRAMES] [--calls 400]
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime

from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.backends.providers import CPU, session_settings
from ptedge.detector.config import SIGMA_RULES
from ptedge.export.network_inputs import spread_frames
from ptedge.export.to_onnx import model_to_onnx
from ptedge.graph_contract import IMAGES

WARM_UP = 10  # calls of each
DRAWS = 2000  # of the interval


def main() -> None:
    """Export, run in turns, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--frames", help="FRAMES to run on; noise without")
    parser.add_argument("--calls", type=int, default=400, help="of each graph")
    options = parser.parse_args()
    checkpoint = load_checkpoint(options.checkpoint)
    size = checkpoint.config.input_size
    images = np.random.default_rng(0).integers(0, 256, (16, 3, *size), dtype=np.uint8)
    if options.frames is not None:
        images = spread_frames(options.frames, size, 16)
    sessions = {}
    for rule in SIGMA_RULES:
        model = model_to_onnx(replace(checkpoint, config=replace(checkpoint.config, sigma_rule=rule)).build(), size, 1)
        settings = session_settings()
        settings.intra_op_num_threads = settings.inter_op_num_threads = 1
        sessions[rule] = onnxruntime.InferenceSession(model, settings, providers=[CPU])
        print(f"{rule}: {len(onnx.load_from_string(model).graph.node)} operators, {len(model)} bytes", flush=True)
    seconds: dict[str, list[float]] = {rule: [] for rule in sessions}
    for call in range(WARM_UP + options.calls):
        image = images[call % len(images)][None]
        for rule in sorted(sessions, reverse=bool(call % 2)):
            began = time.process_time()
            sessions[rule].run(None, {IMAGES: image})
            if call >= WARM_UP:
                seconds[rule].append(time.process_time() - began)
    for rule, values in seconds.items():
        print(f"{rule}: {1e3 * statistics.median(values):.2f} ms of one thread in the median")
    ratios = [c / o for c, o in zip(seconds["cluster"], seconds["own"], strict=True)]
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(ratios, k=len(ratios))) for _ in range(DRAWS))
    low, high = medians[round(0.025 * DRAWS)], medians[round(0.975 * DRAWS)]
    print(f"cluster over own, call by call: {statistics.median(ratios):.3f} (95 % of draws {low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()
