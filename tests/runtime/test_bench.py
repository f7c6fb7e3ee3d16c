from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tiny_model import tiny_bundle, tiny_onnx

from ptedge.runner import BundlePredictor
from ptedge.runtime.bench import INCLUDED, benchmark, cpu_model, environment, noise


class Clock:
    """Goes on by the steps given, again and again."""

    def __init__(self, *steps: float) -> None:
        self.now, self.steps, self.calls = 0.0, steps, 0

    def __call__(self) -> float:
        self.now += self.steps[self.calls % len(self.steps)]
        self.calls += 1
        return self.now


def test_benchmark__numbers_of_a_known_clock(tmp_path: Path) -> None:
    predictor = BundlePredictor(tiny_bundle(tmp_path / "b", tiny_onnx(batch=2), batch=2).path, "cpu")
    # every look at the clock takes 1 ms: each stage 1 ms, end to end 3 ms, a call 5 looks at most
    report = benchmark(predictor, [noise()], seconds=0.1, warm_up=0.02, clock=Clock(0.001))
    assert report["latency_ms"]["infer"]["mean"] == pytest.approx(1.0)
    for name in ("min", "mean", "median", "p90", "p95", "p99", "max"):
        assert report["latency_ms"]["end_to_end"][name] == pytest.approx(3.0)
    assert report["latency_ms"]["end_to_end"]["cv"] == pytest.approx(0.0, abs=1e-6)
    assert report["throughput"]["images_per_second"] == pytest.approx(report["calls"] * 2 / report["seconds"], rel=1e-3)
    assert report["warm_up"]["calls"] >= 1 and report["calls"] >= 20 and report["warning"] is None
    assert set(report["included"]) == set(report["latency_ms"]) == set(INCLUDED)


def test_benchmark__warns_of_few_calls_and_of_unsteady_ones(tmp_path: Path) -> None:
    predictor = BundlePredictor(tiny_bundle(tmp_path / "b").path, "cpu")
    few = benchmark(predictor, [noise()], seconds=0.01, warm_up=0, clock=Clock(0.005))
    assert "only" in few["warning"]
    steps = [0.001] * 10 + [0.05] * 10
    unsteady = benchmark(predictor, [noise()], seconds=10, warm_up=0, clock=Clock(*steps))
    assert "latency varies by" in unsteady["warning"]


def test_noise__is_reproducible() -> None:
    assert noise().shape == (720, 1280, 3) and noise().dtype == np.uint8
    np.testing.assert_array_equal(noise(3), noise(3))


def test_environment__names_versions() -> None:
    env = environment(None)
    assert {"cpu", "cores", "threads", "onnxruntime", "opencv", "ptedge"} <= set(env)
    assert cpu_model()
