"""What tests/gpu/run.sh does with TensorRT: answers of an engine, its speed, and a soak of 10,000 inferences.

    engine_side.py answers|bench|soak PREPARED RESULTS PRECISION

The engine is the newest of the bundle, or the two of a model in two stages. Needs tensorrt and pycuda; no torch.
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.artifacts.bundle import open_bundle
from ptedge.backends.choose import open_engine, open_graphs
from ptedge.backends.cuda import CudaDevice
from ptedge.graph_contract import IMAGES

CALLS = 200  # timed calls of each kind
ROUNDS = 5
SOAK_CALLS = 10_000
WARM_UP = 1.5  # seconds; clocks rise under load
THREADS = 3  # callers of the throughput measurement, one slot each


def answers(bundle: Path, images: NDArray[np.uint8], out: Path) -> None:
    """Save what an engine answers to prepared network inputs, and that it answers the same from several threads."""
    with closing(open_engine(open_bundle(bundle), None, slots=2)) as runner:
        found = [runner.infer({IMAGES: image[None]}) for image in images]
        arrays = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
        np.savez(out, **arrays)
        results: dict[int, dict[str, NDArray[Any]]] = {}

        def ask(first: int) -> None:
            for i in range(first, len(images), THREADS):
                results[i] = runner.infer({IMAGES: images[i][None]})

        _together([threading.Thread(target=ask, args=(first,)) for first in range(THREADS)])
        differing = sum(
            any(not np.array_equal(found[i][name], results[i][name]) for name in found[i]) for i in range(len(images))
        )
        launched = launched_by(runner)
    print(f"{len(images)} images, {int(arrays['num_detections'].sum())} detections, launched by {launched}")
    print(f"from {THREADS} threads: {differing} answers differ")
    if differing:
        raise SystemExit("answers from several threads differ from those of one")


def launched_by(runner: Any) -> str:
    """CUDA graph, or enqueue and why; of two stages both."""
    stages = getattr(runner, "stages", None)
    return runner.graph if stages is None else "two stages: " + ", ".join(stage.graph for stage in stages)


def bench(bundle: Path, images: NDArray[np.uint8], out: Path) -> None:
    """Latency, its parts, raw launches, throughput with several calls under way; with and without a CUDA graph."""
    opened = open_bundle(bundle)
    report: dict[str, Any] = {"precision": opened.manifest.precision, "input_size": list(opened.manifest.input_size)}
    records = sorted(opened.manifest.engines, key=lambda record: record.built)[-2:]
    used = records[-1:] if records[-1].stage == "whole" else records
    report["engine"] = {"tensorrt": used[0].tensorrt, "gpu": used[0].gpu, "stages": [record.stage for record in used]}
    report["engine"] |= {"seconds": sum(record.seconds for record in used)}
    report["engine"] |= {"memory_mb": max(record.memory_mb for record in used)}
    report["engine"] |= {"bytes": sum((bundle / record.file).stat().st_size for record in used)}
    for way in (True, False):
        with closing(open_engine(opened, None, slots=1, cuda_graph=way)) as runner:
            report["graph" if way else "enqueue"] = {"launched_by": launched_by(runner), **latency(runner, images)}
        out.write_text(json.dumps(report, indent=2))
    with closing(open_engine(opened, None, slots=THREADS)) as runner:
        report["throughput"] = throughput(runner, images, report["graph"]["compute_ms"])
    out.write_text(json.dumps(report, indent=2))
    print(json.dumps(report))


def latency(runner: Any, images: NDArray[np.uint8]) -> dict[str, float]:
    """Milliseconds of single calls, one after the other."""
    feeds = [{IMAGES: np.ascontiguousarray(image[None])} for image in images]
    end = time.perf_counter() + WARM_UP
    while time.perf_counter() < end:
        runner.infer(feeds[0])
    raw = [runner.time_launches(CALLS) / CALLS * 1000 for _ in range(ROUNDS)]
    whole, parts = [], []
    for i in range(CALLS):
        start = time.perf_counter()
        runner.infer(feeds[i % len(feeds)])
        whole.append((time.perf_counter() - start) * 1000)
    for i in range(CALLS):
        parts.append(runner.infer_timed(feeds[i % len(feeds)])[1])
    wall = [run_for(runner, feeds, CALLS) for _ in range(ROUNDS)]
    found = {f"{name}_ms": statistics.median(p[name] for p in parts) for name in ("h2d", "compute", "d2h", "enqueue")}
    return {
        **found,
        "raw_launch_ms": statistics.median(raw),
        "raw_launch_spread_ms": max(raw) - min(raw),
        "infer_ms": statistics.median(whole),
        "infer_p99_ms": float(np.percentile(whole, 99)),
        "overhead": statistics.median(wall) / statistics.median(raw) - 1,
        "busy_one_at_a_time": found["compute_ms"] / statistics.median(wall),
    }


def run_for(runner: Any, feeds: list[dict[str, NDArray[np.uint8]]], calls: int) -> float:
    """Mean milliseconds of a call in an unbroken row of them."""
    start = time.perf_counter()
    for i in range(calls):
        runner.infer(feeds[i % len(feeds)])
    return (time.perf_counter() - start) / calls * 1000


def throughput(runner: Any, images: NDArray[np.uint8], compute_ms: float) -> dict[str, float]:
    """Calls a second with several under way, and which share of the time the GPU then computes."""
    feeds = [{IMAGES: np.ascontiguousarray(image[None])} for image in images]
    rates = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        _together([threading.Thread(target=run_for, args=(runner, feeds, CALLS)) for _ in range(THREADS)])
        rates.append(THREADS * CALLS / (time.perf_counter() - start))
    rate = statistics.median(rates)
    # copies of one call and computing of another overlap, so more than 1 means that calls even share the GPU
    return {"threads": THREADS, "calls_per_second": rate, "busy": rate * compute_ms / 1000}


def _together(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def soak(bundle: Path, images: NDArray[np.uint8], out: Path) -> None:
    """Memory before and after many inferences, and over engines opened and closed, beside ONNX Runtime."""
    opened = open_bundle(bundle)
    feeds = {IMAGES: np.ascontiguousarray(images[:1])}
    with closing(open_graphs(opened, "cpu")) as beside:
        reference = beside.infer(feeds)
        device = CudaDevice()
        report: dict[str, Any] = {"calls": SOAK_CALLS}
        with closing(open_engine(opened, None, slots=2)) as runner:
            for _ in range(200):
                runner.infer(feeds)
            before = resident(), device.free_memory()[0]
            for _ in range(SOAK_CALLS):
                runner.infer(feeds)
            after = resident(), device.free_memory()[0]
        report["resident_mb"] = [before[0], after[0]]
        report["gpu_lost_mb"] = (before[1] - after[1]) / 2**20
        open_close = []
        for _ in range(5):
            with closing(open_engine(opened, None)) as runner:
                runner.infer(feeds)
                open_close.append(device.free_memory()[0] / 2**20)
        report["gpu_free_mb_on_reopening"] = open_close
        again = beside.infer(feeds)
        device.close()
    report["onnxruntime_unchanged_beside"] = all(np.array_equal(again[name], reference[name]) for name in reference)
    out.write_text(json.dumps(report, indent=2))
    print(json.dumps(report))


def resident() -> float:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def main() -> None:
    """Dispatch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["answers", "bench", "soak"])
    parser.add_argument("prepared", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("precision")
    options = parser.parse_args()
    work, suffix = {"answers": (answers, ".npz"), "bench": (bench, "-bench.json"), "soak": (soak, "-soak.json")}[
        options.what
    ]
    images = np.load(options.prepared / "inputs.npz")["images"]  # [N, 3, H, W]
    work(options.prepared / options.precision, images, options.results / f"{options.precision}{suffix}")


if __name__ == "__main__":
    main()
