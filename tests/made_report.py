"""Reports of ``ptedge benchmark`` for tests, and the published schema they are held to."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator

from ptedge.runtime.benchmark.measure import STAGES


def schema() -> dict[str, Any]:
    """``benchmark.schema.json``, as it is installed."""
    text = resources.files("ptedge.runtime.benchmark").joinpath("benchmark.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    Draft202012Validator.check_schema(found)
    return found


def assert_fits_schema(report: Any) -> None:
    """Hold a report to the schema."""
    assert [error.message for error in Draft202012Validator(schema()).iter_errors(report)] == []


def a_run(name: str, milliseconds: list[float], **changes: Any) -> dict[str, Any]:
    spread = dict.fromkeys(("min", "mean", "median", "p90", "p95", "p99", "max"), 1.0) | {"cv": 0.0}
    measured = {stage: dict(spread) if stage in ("infer", "end_to_end") else None for stage in STAGES}
    each = [
        {"calls": 9, "seconds": 1.0, "images_per_second": 1000 / ms, "median_ms": {"infer": ms / 2, "end_to_end": ms}}
        for ms in milliseconds
    ]
    values: dict[str, Any] = {
        **{"name": name, "model_hash": "ab", "precision": "fp32", "input_size": [64, 96], "batch": 1},
        **{"backend": "cpu", "reason": "asked for", "engine": None, "launch": None, "memory": None, "slots": 1},
        **{"load_seconds": 0.1, "warm_up_calls": 1, "calls": 90, "seconds": 1.0},
        "throughput": {"images_per_second": 1.0, "calls_per_second": 1.0, "engine_images_per_second": None},
        **{"latency_ms": measured, "ms_per_image": 1.0, "detections_per_image": 0.0, "cpu_cores": 1.0},
        **{"per_round": each, "unstable": [], "absent": {}, "warnings": [], "against_first": None},
    }
    return values | changes


def a_report(*runs: dict[str, Any], **around: Any) -> dict[str, Any]:
    names = schema()["$defs"]["environment"]["properties"]
    known = {"system": "Linux", "cpu": "EPYC", "load": 0.1, "versions": {"ptedge": "0.1.0", "onnxruntime": "1.30"}}
    report = {
        **{"schema": "ptedge.benchmark/1", "created": "2026-01-01T00:00:00+00:00", "seconds": 10.0, "warm_up": 2.0},
        "frames": {"source": "noise", "count": 1, "size": [720, 1280]},
        **{"rounds": 10, "included": {}, "environment": dict.fromkeys(names) | known | around, "readings": []},
        **{"runs": list(runs), "skipped": [], "warnings": []},
    }
    assert_fits_schema(report)
    return report
