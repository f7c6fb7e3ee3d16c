"""What tests/gpu/run.sh measures beside engines: the checkpoint in torch, and ONNX Runtime's own providers.

    torch_side.py PREPARED RESULTS eager|compiled|onnxruntime        writes RESULTS/torch-WHAT.json

Batch 1, the same image again and again, every call waited for.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.export.graph import StaticGraph

CALLS = 60
ROUNDS = 5
WARM_UP = 1.0  # seconds; clocks rise under load


def main() -> None:
    """Measure one group of ways, and write them as they are done."""
    prepared, results, what = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    image = np.load(prepared / "inputs.npz")["images"][:1]
    ways = {"eager": eager, "compiled": compiled, "onnxruntime": onnxruntime_ways}[what](prepared, image)
    report: dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    for name, way in ways.items():
        try:
            with torch.no_grad():
                report[name] = timed(way)
        except Exception as error:  # what does not run is part of the comparison
            report[name] = {"error": str(error).partition("\n")[0][:200]}
        (results / f"torch-{what}.json").write_text(json.dumps(report, indent=2))
        print(name, report[name], flush=True)


def eager(prepared: Path, image: Any) -> dict[str, Callable[[], Any]]:
    """The detector as torch runs it; and its static graph, which is what an engine is built from."""
    model, images = _model(prepared), torch.from_numpy(image).cuda()
    graph = StaticGraph(model).cuda()
    return {
        "torch eager fp16": lambda: _half(lambda: model.detect(images)),
        "torch eager fp32": lambda: model.detect(images),
        "torch static graph fp16": lambda: _half(lambda: graph(images)),
    }


def compiled(prepared: Path, image: Any) -> dict[str, Callable[[], Any]]:
    """The static graph through torch.compile."""
    images = torch.from_numpy(image).cuda()
    graph = torch.compile(StaticGraph(_model(prepared)).cuda(), mode="reduce-overhead")
    return {"torch.compile fp16": lambda: _half(lambda: graph(images))}


def onnxruntime_ways(prepared: Path, image: Any) -> dict[str, Callable[[], Any]]:
    """The float32 bundle on the providers that this ONNX Runtime has."""
    import onnxruntime

    def way(provider: str) -> Callable[[], Any]:
        session = onnxruntime.InferenceSession(str(prepared / "fp32" / "model.onnx"), providers=[provider])
        return lambda: session.run(None, {"images": image})

    there = onnxruntime.get_available_providers()
    wanted = ("CUDAExecutionProvider", "CPUExecutionProvider")
    return {f"onnxruntime {name}": way(name) for name in wanted if name in there}


def _model(prepared: Path) -> Any:
    return load_checkpoint(prepared / "model.pt").build().cuda().to(memory_format=torch.channels_last)


def _half(work: Callable[[], Any]) -> Any:
    with torch.autocast("cuda", torch.float16):
        return work()


def timed(work: Callable[[], Any]) -> dict[str, float]:
    """Median and spread over rounds of the mean time of a call, in ms."""
    end = time.perf_counter() + WARM_UP
    while time.perf_counter() < end:
        work()
        torch.cuda.synchronize()
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            work()
            torch.cuda.synchronize()
        rounds.append((time.perf_counter() - start) / CALLS * 1000)
    return {"ms": statistics.median(rounds), "spread_ms": max(rounds) - min(rounds)}


if __name__ == "__main__":
    main()
