"""How many rounds suppression needs, of the proposals and of the detections, until it proves its answer.

    python tests/bench/suppression_rounds.py model.pt --frames DIR [DIR ...] [--limit 40]

Beside the frames: noise, blocks, and even images (black, grey, coloured), which no camera takes while it works. Prints
for each how many images needed how many rounds; how many a graph has stands in ``ptedge.export.graph``.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.export import graph
from ptedge.export.graph_ops import fixpoint_nms
from ptedge.export.network_inputs import spread_frames

needed: list[int] = []  # by the calls of the image under way


def counted_nms(*arguments: Any, rounds: int) -> tuple[Tensor, Tensor]:
    """Suppression to its end; notes the rounds that it takes, the one that proves it among them."""
    for count in range(1, 1000):
        keep, converged = fixpoint_nms(*arguments, rounds=count)
        if bool(converged.all()):
            needed.append(count)
            return keep, converged
    raise RuntimeError("no fixpoint within 1,000 rounds")


def made_images(size: tuple[int, int]) -> Iterator[tuple[str, NDArray[np.uint8]]]:
    """Six of each kind, [6, 3, H, W]."""
    draw, shape = np.random.default_rng(0), (6, 3, *size)
    yield "noise", draw.integers(0, 256, shape, dtype=np.uint8)
    blocks = draw.integers(0, 256, (6, 3, size[0] // 20 + 1, size[1] // 20 + 1), dtype=np.uint8)
    yield "blocks", blocks.repeat(20, axis=2).repeat(20, axis=3)[..., : size[0], : size[1]]
    yield "black to grey", np.broadcast_to(np.arange(0, 240, 40, dtype=np.uint8).reshape(6, 1, 1, 1), shape)
    yield "one colour", np.broadcast_to(draw.integers(0, 256, (6, 3, 1, 1), dtype=np.uint8), shape)


def main() -> None:
    """Print the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--frames", nargs="+", default=[])
    parser.add_argument("--limit", type=int, default=40)
    options = parser.parse_args()
    model = load_checkpoint(options.checkpoint).build()
    size = model.config.input_size
    graph.fixpoint_nms = counted_nms  # type: ignore[assignment]
    static = graph.StaticGraph(model)
    kinds = [(name, spread_frames(name, size, options.limit)) for name in options.frames]
    for name, images in (*kinds, *made_images(size)):
        calls = []
        for image in images:
            needed.clear()
            with torch.no_grad():
                static(torch.from_numpy(image.copy()).unsqueeze(0))
            calls.append(tuple(needed))
        for part, rounds in zip(("proposals", "detections"), zip(*calls, strict=True), strict=True):
            counts = ", ".join(f"{count} x {value}" for value, count in sorted(Counter(rounds).items()))
            print(f"{name}: {part}, {len(images)} images, rounds: {counts}", flush=True)


if __name__ == "__main__":
    main()
