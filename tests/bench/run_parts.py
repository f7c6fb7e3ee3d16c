"""Where the processor's time of a frame goes in ``ptedge run``, stage by stage, beside the bare session. A script.

    python tests/bench/run_parts.py BUNDLE [--video FILE] [--frames 30] [--rounds 7]

Bare session, run and run with ``--quick-shrink`` take turns in one process. Counted are seconds of the processor, not
of the clock, so that other work on the machine hurts them less, and the model has one thread. Decoding has threads of
FFmpeg's own: they are what is left when all other parts are taken off. The ratio is what ``run`` reaches of the bare
session's rate where the processor is what there is too little of.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
from run_rate import make_video

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.frames.source import open_frames
from ptedge.graph_contract import IMAGES
from ptedge.runtime.counters import RunCounters, RunSource
from ptedge.runtime.pipeline import Pipeline, Rules
from ptedge.runtime.sinks.files import JsonlSink
from ptedge.runtime.slot import LoadedModel, ModelSlot

STAGES = {
    "_read": "reading",
    "_prepare": "preprocess",
    "_infer": "infer",
    "_finish": "postprocess",
    "_write": "writing",
}


def by_stage(parts: dict[str, float]) -> None:
    """Let every stage of a pipeline note its thread's seconds in ``parts``."""
    for name, part in STAGES.items():
        stage: Callable[..., None] = getattr(Pipeline, name)

        def counting(self: Pipeline, *given: int, stage: Callable[..., None] = stage, part: str = part) -> None:
            start = time.thread_time()
            stage(self, *given)
            parts[part] = time.thread_time() - start

        setattr(Pipeline, name, counting)


def run(predictor: BundlePredictor, video: str, frames: int, out: Path) -> None:
    """The pipeline of ``ptedge run VIDEO --save jsonl --loop --limit FRAMES``."""
    source = open_frames(video, loop=True, limit=frames)
    out.unlink(missing_ok=True)
    Pipeline(
        [source],
        ModelSlot(LoadedModel(predictor)),
        [JsonlSink(out)],
        RunCounters([RunSource("video", video, "video", source)]),
        Rules(),
        threading.Event(),
    ).run()


def milliseconds(work: Callable[[], object], frames: int) -> float:
    """Processor time of this process, ms a frame."""
    start = time.process_time()
    work()
    return 1e3 * (time.process_time() - start) / frames


def main() -> None:
    """Measure and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--video", help="720p; by default one is made")
    parser.add_argument("--frames", type=int, default=30, help="a turn")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    cv2.setNumThreads(1)  # as run sets it
    ways = {"run": False, "run --quick-shrink": True}
    models = {way: BundlePredictor(options.bundle, "cpu", 1, quick_shrink=quick) for way, quick in ways.items()}
    parts: dict[str, float] = {}
    by_stage(parts)
    taken: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as name:
        video = options.video or f"{name}/video.mp4"
        if not options.video:
            make_video(Path(video))
        model = models["run"]
        tensors = [model.preprocess([frame.image])[0] for frame in open_frames(video, limit=8)]

        def bare() -> None:
            for number in range(options.frames):
                model.runner.infer({IMAGES: tensors[number % len(tensors)]})

        bare()
        for _ in range(options.rounds):
            alone = milliseconds(bare, options.frames)
            for way, predictor in models.items():
                whole = milliseconds(
                    lambda p=predictor: run(p, video, options.frames, Path(name) / "out.jsonl"), options.frames
                )
                row = {part: 1e3 * seconds / options.frames for part, seconds in parts.items()}
                rest = whole - sum(row.values())
                taken[way].append({**row, "decoding": rest, "whole": whole, "ratio": alone / whole, "bare": alone})
    report: dict[str, Any] = {"frames": options.frames, "rounds": options.rounds}
    for way, rows in taken.items():
        report[way] = {key: round(statistics.median(row[key] for row in rows), 3) for key in rows[0]}
        report[way]["ratios"] = sorted(round(row["ratio"], 3) for row in rows)
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
