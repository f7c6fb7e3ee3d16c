"""How fast a bundle runs on this machine: latency of each stage and throughput, with what the numbers include."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge import __version__
from ptedge.runner import BundlePredictor

UNSTABLE = 0.1  # coefficient of variation from which the numbers deserve a warning
NOISE_SIZE = (720, 1280)  # height, width of the frame where the user names none
INCLUDED = {
    "preprocess": "letterbox of frames in memory to the network input",
    "infer": "ONNX Runtime's run, copies to and from the device included",
    "postprocess": "rows to detections in image pixels",
    "end_to_end": "the three above; decoding, drawing and writing are not included",
}


def benchmark(
    predictor: BundlePredictor,
    images: list[NDArray[np.uint8]],
    seconds: float,
    warm_up: float,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Any]:
    """Time the stages of a bundle, one call of the graph after the other.

    Args:
        predictor: opened bundle.
        images: frames, used in turn; each [H, W, 3] uint8 RGB.
        seconds: time to measure for, at least one call.
        warm_up: seconds of calls before that are not counted.
        clock: seconds, increasing.

    Returns:
        The report that ``ptedge benchmark --json`` prints: latencies in milliseconds a call of ``batch`` images.
    """
    batch = predictor.batch
    turns = [
        [images[(start + i) % len(images)] for i in range(batch)] for start in range(0, len(images) * batch, batch)
    ]
    times: list[tuple[float, float, float, float]] = []
    warm_calls, call = 0, 0
    start = clock()
    measuring = start
    while not times or clock() - measuring < seconds:
        group = turns[call % len(turns)]
        call += 1
        t0 = clock()
        array, letterboxes = predictor.preprocess(group)
        t1 = clock()
        outputs = predictor.runner.infer({"images": array})
        t2 = clock()
        predictor.postprocess(outputs, letterboxes)
        t3 = clock()
        if t0 - start < warm_up or warm_calls == 0:
            warm_calls += 1
            measuring = t3
            continue
        times.append((t1 - t0, t2 - t1, t3 - t2, t3 - t0))
    elapsed = clock() - measuring
    milliseconds = np.array(times) * 1000  # [calls, 4]
    latency = {name: _statistics(milliseconds[:, i]) for i, name in enumerate(INCLUDED)}
    variation = latency["end_to_end"]["cv"]
    return {
        "calls": len(times),
        "batch": batch,
        "seconds": round(elapsed, 3),
        "warm_up": {"seconds": warm_up, "calls": warm_calls},
        "throughput": {"images_per_second": round(len(times) * batch / elapsed, 3)},
        "latency_ms": latency,
        "warning": _warning(variation, len(times)),
        "included": INCLUDED,
        "frames": {"count": len(images), "size": list(images[0].shape[:2])},
        "input_size": list(predictor.input_size),
        "precision": predictor.manifest.precision,
        "model_hash": predictor.model_hash,
        "backend": predictor.runner.backend,
        "reason": predictor.runner.reason,
    }


def environment(threads: int | None) -> dict[str, Any]:
    """What the numbers of a benchmark depend on besides the model."""
    import cv2
    import onnxruntime

    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "cores_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "threads": threads if threads is not None else "default of ONNX Runtime",
        "system": platform.platform(),
        "python": platform.python_version(),
        "ptedge": __version__,
        "onnxruntime": onnxruntime.__version__,
        "opencv": cv2.__version__,
        "numpy": np.__version__,
    }


def noise(seed: int = 0) -> NDArray[np.uint8]:
    """A frame of random blocks, for a benchmark without footage."""
    small = np.random.default_rng(seed).integers(0, 256, (NOISE_SIZE[0] // 16, NOISE_SIZE[1] // 16, 3), np.uint8)
    return np.ascontiguousarray(small.repeat(16, axis=0).repeat(16, axis=1))


def table(report: dict[str, Any]) -> str:
    """The report for a terminal."""
    columns = ("min", "mean", "median", "p90", "p95", "p99", "max")
    lines = [f"{'ms a call':<12}" + "".join(f"{name:>10}" for name in columns)]
    for stage, values in report["latency_ms"].items():
        lines.append(f"{stage:<12}" + "".join(f"{values[name]:>10.2f}" for name in columns))
    height, width = report["input_size"]
    env = report["environment"]
    lines += [
        f"throughput  {report['throughput']['images_per_second']:.2f} images/s: {report['calls']} calls of "
        f"{report['batch']} in {report['seconds']:.1f} s, after {report['warm_up']['calls']} warm-up calls",
        f"model       {width}x{height} {report['precision']} on {report['backend']} ({report['reason']})",
        f"machine     {env['cpu']}, {env['cores_usable']} of {env['cores']} cores, load {env['load']}, "
        f"threads: {env['threads']}, onnxruntime {env['onnxruntime']}",
        f"included    {report['included']['end_to_end']}",
    ]
    if report["warning"]:
        lines.append(f"warning     {report['warning']}")
    return "\n".join(lines)


def cpu_model() -> str:
    """The processor's name."""
    try:
        for line in Path("/proc/cpuinfo").read_text("utf-8", "replace").splitlines():
            if line.lower().startswith(("model name", "hardware")):
                return line.partition(":")[2].strip()
        return Path("/proc/device-tree/model").read_text("utf-8", "replace").strip("\0\n ")
    except OSError:
        return platform.processor() or platform.machine()


def _statistics(values: NDArray[np.float64]) -> dict[str, float]:
    mean = float(values.mean())
    p50, p90, p95, p99 = (float(v) for v in np.percentile(values, (50, 90, 95, 99)))
    named = {
        "min": float(values.min()),
        "mean": mean,
        "median": p50,
        "p90": p90,
        "p95": p95,
        "p99": p99,
        "max": float(values.max()),
        "cv": float(values.std() / mean) if mean > 0 else 0.0,
    }
    return {name: round(value, 4) for name, value in named.items()}


def _warning(variation: float, calls: int) -> str | None:
    if calls < 20:
        return f"only {calls} calls; percentiles mean little. Measure longer: --seconds"
    if variation > UNSTABLE:
        return (
            f"latency varies by {variation:.0%} (standard deviation against mean): other load, changing clocks "
            "or heat. Compare medians, or measure on a quiet machine"
        )
    return None
