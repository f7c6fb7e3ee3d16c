"""Do all graphs build as TensorRT engines? Two backbones, three precisions, each kind of GPU; without a GPU.

    python tests/bench/engine_builds.py [--size 240x416] [--backbones vgg16] [--precisions fp16] [--capabilities 8.6]

Prints what a graph is made of as TensorRT read it, and for each compute capability the size of the engine or why it is
refused.
Exits with 1 if a build is refused that should not be. tests/build_ahead.py says what a build proves and what not.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from pathlib import Path

from ptedge.errors import BackendError

sys.path.append(str(Path(__file__).parents[1]))  # after ptedge, since tests hold a folder of that name
from build_ahead import AheadBuilder, untrained_graph

CAPABILITIES = ("7.5", "8.0", "8.6", "8.9", "12.0")
KINDS = ("elementwise", "cast", "shuffle", "slice", "matrix_multiply", "constant")  # layers that are not the network's
REFUSED = ("7.5",)  # FP32 products of matrices are not supported there, and every graph has some


def main() -> int:
    """Build what was asked for; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="96x160", help="height x width of the input")
    parser.add_argument("--backbones", nargs="+", default=["efficientnet_lite0", "vgg16"])
    parser.add_argument("--precisions", nargs="+", default=["fp32", "fp16", "int8"])
    parser.add_argument("--capabilities", nargs="+", choices=CAPABILITIES, default=list(CAPABILITIES))
    options = parser.parse_args()
    height, width = map(int, options.size.split("x"))
    builder = AheadBuilder()
    wrong = 0
    for backbone in options.backbones:
        for precision in options.precisions:
            model = untrained_graph(backbone, precision, (height, width))
            counted = ""
            for capability in options.capabilities:
                began = time.monotonic()
                try:
                    built = builder.build(model, [capability])
                except BackendError as error:
                    wrong += capability not in REFUSED
                    print(f"{backbone} {precision} {capability}: refused: {error}", flush=True)
                    continue
                took = time.monotonic() - began
                print(f"{backbone} {precision} {capability}: {built.size / 1e6:.1f} MB, {took:.1f} s", flush=True)
                kinds = ", ".join(f"{built.layers[kind]} {kind}" for kind in KINDS)
                counted = f"{built.layers.total()} layers: {kinds}"
            print(f"{backbone} {precision}: {counted or 'no engine'}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"TensorRT-RTX {builder.version}, {options.size}, {peak} MB at most, {wrong} refused that should not be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
