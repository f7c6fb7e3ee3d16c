"""A benchmark's report: plain values, as ``benchmark.schema.json`` describes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .measure import STAGES, Subject
from .stats import paired_ratio, statistics, trend

SCHEMA = "ptedge.benchmark/1"
UNSTABLE = 0.1  # coefficient of variation from which a stage deserves a warning...
MATTERS = 0.01  # ...if its standard deviation is this share of a whole call
DRIFT = 0.05  # change from the first to the last rounds that deserves one
FEW_CALLS = 20
INCLUDED = {
    "preprocess": "letterbox of frames in memory to the network input, on the CPU",
    "infer": "the call as the program waits for it: copies to and from the device and, on TensorRT, to and from "
    "page-locked memory",
    "h2d": "copy to the device, by events on its stream",
    "compute": "the engine on the device, by events on its stream",
    "d2h": "copy from the device, by events on its stream",
    "enqueue": "what the CPU needs to launch the engine",
    "latency": "h2d + compute + d2h",
    "postprocess": "rows to detections in image pixels, on the CPU",
    "end_to_end": "preprocess, infer and postprocess; decoding, drawing and writing are not included",
    "throughput": "images by the time of all turns; one call after the other unless slots is above 1",
    "engine_images_per_second": "launches of the engine one behind the other, with nothing copied",
}
UNMEASURED = "ONNX Runtime times its run as a whole: see infer"


def benchmark_report(
    subjects: Sequence[Subject],
    settings: Mapping[str, Any],
    environment: Mapping[str, Any],
    readings: Sequence[Mapping[str, Any]],
    skipped: Sequence[Mapping[str, str]],
) -> dict[str, Any]:
    """Everything measured.

    Args:
        subjects: measured, in the user's order; the first is what others are compared with.
        settings: ``seconds``, ``warm_up``, ``frames``.
        environment: of :func:`ptedge.runtime.benchmark.machine.environment`.
        readings: of :func:`ptedge.runtime.benchmark.machine.reading`, in time's order.
        skipped: ``bundle``, ``backend`` and ``why`` of what could not be measured.
    """
    return {
        "schema": SCHEMA,
        "created": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        **settings,
        "rounds": len(subjects[0].rounds),
        "included": INCLUDED,
        "environment": dict(environment),
        "readings": list(readings),
        "runs": [run_entry(subject, subjects[0]) for subject in subjects],
        "skipped": list(skipped),
        "warnings": _machine_warnings(environment, readings),
    }


def run_entry(subject: Subject, first: Subject) -> dict[str, Any]:
    """One of the report's ``runs``.

    Args:
        subject: measured.
        first: what it is compared with.
    """
    predictor, runner = subject.predictor, subject.predictor.runner
    times = np.concatenate([r.times for r in subject.rounds]) * 1000  # [calls, stages] in ms
    latency = {name: _stage(times[:, i]) for i, name in enumerate(STAGES)}
    seconds, images = sum(r.seconds for r in subject.rounds), sum(r.images for r in subject.rounds)
    unstable = _unstable(latency)
    engine = getattr(runner, "name", None)
    return {
        "name": subject.name,
        "model_hash": predictor.model_hash,
        "precision": predictor.manifest.precision,
        "input_size": list(predictor.input_size),
        "batch": predictor.batch,
        "backend": runner.backend,
        "reason": runner.reason,
        "engine": None if engine is None else Path(engine).name,
        "launch": getattr(runner, "graph", None),
        "memory": getattr(runner, "memory", None),
        "slots": subject.slots,
        "load_seconds": round(subject.load_seconds, 3),
        "warm_up_calls": subject.warm_calls,
        "calls": len(times),
        "seconds": round(seconds, 3),
        "throughput": {
            "images_per_second": _rounded(images / seconds),
            "calls_per_second": _rounded(len(times) / seconds),
            "engine_images_per_second": _rounded(subject.launch_rate and subject.launch_rate * predictor.batch),
        },
        "latency_ms": latency,
        "ms_per_image": _rounded(float(np.median(times[:, -1])) / predictor.batch),
        "detections_per_image": _rounded(sum(r.detections for r in subject.rounds) / images),
        "cpu_cores": _rounded(sum(r.busy for r in subject.rounds) / seconds),
        "per_round": _rounds(subject),
        "unstable": unstable,
        "absent": {name: UNMEASURED for name, value in latency.items() if value is None},
        "warnings": _warnings(subject, latency, unstable, len(times)),
        "against_first": None if subject is first else _against(subject, first),
    }


def _stage(values: NDArray[np.float64]) -> dict[str, float] | None:
    return None if np.isnan(values).any() else statistics(values)


def _rounds(subject: Subject) -> list[dict[str, Any]]:
    """What comparisons need of each round."""
    return [
        {
            "calls": len(r.times),
            "seconds": round(r.seconds, 4),
            "images_per_second": _rounded(r.images / r.seconds),
            "median_ms": {
                name: _rounded(float(np.median(r.times[:, i])) * 1000)
                for i, name in enumerate(STAGES)
                if not np.isnan(r.times[:, i]).any()
            },
        }
        for r in subject.rounds
    ]


def _per_image(subject: Subject) -> list[float]:
    return [float(np.median(r.times[:, -1])) / subject.predictor.batch for r in subject.rounds]


def _against(subject: Subject, first: Subject) -> dict[str, Any]:
    rates = [[r.images / r.seconds for r in each.rounds] for each in (first, subject)]
    return {
        "name": first.name,
        "ms_per_image": paired_ratio(_per_image(first), _per_image(subject)).to_json(),
        "images_per_second": paired_ratio(rates[0], rates[1]).to_json(),
    }


def _unstable(latency: Mapping[str, Mapping[str, float] | None]) -> list[str]:
    whole = latency["end_to_end"]
    least = MATTERS * whole["mean"] if whole else 0.0
    return [name for name, v in latency.items() if v and v["cv"] > UNSTABLE and v["cv"] * v["mean"] >= least]


def _warnings(
    subject: Subject, latency: Mapping[str, Mapping[str, float] | None], unstable: Sequence[str], calls: int
) -> list[str]:
    found = []
    if calls < FEW_CALLS:
        found.append(f"only {calls} calls; percentiles mean little. Measure longer: --seconds")
    elif unstable:
        parts = ", ".join(f"{name} by {(latency[name] or {})['cv']:.0%}" for name in unstable)
        found.append(
            f"unstable: {parts} (standard deviation against mean). Other load, changing clocks or heat: compare "
            "medians, or measure on a quiet machine"
        )
    change = trend(_per_image(subject))
    if abs(change) > DRIFT:
        word = "slower" if change > 0 else "faster"
        found.append(f"the last rounds are {abs(change):.0%} {word} than the first: heat, clocks or other load")
    if subject.predictor.unconverged:
        found.append(f"suppression stopped before its fixpoint on {subject.predictor.unconverged} images")
    return found


def _machine_warnings(environment: Mapping[str, Any], readings: Sequence[Mapping[str, Any]]) -> list[str]:
    found = []
    reasons = sorted({reason for reading in readings for reason in reading.get("gpu_throttle", [])})
    if reasons:
        found.append(f"the GPU was slowed down meanwhile: {', '.join(reasons)}")
    events = [reading.get("over_current_events", 0) for reading in readings]
    if events and events[-1] > events[0]:
        found.append(f"the board throttled {events[-1] - events[0]} times for too much current")
    load, cores = environment.get("load"), environment.get("cores_usable")
    if load is not None and cores and load > cores / 2:
        found.append(f"load was {load} on {cores} cores before anything was measured")
    return found


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")
