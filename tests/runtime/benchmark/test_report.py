"""The report of ptedge benchmark: numbers by hand, and warnings."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from made_report import assert_fits_schema, schema
from tiny_model import tiny_bundle

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.runtime.benchmark.machine import environment
from ptedge.runtime.benchmark.measure import STAGES, Round, Subject
from ptedge.runtime.benchmark.report import benchmark_report, run_entry


def rounds(*medians: float) -> list[Round]:
    """Of 10 calls each that take so many seconds, nine tenths of it in infer."""
    found = []
    for seconds in medians:
        row = [0.0, 0.9 * seconds, *[float("nan")] * 5, 0.1 * seconds, seconds]
        found.append(Round(10 * seconds, 5 * seconds, np.array([row] * 10), 20, 10))
    return found


def measured(folder: Path, name: str, *medians: float) -> Subject:
    predictor = BundlePredictor(tiny_bundle(folder).path, "cpu", 1)
    return Subject(name, predictor, [], rounds=rounds(*medians))


def test_run_entry__by_hand(tmp_path: Path) -> None:
    first, second = measured(tmp_path / "a", "a", *[0.01] * 6), measured(tmp_path / "b", "b", *[0.02] * 6)
    run = run_entry(second, first)
    assert run["throughput"] == {"images_per_second": 50, "calls_per_second": 50, "engine_images_per_second": None}
    assert run["latency_ms"]["infer"]["median"] == 18 and run["ms_per_image"] == 20 and run["calls"] == 60
    assert run["detections_per_image"] == 2 and run["cpu_cores"] == 0.5
    assert run["per_round"][0]["median_ms"] == {"preprocess": 0, "infer": 18, "postprocess": 2, "end_to_end": 20}
    assert set(run["absent"]) == {"h2d", "compute", "d2h", "enqueue", "latency"}
    assert run["unstable"] == run["warnings"] == []
    against = run["against_first"]
    assert against["name"] == "a" and against["ms_per_image"]["ratio"] == 2
    assert against["images_per_second"] == {"ratio": 0.5, "low": 0.5, "high": 0.5, "differs": True}
    assert run_entry(first, first)["against_first"] is None


def test_run_entry__warns_of_few_calls_unsteady_ones_and_drift(tmp_path: Path) -> None:
    few = measured(tmp_path / "a", "a", 0.01)
    assert "only 10 calls" in run_entry(few, few)["warnings"][0]
    unsteady = measured(tmp_path / "b", "b", 0.01, 0.02, 0.01, 0.02, 0.01, 0.02)
    run = run_entry(unsteady, unsteady)
    # mean 15, standard deviation 5
    assert run["unstable"] == ["infer", "postprocess", "end_to_end"] and "end_to_end by 33%" in run["warnings"][0]
    warming = measured(tmp_path / "c", "c", *[0.01] * 3, *[0.0105] * 3, *[0.011] * 3)
    assert run_entry(warming, warming)["warnings"] == [
        "the last rounds are 10% slower than the first: heat, clocks or other load"
    ]


def test_run_entry__a_stage_that_hardly_counts_is_not_unstable(tmp_path: Path) -> None:
    one = measured(tmp_path / "a", "a", *[0.01] * 6)
    for r in one.rounds:
        r.times[:, 0] = [1e-6, 1e-5] * 5
    assert run_entry(one, one)["latency_ms"]["preprocess"]["cv"] > 0.1
    assert run_entry(one, one)["unstable"] == []


def test_benchmark_report__warns_of_throttling_and_load(tmp_path: Path) -> None:
    one = measured(tmp_path / "a", "a", *[0.01] * 6)
    around = environment(None) | {"load": 7.0, "cores_usable": 4}
    readings = [
        {"at": 0.0, "over_current_events": 1, "gpu_throttle": []},
        {"at": 1.0, "over_current_events": 3, "gpu_throttle": ["power cap"]},
    ]
    settings = {"seconds": 1.0, "warm_up": 0.0, "frames": {"source": "noise", "count": 1, "size": [720, 1280]}}
    report = benchmark_report([one], settings, around, readings, [])
    assert report["warnings"] == [
        "the GPU was slowed down meanwhile: power cap",
        "the board throttled 2 times for too much current",
        "load was 7.0 on 4 cores before anything was measured",
    ]
    assert_fits_schema(json.loads(json.dumps(report)))


def test_benchmark__schema_names_every_stage() -> None:
    run = schema()["$defs"]["run"]["properties"]
    assert list(run["latency_ms"]["properties"]) == run["unstable"]["items"]["enum"] == list(STAGES)
