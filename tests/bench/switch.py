"""What a switch costs at 15 frames a second: no frame lost, and how late results are around it.

Run: python tests/bench/switch.py BUNDLE OTHER [--seconds 40] [--rate 15] [--threads 1]
Frames come at their times, whether or not the last one is done (a camera). OTHER, for a fair comparison the same model
exported again, is promoted halfway, loaded beside BUNDLE, and takes over; with --probation both are asked from there
on. Exit status 1 where a frame is lost, or a result is more than 200 ms older than the oldest one before.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.frames.source import Frame
from ptedge.runtime.counters import RunCounters, RunSource
from ptedge.runtime.deployment import change
from ptedge.runtime.deployment.follow import Follower
from ptedge.runtime.deployment.options import GateOptions
from ptedge.runtime.deployment.place import Deployment
from ptedge.runtime.pipeline import Pipeline, Rules
from ptedge.runtime.sinks.files import Result

MOST = 0.2  # seconds that a result may be older than usual
WARM = 3.0  # seconds at the beginning that do not count


class Camera:
    """Pictures of noise at their times."""

    def __init__(self, count: int, rate: float) -> None:
        self._image = np.random.default_rng(0).integers(0, 256, (720, 1280, 3), np.uint8)
        self._count, self._rate = count, rate
        self.began = 0.0

    def due(self, number: int) -> float:
        """When a frame was to be seen, by ``time.monotonic``."""
        return self.began + number / self._rate

    def __iter__(self) -> Iterator[Frame]:
        self.began = time.monotonic()
        for number in range(self._count):
            time.sleep(max(0.0, self.due(number) - time.monotonic()))
            yield Frame(self._image, number, number / self._rate, "camera", None)


class Notes:
    """A sink that notes when each result came, and of which version."""

    def __init__(self) -> None:
        self.came: dict[int, tuple[float, str]] = {}

    def write(self, result: Result) -> None:
        self.came[result.frame.index] = time.monotonic(), str(result.version)

    def close(self) -> None:
        pass


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("other", type=Path)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--rate", type=float, default=15.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--probation", type=float, default=0.0)
    options = parser.parse_args()
    gate = GateOptions(backend="cpu", threads=options.threads, seconds=0)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name) / "deployment"
        change.run_gate = lambda *_: []  # another machine's work
        change.promote(options.bundle, place, gate)

        def load(path: Path) -> BundlePredictor:
            return BundlePredictor(path, "cpu", options.threads)

        follower = Follower(Deployment(place), load, print, options.probation, 0.5)
        camera, notes = Camera(int(options.seconds * options.rate), options.rate), Notes()
        counters = RunCounters([RunSource("camera", "camera")])
        pipeline = Pipeline([camera], follower.slot, [notes], counters, Rules(), threading.Event())  # type: ignore[list-item]
        later = threading.Timer(options.seconds / 2, change.promote, (options.other, place, gate))
        follower.start()
        later.start()
        pipeline.run()
        later.join()
        follower.close()
        follower.slot.close()
    sys.exit(_tell(camera, notes, int(options.seconds * options.rate), options.rate))


def _tell(camera: Camera, notes: Notes, count: int, rate: float) -> bool:
    """Print what came of it; whether it is not as it should be."""
    first = notes.came[0][1]
    changed = min((number for number, (_, version) in notes.came.items() if version != first), default=None)
    lost = count - len(notes.came)
    if changed is None:
        print(f"{lost} frames lost; no switch")
        return True
    ages = {number: at - camera.due(number) for number, (at, _) in notes.came.items() if number > WARM * rate}
    promoted = count // 2
    parts = {"before": [], "from the promotion to 5 s after the switch": [], "after": []}  # type: dict[str, list[float]]
    for number, age in ages.items():
        when = 0 if number < promoted else 1 if number < changed + 5 * rate else 2
        list(parts.values())[when].append(1000 * age)
    print(f"{lost} of {count} frames lost; switched {(changed - promoted) / rate:.1f} s after the promotion began")
    print("| | frames | median age, ms | 99 of 100 | oldest |\n|---|---|---|---|---|")
    for name, values in parts.items():
        p50, p99, most = np.percentile(values, (50, 99, 100)) if values else (np.nan,) * 3
        print(f"| {name} | {len(values)} | {p50:.0f} | {p99:.0f} | {most:.0f} |")
    before, around = list(parts.values())[:2]
    return lost > 0 or max(around) > max(before) + 1000 * MOST


if __name__ == "__main__":
    main()
