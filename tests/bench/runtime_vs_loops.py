"""``ptedge run`` against the loops one would write by hand, on the same video and machine, in turns.

Run: python tests/bench/runtime_vs_loops.py BUNDLE [--checkpoint MODEL.pt] [--video FILE] [--frames 300] [--rounds 2]

Rows: a plain ONNX Runtime loop with the same file; a plain eager loop of torchvision's Faster R-CNN of similar size
(MobileNetV3, weights at random: speed only); with ``--checkpoint`` the bundle's own model in eager torch; ``ptedge
run`` lossless and in realtime. Every row decodes, detects and writes JSON lines in a process of its own. Latency is
from a decoded frame to its written or ready result; of ``run`` lossless it includes the queues, which is why the
realtime row is there. CPU time and memory are those of the whole process, its start included.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cv2
import numpy as np


def frames_of(video: str, count: int) -> Iterator[np.ndarray]:
    """That many frames, RGB; the video begins again at its end."""
    done = 0
    while done < count:
        capture = cv2.VideoCapture(video)
        while done < count:
            ok, image = capture.read()
            if not ok:
                break
            yield cv2.cvtColor(image, cv2.COLOR_BGR2RGB)
            done += 1
        capture.release()


def plain_onnx(bundle: str, threads: int) -> Callable[[np.ndarray], list[Any]]:
    """As one would write it: resize, session, numbers."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    path = Path(bundle)
    model = str(path / "model.onnx" if path.is_dir() else path)
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    batch, _, height, width = session.get_inputs()[0].shape

    def detect(image: np.ndarray) -> list[Any]:
        scale = min(width / image.shape[1], height / image.shape[0])
        inner = (round(image.shape[1] * scale), round(image.shape[0] * scale))
        array = np.full((batch, 3, height, width), 114, np.uint8)
        resized = cv2.resize(image, inner, interpolation=cv2.INTER_AREA)
        array[0, :, : inner[1], : inner[0]] = resized.transpose(2, 0, 1)
        names = ["boxes", "scores", "labels", "sigma", "num_detections"]
        boxes, scores, labels, sigma, found = session.run(names, {"images": array})
        n = int(found[0])
        return [(boxes[0, :n] / scale).tolist(), scores[0, :n].tolist(), labels[0, :n].tolist(), sigma[0, :n].tolist()]

    return detect


def plain_torchvision(bundle: str, threads: int) -> Callable[[np.ndarray], list[Any]]:
    """torchvision's own detector, eager, at the bundle's input size."""
    import torch
    from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_320_fpn

    from ptedge.artifacts.bundle import open_bundle

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    height, width = open_bundle(Path(bundle)).manifest.input_size
    net = fasterrcnn_mobilenet_v3_large_320_fpn(
        weights=None, weights_backbone=None, num_classes=2, min_size=min(height, width), max_size=max(height, width)
    ).eval()

    def detect(image: np.ndarray) -> list[Any]:
        with torch.inference_mode():
            tensor = torch.from_numpy(image).permute(2, 0, 1).float() / 255
            found = net([tensor])[0]
        return [found["boxes"].tolist(), found["scores"].tolist(), found["labels"].tolist()]

    return detect


def plain_checkpoint(checkpoint: str, threads: int) -> Callable[[np.ndarray], list[Any]]:
    """The bundle's own model in eager torch."""
    from ptedge.backends.checkpoint_predictor import CheckpointPredictor

    predictor = CheckpointPredictor(Path(checkpoint), threads=threads)
    return lambda image: predictor.detect(image).to_json(predictor.class_names)


LOOPS = {"onnx": plain_onnx, "torchvision": plain_torchvision, "checkpoint": plain_checkpoint}


