"""What a run's metrics.jsonl says, as series over steps: the one source of plots and TensorBoard events."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.errors import ArtifactError, InputError

FloatArray = NDArray[np.float64]
HALF_LOG_2_PI_E = 0.5 * math.log(2 * math.pi * math.e)
NOT_NUMBERS = ("step", "guard")  # of a line: its place, and the record of a guard that tripped


@dataclass(frozen=True)
class TripMark:
    """A guard that tripped, as plots mark it.

    Attributes:
        step: optimiser steps done by then.
        text: what happened, in a few words.
    """

    step: int
    text: str


@dataclass(frozen=True)
class Series:
    """Values over steps; steps at which the value was absent or not finite are left out.

    Attributes:
        steps: [N], not falling.
        values: [N].
    """

    steps: FloatArray
    values: FloatArray

    def __len__(self) -> int:
        return len(self.steps)


@dataclass
class Curves:
    """The logged lines of one run.

    Attributes:
        name: of the run, for legends.
        lines: one dictionary a logged step, in order.
        trips: of guards.
    """

    name: str
    lines: list[dict[str, Any]] = field(default_factory=list)
    trips: list[TripMark] = field(default_factory=list)

    @property
    def keys(self) -> list[str]:
        """Names of all numbers, in order of appearance."""
        return list(dict.fromkeys(key for line in self.lines for key in scalars(line)))

    def series(self, key: str) -> Series:
        """One number over steps.

        Args:
            key: as logged; ``box_entropy`` is worked out from ``box_variance`` where a run did not log it.
        """
        found = [(line["step"], scalars(line)[key]) for line in self.lines if key in scalars(line)]
        if not found and key == "box_entropy":
            variance = self.series("box_variance")
            kept = variance.values > 0
            return Series(variance.steps[kept], HALF_LOG_2_PI_E + 0.5 * np.log(variance.values[kept]))
        pairs = np.array([(s, v) for s, v in found if math.isfinite(v)], np.float64).reshape(-1, 2)
        return Series(pairs[:, 0], pairs[:, 1])

    def anchors(self) -> tuple[FloatArray, FloatArray]:
        """Steps [N] and anchor shapes [N, A, 2] (width, height in input pixels); N is 0 for a run without."""
        lines = [line for line in self.lines if _is_shapes(line.get("anchors"))]
        if not lines:
            return np.zeros(0), np.zeros((0, 0, 2))
        count = len(lines[-1]["anchors"])
        lines = [line for line in lines if len(line["anchors"]) == count]
        return (
            np.array([line["step"] for line in lines], np.float64),
            np.array([line["anchors"] for line in lines], np.float64),
        )


def read_curves(run: Path, name: str | None = None) -> Curves:
    """Read RUN/metrics.jsonl. A torn last line and lines without a step are passed over.

    Args:
        run: RUN folder, or a metrics.jsonl.
        name: for legends; the folder's name if left out.

    Raises:
        InputError: there is no such file.
        ArtifactError: it holds no logged step.
    """
    path = run / "metrics.jsonl" if run.is_dir() else run
    try:
        text = path.read_text("utf-8", errors="replace")
    except OSError:
        raise InputError(f"{path} cannot be read. Give the folder of a run of ptedge train or adapt") from None
    lines = [line for line in map(_parse, text.splitlines()) if line is not None]
    if not lines:
        raise ArtifactError(f"{path} holds no logged step")
    trips = [trip for line in lines if (trip := trip_of(line)) is not None]
    return Curves(name or path.resolve().parent.name, [line for line in lines if scalars(line)], trips)


def scalars(line: Mapping[str, Any]) -> dict[str, float]:
    """The plain numbers of a logged line, nested tables as ``table/key``; step and lists are left out."""
    found: dict[str, float] = {}
    for key, value in line.items():
        if isinstance(value, Mapping) and key not in NOT_NUMBERS:
            found.update({f"{key}/{inner}": number for inner, number in scalars(value).items()})
        elif isinstance(value, (int, float)) and not isinstance(value, bool) and key not in NOT_NUMBERS:
            found[key] = float(value)
    return found


def trip_of(line: Mapping[str, Any]) -> TripMark | None:
    """The guard that tripped at a logged step, if one did.

    Args:
        line: its ``guard`` holds the fields of :class:`~ptedge.training.watch.guard.Trip`.
    """
    trip = line.get("guard")
    if not isinstance(trip, Mapping):
        return None
    name = str(trip.get("name", "guard")).replace("_", " ")
    action = {"rollback": f"back to {trip.get('back_to', 0)}", "stop": "stop"}.get(str(trip.get("action")), "")
    return TripMark(int(line["step"]), f"{name}: {action}" if action else name)


def running_median(values: FloatArray, window: int) -> FloatArray:
    """Median over a centred window, which is cut at both ends.

    Args:
        values: [N].
        window: at least 1; an even one counts as the next odd one.

    Returns:
        [N].
    """
    half = max(window, 1) // 2
    return np.array([np.median(values[max(0, i - half) : i + half + 1]) for i in range(len(values))], np.float64)


def _parse(text: str) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    if not isinstance(line, dict) or not isinstance(line.get("step"), int):
        return None
    return line


def _is_shapes(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(v, list) and len(v) == 2 and all(isinstance(n, (int, float)) for n in v) for v in value)
    )
