"""What tests/gpu/run.sh does with TensorRT: answers of an engine, its speed, and a soak of 10,000 inferences.

Needs ptedge, tensorrt and pycuda; no torch.
"""

from __future__ import annotations

import argparse
import json
import statistics
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.artifacts.bundle import open_bundle
from ptedge.backends.choose import open_engine

CALLS = 300  # timed calls of each kind
ROUNDS = 7
THREADS = 3  # callers of the throughput measurement, one slot each


def answers(bundle: Path, inputs: Path, out: Path) -> None:
    """Save what an engine answers to prepared network inputs, and that it answers the same from several threads."""
    images = np.load(inputs)["images"]  # [N, 3, H, W]
    with open_engine(open_bundle(bundle), None, slots=2) as runner:
        found = [runner.infer({"images": image[None]}) for image in images]
        results: dict[int, dict[str, NDArray[Any]]] = {}

        def ask(first: int) -> None:
            for i in range(first, len(images), THREADS):
                results[i] = runner.infer({"images": images[i][None]})

        threads = [threading.Thread(target=ask, args=(first,)) for first in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        differing = sum(
            any(not np.array_equal(found[i][name], results[i][name]) for name in found[i]) for i in range(len(images))
        )
        launched = runner.graph
    arrays = {name: np.concatenate([one[name] for one in found]) for name in found[0]}
    np.savez(out, **arrays)
    print(f"{len(images)} images, {int(arrays['num_detections'].sum())} detections, launched by {launched}")
    print(f"from {THREADS} threads: {differing} answers differ")
    if differing:
        raise SystemExit("answers from several threads differ from those of one")


def bench(bundle: Path, inputs: Path, out: Path) -> None:
    """Latency, its parts, raw launches, throughput with several calls under way; with and without a CUDA graph."""
    images = np.load(inputs)["images"]
    opened = open_bundle(bundle)
    report: dict[str, Any] = {"precision": opened.manifest.precision, "input_size": list(opened.manifest.input_size)}
    for way in (True, False):
        with open_engine(opened, None, slots=1, cuda_graph=way) as runner:
            report["graph" if way else "enqueue"] = {"launched_by": runner.graph, **latency(runner, images)}
    with open_engine(opened, None, slots=THREADS) as runner:
        report["throughput"] = throughput(runner, images, report["graph"]["compute_ms"])
    record = opened.manifest.engines[-1]
    report["engine"] = {"seconds": record.seconds, "memory_mb": record.memory_mb, "tensorrt": record.tensorrt}
    report["engine"] |= {"gpu": record.gpu, "bytes": (bundle / record.file).stat().st_size}
    out.write_text(json.dumps(report, indent=2))
    print(json.dumps(report))


def latency(runner: Any, images: NDArray[np.uint8]) -> dict[str, float]:
    """Milliseconds of single calls, one after the other."""
    feeds = [{"images": np.ascontiguousarray(image[None])} for image in images]
    end = time.perf_counter() + 1.5
    while time.perf_counter() < end:  # clocks rise under load
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
    feeds = [{"images": np.ascontiguousarray(image[None])} for image in images]
    rates = []
    for _ in range(ROUNDS):
        threads = [threading.Thread(target=run_for, args=(runner, feeds, CALLS)) for _ in range(THREADS)]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rates.append(THREADS * CALLS / (time.perf_counter() - start))
    rate = statistics.median(rates)
    # copies of one call and computing of another overlap, so more than 1 means that calls even share the GPU
    return {"threads": THREADS, "calls_per_second": rate, "busy": rate * compute_ms / 1000}


def soak(bundle: Path, inputs: Path, out: Path, calls: int = 10_000) -> None:
    """Memory before and after many inferences, and over engines opened and closed, beside ONNX Runtime."""
    import onnxruntime

    images = np.load(inputs)["images"]
    opened = open_bundle(bundle)
    session = onnxruntime.InferenceSession(str(opened.model_path), providers=["CPUExecutionProvider"])
    reference = session.run(None, {"images": images[:1]})
    report: dict[str, Any] = {"calls": calls}
    with open_engine(opened, None, slots=2) as runner:
        feeds = {"images": np.ascontiguousarray(images[:1])}
        for _ in range(200):
            runner.infer(feeds)
        before = resident(), runner.device.free_memory()[0]
        for _ in range(calls):
            runner.infer(feeds)
        after = resident(), runner.device.free_memory()[0]
    report["resident_mb"] = [before[0], after[0]]
    report["gpu_lost_mb"] = (before[1] - after[1]) / 2**20
    open_close = []
    for _ in range(5):
        with open_engine(opened, None) as runner:
            runner.infer(feeds)
            open_close.append(runner.device.free_memory()[0] / 2**20)
    report["gpu_free_mb_on_reopening"] = open_close
    again = session.run(None, {"images": images[:1]})
    report["onnxruntime_unchanged_beside"] = all(np.array_equal(a, b) for a, b in zip(reference, again, strict=True))
    out.write_text(json.dumps(report, indent=2))
    print(json.dumps(report))


def resident() -> float:
    """Resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def main() -> None:
    """Dispatch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["answers", "bench", "soak"])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("inputs", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    {"answers": answers, "bench": bench, "soak": soak}[options.what](options.bundle, options.inputs, options.out)


if __name__ == "__main__":
    main()