def loop(kind: str, model: str, video: str, count: int, threads: int, out: Path) -> dict[str, Any]:
    """One plain loop, in this process."""
    detect = LOOPS[kind](model, threads)
    latency, start = [], time.perf_counter()
    with open(out, "w", encoding="utf-8") as file:
        for image in frames_of(video, count):
            begin = time.perf_counter()
            file.write(json.dumps(detect(image)) + "\n")
            file.flush()
            latency.append(1000 * (time.perf_counter() - begin))
    seconds = time.perf_counter() - start
    p50, p99 = np.percentile(latency, (50, 99))
    return {"frames": count, "fps": count / seconds, "age_ms": {"p50": float(p50), "p99": float(p99)}}


def measure(command: list[str]) -> dict[str, Any]:
    """Run a command that prints its report; CPU seconds and peak memory of the process with it."""
    with tempfile.TemporaryFile("w+") as stdout:
        process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.DEVNULL)
        start = time.monotonic()
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise SystemExit(f"failed: {' '.join(command)}")
        stdout.seek(0)
        report = json.loads(stdout.read())
    cpu = usage.ru_utime + usage.ru_stime
    return {
        "fps": report["fps"],
        "p50": report["age_ms"]["p50"],
        "p99": report["age_ms"]["p99"],
        "cpu_ms": 1000 * cpu / report["frames"],
        "cpu_share": cpu / seconds / len(os.sched_getaffinity(0)),
        "peak_mb": usage.ru_maxrss / 1024,
        "dropped": report.get("dropped", 0),
    }


def commands(options: argparse.Namespace, video: str, out: Path) -> dict[str, list[str]]:
    """A command for each row."""
    python, count, threads = sys.executable, str(options.frames), str(options.threads)

    def by_hand(kind: str, model: str) -> list[str]:
        row = [python, __file__, model, "--one", kind, "--video", video, "--frames", count, "--threads", threads]
        return [*row, "--out", str(out / kind)]

    run = [python, "-m", "ptedge", "run", options.bundle, video, "--loop", "--limit", count, "--threads", threads]
    run += ["--backend", "cpu", "--save", "jsonl", "--out", str(out / "run"), "--json"]
    rows = {"plain ONNX Runtime loop, same file": by_hand("onnx", options.bundle)}
    rows["torchvision Faster R-CNN MobileNetV3, eager"] = by_hand("torchvision", options.bundle)
    if options.checkpoint:
        rows["same model, eager torch"] = by_hand("checkpoint", options.checkpoint)
    return rows | {"ptedge run, lossless": run}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle")
    parser.add_argument("--checkpoint")
    parser.add_argument("--video", help="by default one of 720p is made")
    parser.add_argument("--frames", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--one", choices=list(LOOPS), help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        arguments = (options.one, options.bundle, options.video, options.frames, options.threads, options.out)
        print(json.dumps(loop(*arguments)))
        return
    sys.path.insert(0, str(Path(__file__).parent))
    from run_rate import make_video

    found: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as name:
        video = options.video or f"{name}/video.mp4"
        if not options.video:
            make_video(Path(video))
        rows = commands(options, video, Path(name))
        for _ in range(options.rounds):
            for row, command in rows.items():
                found.setdefault(row, []).append(measure(command))
            # half of what the plain loop can do: a camera that the model keeps up with
            rate = found["plain ONNX Runtime loop, same file"][-1]["fps"] / 2
            paced = [*rows["ptedge run, lossless"], "--realtime", "--rate", f"{rate:.2f}"]
            paced[paced.index("--limit") + 1] = str(max(20, options.frames // 2))
            found.setdefault("ptedge run, realtime at half that rate", []).append(measure(paced))
    best = {row: {key: statistics.median(m[key] for m in all_) for key in all_[0]} for row, all_ in found.items()}
    print("| row | frames/s | p50, ms | p99, ms | CPU, ms a frame | CPU share | peak, MB |\n" + "|---" * 7 + "|")
    for row, m in best.items():
        numbers = f"{m['fps']:.2f} | {m['p50']:.1f} | {m['p99']:.1f} | {m['cpu_ms']:.0f} | {m['cpu_share']:.0%}"
        print(f"| {row} | {numbers} | {m['peak_mb']:.0f} |")
    if options.json:
        options.json.write_text(json.dumps({"rounds": found, "median": best}, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
