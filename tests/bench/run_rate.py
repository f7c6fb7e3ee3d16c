"""``ptedge run`` on a 720p video against the bare session on ready-made tensors, in the same minutes.

Run: python tests/bench/run_rate.py BUNDLE [--video FILE] [--seconds 10] [--rounds 3] [--threads 2] [--json FILE]

Bare session and whole run take turns, so that a change of the machine's speed meets both. Reported: the rate of each
and their ratio; the latency that the run adds to a frame beyond the model (a paced video in realtime: age of a result
minus the time of its inference); and the time from starting the command to the first line of detections.
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
import onnxruntime

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.frames.source import open_frames


def make_video(path: Path, frames: int = 250) -> None:
    """A moving pattern with some noise, 1280 x 720, 25 frames a second."""
    writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 25.0, (1280, 720))
    chance = np.random.default_rng(0)
    base = cv2.resize(chance.integers(0, 256, (18, 32, 3), np.uint8), (1280, 720), interpolation=cv2.INTER_CUBIC)
    for i in range(frames):
        noise = chance.integers(0, 12, (90, 160, 1), np.uint8).repeat(8, 0).repeat(8, 1)
        writer.write(cv2.add(np.ascontiguousarray(np.roll(base, i * 4, axis=1)), noise.repeat(3, 2)))
    writer.release()


def bare(model: Path, tensors: list[np.ndarray], threads: int, seconds: float) -> float:
    """Frames a second of the session alone, in this process."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    for tensor in tensors[:3]:
        session.run(None, {"images": tensor})
    start, count = time.perf_counter(), 0
    while time.perf_counter() - start < seconds:
        session.run(None, {"images": tensors[count % len(tensors)]})
        count += 1
    return count * len(tensors[0]) / (time.perf_counter() - start)


def run(bundle: str, video: Path, out: Path, threads: int, *more: str) -> dict[str, Any]:
    """A run in its own process; its report, with the seconds to the first line as ``first``."""
    command = [
        sys.executable,
        "-m",
        "ptedge",
        "run",
        bundle,
        str(video),
        "--out",
        str(out),
        "--save",
        "jsonl",
        "--json",
    ]
    command += ["--backend", "cpu", "--threads", str(threads), *more]
    (out / "detections.jsonl").unlink(missing_ok=True)
    start, first = time.monotonic(), None
    with tempfile.TemporaryFile("w+") as stdout:
        process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            path = out / "detections.jsonl"
            if first is None and path.exists() and path.stat().st_size:
                first = time.monotonic() - start
            time.sleep(0.01 if first is None else 0.2)
        stdout.seek(0)
        return {**json.loads(stdout.read()), "first": first}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle")
    parser.add_argument("--video", type=Path, help="720p; by default one is made")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each measurement")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        video = options.video or folder / "video.mp4"
        if options.video is None:
            make_video(video)
        predictor = BundlePredictor(Path(options.bundle), "cpu", options.threads)
        model = Path(options.bundle) / "model.onnx" if Path(options.bundle).is_dir() else Path(options.bundle)
        images = [frame.image for frame in open_frames(str(video), limit=16)]
        tensors = [predictor.preprocess([image] * predictor.batch)[0] for image in images]
        predictor.close()
        rounds = []
        for _ in range(options.rounds):
            before = bare(model, tensors, options.threads, options.seconds / 2)
            count = max(20, round(before * options.seconds))
            report = run(options.bundle, video, folder / "out", options.threads, "--loop", "--limit", str(count))
            after = bare(model, tensors, options.threads, options.seconds / 2)
            alone = 2 / (1 / before + 1 / after)
            rounds.append(
                {"bare": alone, "run": report["fps"], "ratio": report["fps"] / alone, "first": report["first"]}
            )
        # realtime at a third of the rate: nothing queues, so what is left beside the model is the run's own latency
        calm = max(1.0, rounds[-1]["bare"] / 3)
        limit = max(20, round(calm * options.seconds))
        paced = ("--realtime", "--rate", f"{calm:.2f}", "--loop", "--limit", str(limit))
        report = run(options.bundle, video, folder / "out", options.threads, *paced)
        added = report["age_ms"]["p50"] - report["infer_ms"]["p50"]
    ratios = [r["ratio"] for r in rounds]
    result = {
        "rounds": rounds,
        "ratio_median": statistics.median(ratios),
        "added_ms": added,
        "age_ms": report["age_ms"],
        "infer_ms": report["infer_ms"],
        "first_s": min(r["first"] for r in rounds),
        "threads": options.threads,
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
    }
    print(
        "| round | bare session, frames/s | run, frames/s | ratio | start to first detection, s |\n" + "|---" * 5 + "|"
    )
    for i, r in enumerate(rounds):
        print(f"| {i + 1} | {r['bare']:.2f} | {r['run']:.2f} | {r['ratio']:.3f} | {r['first']:.2f} |")
    print(
        f"\nmedian ratio {result['ratio_median']:.3f}; "
        f"added latency {added:.1f} ms a frame (medians, realtime at {calm:.1f} frames/s)"
    )
    if options.json:
        options.json.write_text(json.dumps(result, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
