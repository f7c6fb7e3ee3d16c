"""ONNX graphs timed in turn in one process.

python -m ptedge.training.study.timing.graphs ROUNDS THREADS FILE...
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.backends.ort import OrtRunner
from ptedge.errors import PtedgeError

WARM_UP = 3  # rounds that do not count


def feeds_of(inputs: Mapping[str, tuple[tuple[Any, ...], Any]]) -> dict[str, NDArray[Any]]:
    """Noise for every input, the same at each call: bytes 0..255, and floating-point numbers 0..1.

    Args:
        inputs: name -> (shape, dtype); a side that is not fixed is taken as 1.
    """
    draw = np.random.default_rng(0)
    feeds = {}
    for name, (shape, dtype) in inputs.items():
        sides = [side if isinstance(side, int) else 1 for side in shape]
        whole = np.issubdtype(dtype, np.integer)
        feeds[name] = (draw.integers(0, 256, sides) if whole else draw.random(sides)).astype(dtype)
    return feeds


def time_in_turn(files: Sequence[Path], rounds: int, threads: int) -> dict[str, dict[str, float]]:
    """Time graphs on the CPU, one call of each a round, so that a busy machine hurts all alike.

    Args:
        files: ONNX graphs.
        rounds: that count.
        threads: of ONNX Runtime.

    Returns:
        File -> ``ms`` and ``processor_ms``, medians of the clock and of the processor.

    Raises:
        PtedgeError: a graph cannot be loaded or run.
    """
    runners = {str(file): OrtRunner(file, "cpu", threads) for file in files}
    feeds = {name: feeds_of(runner.inputs) for name, runner in runners.items()}
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in runners}
    for number in range(WARM_UP + rounds):
        for name, runner in runners.items():
            start, used = time.perf_counter(), time.process_time()
            runner.infer(feeds[name])
            if number >= WARM_UP:
                taken[name].append((time.perf_counter() - start, time.process_time() - used))
    return {
        name: {
            "ms": 1e3 * statistics.median(clock for clock, _ in found),
            "processor_ms": 1e3 * statistics.median(used for _, used in found),
        }
        for name, found in taken.items()
    }


def main() -> None:
    """Print one JSON document."""
    rounds, threads, *files = sys.argv[1:]
    try:
        print(json.dumps(time_in_turn([Path(file) for file in files], int(rounds), int(threads))))
    except PtedgeError as error:
        sys.exit(f"ptedge: {error}")


if __name__ == "__main__":
    main()
