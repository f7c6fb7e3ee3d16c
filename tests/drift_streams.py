"""Made measures for tests of drift: pictures of one class, every measure normal unless a test says otherwise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptedge.drift.measures import FloatArray, measure_names
from ptedge.drift.reference import LEAST_SPREAD, Reference, summarise
from ptedge.drift.words import split_name

Frame = dict[str, FloatArray]


def frame(rng: np.random.Generator, classes: int = 1, **changes: float) -> Frame:
    """Normal values around 0 whose spread is 10 times what counts as none; ``changes`` move measures, in spreads."""
    values = {}
    for name in measure_names(classes):
        kind = split_name(name)[0]
        count = int(rng.integers(0, 4)) if kind in ("score", "size", "sigma", "entropy") else 1
        values[name] = 10 * LEAST_SPREAD[kind] * (rng.standard_normal(count) + changes.get(kind, 0.0))
    return values


def reference(count: int = 300, seed: int = 0, classes: int = 1) -> Reference:
    rng = np.random.default_rng(seed)
    return summarise([frame(rng, classes) for _ in range(count)], (64, 96), "target")


def stream(count: int, seed: int, change: Callable[[int], dict[str, float]] = lambda i: {}) -> list[Frame]:
    rng = np.random.default_rng([1, seed])
    return [frame(rng, **change(i)) for i in range(count)]
