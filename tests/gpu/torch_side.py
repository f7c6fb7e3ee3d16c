"""What tests/gpu/run.sh does with torch: reference answers of a checkpoint, speed of torch and ONNX Runtime."""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.export.graph import StaticGraph
from ptedge.frames.source import open_frames
from ptedge.preprocess import Letterbox

FRAMES = 24
CALLS = 60
ROUNDS = 5


def answers(path: Path, data: Path, out: Path) -> None:
    """Save network inputs and what the static graph answers to them in float32 on the GPU, without TF32."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    checkpoint = load_checkpoint(path)
    height, width = checkpoint.config.input_size
    frames = itertools.islice(open_frames(str(data / "target/val")), 0, 5 * FRAMES, 5)
    placed = [Letterbox(f.image.shape[1], f.image.shape[0], height, width).image(f.image) for f in frames]
    noise = np.random.default_rng(0).integers(0, 256, (height, width, 3), dtype=np.uint8)
    stacked = np.stack([*placed, np.zeros_like(noise), noise]).transpose(0, 3, 1, 2)
    images = np.ascontiguousarray(stacked)  # [N, 3, H, W]
    np.savez(out.with_name(out.name + "-inputs.npz"), images=images)
    graph = StaticGraph(checkpoint.build()).cuda()
    with torch.no_grad():
        found = [graph(torch.from_numpy(image[None]).cuda()) for image in images]
    arrays = {name: torch.cat([getattr(f, name) for f in found]).cpu().numpy() for name in found[0]._fields}
    np.savez(out.with_name(out.name + "-torch.npz"), **arrays)
    print(f"{len(images)} images, {int(arrays['num_detections'].sum())} detections")


def bench(path: Path, inputs: Path, bundle: Path, out: Path) -> None:
    """Milliseconds an image at batch 1: torch eager and compiled in float32 and float16, ONNX Runtime's providers."""
    image = torch.from_numpy(np.load(inputs)["images"][:1]).cuda()
    model = load_checkpoint(path).build().cuda().to(memory_format=torch.channels_last)
    graph = StaticGraph(model).cuda()
    half = torch.autocast("cuda", torch.float16)
    ways: dict[str, Callable[[], Any]] = {
        "torch eager fp32": lambda: model.detect(image),
        "torch eager fp16": lambda: within(half, lambda: model.detect(image)),
        "torch static graph fp16": lambda: within(half, lambda: graph(image)),
    }
    report: dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    with torch.no_grad():
        for name, way in ways.items():
            report[name] = timed(way)
        compiled = torch.compile(graph, mode="reduce-overhead")
        began = time.perf_counter()
        try:
            for _ in range(3):
                within(half, lambda: compiled(image))
            report["torch.compile fp16"] = timed(lambda: within(half, lambda: compiled(image)))
            report["torch.compile fp16"]["compile_seconds"] = time.perf_counter() - began
        except Exception as error:  # whatever the compiler does not manage is part of the comparison
            report["torch.compile fp16"] = {"error": str(error).partition("\n")[0][:200]}
    report |= onnxruntime_times(bundle, np.load(inputs)["images"][:1])
    out.write_text(json.dumps(report, indent=2))
    print(json.dumps(report))


def onnxruntime_times(bundle: Path, image: Any) -> dict[str, Any]:
    """The same for the GPU providers that this ONNX Runtime has, and its CPU."""
    import onnxruntime

    found: dict[str, Any] = {}
    there = onnxruntime.get_available_providers()
    for provider in ("TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider"):
        if provider not in there:
            found[f"onnxruntime {provider}"] = {"error": "not in this build"}
            continue
        session = onnxruntime.InferenceSession(str(bundle / "model.onnx"), providers=[provider])
        run = session.run
        found[f"onnxruntime {provider}"] = timed(lambda run=run: run(None, {"images": image}), calls=20)  # type: ignore[misc]
    return found


def within(context: Any, work: Callable[[], Any]) -> Any:
    """Do something inside a context that can be entered again and again."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(context)
        return work()


def timed(work: Callable[[], Any], calls: int = CALLS) -> dict[str, float]:
    """Median and spread over rounds of the mean time of a call, in ms, each call waited for."""
    end = time.perf_counter() + 1.0
    while time.perf_counter() < end:
        work()
        torch.cuda.synchronize()
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(calls):
            work()
            torch.cuda.synchronize()
        rounds.append((time.perf_counter() - start) / calls * 1000)
    return {"ms": statistics.median(rounds), "spread_ms": max(rounds) - min(rounds)}


def main() -> None:
    """Dispatch."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["answers", "bench"])
    parser.add_argument("paths", type=Path, nargs="+")
    options = parser.parse_args()
    {"answers": answers, "bench": bench}[options.what](*options.paths)


if __name__ == "__main__":
    main()
