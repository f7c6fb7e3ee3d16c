"""What a live page shows in tests: two sources, one of them ended, and results with one box."""

from __future__ import annotations

import numpy as np
from pipeline_fakes import ONE

from ptedge.detections import Detections
from ptedge.frames.source import Frame
from ptedge.runtime.counters import RunCounters, RunSource
from ptedge.runtime.sinks.files import Result

MODEL = {
    "hash": "ab" * 32,
    "classes": ["car", 'a "b"\n\\'],
    "backend": "cpu",
    "reason": "asked for",
    "input_size": [64, 96],
    "precision": "fp32",
}
BOX = Detections(
    np.array([[20, 10, 60, 40]], np.float32),
    np.array([0.9], np.float32),
    np.array([0]),
    np.array([[4, 2, 4, 2]], np.float32),
    np.zeros(1, np.float32),
)


def a_page_result(index: int = 0, source: str | None = None, width: int = 120) -> Result:
    image = np.full((width * 2 // 3, width, 3), (30, 60, 200), np.uint8)
    return Result(Frame(image, index, None, "here", None), BOX, MODEL["classes"], 0.3, source)


def made_counters() -> RunCounters:
    counters = RunCounters(
        [RunSource("yard", "rtsp://***@cam/1", "video"), RunSource("<b>gate</b>", "gate.mp4", "video")]
    )
    counters.sources[0].read, counters.sources[0].frames, counters.sources[0].replaced = 12, 9, 3
    counters.sources[1].error, counters.sources[1].ended = "the cable is cut", True
    counters.detected(ONE, MODEL["classes"], 0.02)
    counters.infer.add(0.004)
    return counters
