"""How fast bundles run on this machine: the times of every stage, of several bundles and backends in turns.

What is compared is measured in the same minutes: a round gives each subject a turn, every other round in reverse
order, so that heat, changing clocks and other load meet all of them alike.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.backends.runner import TimedRunner
from ptedge.graph_contract import IMAGES

NOISE_SIZE = (720, 1280)  # height, width of the frame where the user names none
DEVICE_STAGES = ("h2d", "compute", "d2h", "enqueue")  # by events of the device, and the launch by the host's clock
STAGES = ("preprocess", "infer", *DEVICE_STAGES, "latency", "postprocess", "end_to_end")
MEASURED = (
    "tensorrt",
    "tensorrt-rtx",
    "cuda",
    "ort-tensorrt",
    "cpu",
)  # backends, in the order that ``--backend all`` tries them
CALLS_A_TURN = 3  # so many at least, of the slowest subject, or there are fewer rounds
FEWEST_ROUNDS = 6  # below this no ratio has an interval

Clock = Callable[[], float]


@dataclass
class Round:
    """One turn of a subject.

    Attributes:
        seconds: from the first counted call's start to the end of the last.
        busy: CPU seconds of the whole process in that time.
        times: [calls, stages] in seconds; NaN where a stage cannot be measured.
        detections: found in those calls.
        images: in those calls.
    """

    seconds: float
    busy: float
    times: NDArray[np.float64]
    detections: int
    images: int


@dataclass
class Subject:
    """A bundle on a backend, ready to be measured.

    Attributes:
        name: unique among the subjects.
        predictor: opened.
        images: frames, used in turn; each [H, W, 3] uint8 RGB.
        slots: calls under way at once.
        load_seconds: from nothing to a loaded model.
        rounds: what was measured so far.
        warm_calls: calls that were not counted.
        launch_rate: calls a second of the engine alone, nothing copied; ``None`` where that cannot be measured.
    """

    name: str
    predictor: BundlePredictor
    images: Sequence[NDArray[np.uint8]]
    slots: int = 1
    load_seconds: float = 0.0
    rounds: list[Round] = field(default_factory=list)
    warm_calls: int = 0
    launch_rate: float | None = None

    def __post_init__(self) -> None:
        runner = self.predictor.runner
        self._timed = runner if isinstance(runner, TimedRunner) else None

    def group(self, call: int) -> list[NDArray[np.uint8]]:
        """The images of a call: as many as the graph takes, where the call before left off."""
        start = call * self.predictor.batch
        return [self.images[(start + i) % len(self.images)] for i in range(self.predictor.batch)]

    def call(self, number: int, clock: Clock) -> tuple[list[float], int]:
        """One call: seconds of each of ``STAGES`` (NaN where not measured), and detections."""
        group = self.group(number)
        device = dict.fromkeys(DEVICE_STAGES, float("nan"))
        t0 = clock()
        array, letterboxes = self.predictor.preprocess(group)
        t1 = clock()
        if self._timed is not None:
            outputs, milliseconds = self._timed.infer_timed({IMAGES: array})
            device = {name: milliseconds[name] / 1000 for name in DEVICE_STAGES}
        else:
            outputs = self.predictor.runner.infer({IMAGES: array})
        t2 = clock()
        found = self.predictor.postprocess(outputs, letterboxes)
        t3 = clock()
        latency = device["h2d"] + device["compute"] + device["d2h"]
        return [t1 - t0, t2 - t1, *device.values(), latency, t3 - t2, t3 - t0], sum(len(d.scores) for d in found)

    def warm(self, seconds: float, clock: Clock) -> float:
        """Calls that are not counted, at least one; seconds that the last one took."""
        start = clock()
        while True:
            began = clock()
            self.call(self.warm_calls, clock)
            self.warm_calls += 1
            now = clock()
            if now - start >= seconds:
                return now - began

    def turn(self, seconds: float, clock: Clock, cpu: Clock, *, again: bool) -> None:
        """Measure for a while.

        Args:
            seconds: at least one call, whatever this is.
            clock: seconds, increasing.
            cpu: CPU seconds of this process.
            again: another subject ran before, so the first call finds nothing in the caches: it is not counted.
        """
        if again:
            self.warm(0, clock)
        done = sum(len(r.times) for r in self.rounds)
        start, busy = clock(), cpu()
        calls = self._calls(done, start + seconds, clock) if self.slots == 1 else self._parallel(done, seconds, clock)
        elapsed, busy = clock() - start, cpu() - busy
        times = np.array([times for times, _ in calls])
        images = len(calls) * self.predictor.batch
        self.rounds.append(Round(elapsed, busy, times, sum(found for _, found in calls), images))

    def measure_launches(self, seconds: float) -> None:
        """Calls of the engine one behind the other without copies, for about ``seconds``, where the backend can."""
        if self._timed is None:
            return
        time_launches = self._timed.time_launches
        few = time_launches(3) / 3
        calls = max(3, round(seconds / few)) if few > 0 else 3
        taken = time_launches(calls)
        self.launch_rate = calls / taken if taken > 0 else None

    def _calls(self, first: int, end: float, clock: Clock) -> list[tuple[list[float], int]]:
        calls = [self.call(first, clock)]
        while clock() < end:
            calls.append(self.call(first + len(calls), clock))
        return calls

    def _parallel(self, first: int, seconds: float, clock: Clock) -> list[tuple[list[float], int]]:
        """The same from ``slots`` threads; the first error of any of them is raised."""
        calls: list[tuple[list[float], int]] = []
        errors: list[BaseException] = []
        end = clock() + seconds

        def work(offset: int) -> None:
            try:
                calls.extend(self._calls(first + offset, end, clock))
            except BaseException as error:
                errors.append(error)

        # daemons, so that Ctrl-C ends the program also while a call hangs
        threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(self.slots)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise errors[0]
        return calls


def measure(
    subjects: Sequence[Subject],
    seconds: float,
    warm_up: float,
    rounds: int = 10,
    *,
    clock: Clock = time.perf_counter,
    cpu: Clock = time.process_time,
    read: Callable[[], None] = lambda: None,
) -> Iterator[int]:
    """Measure subjects in turns; their rounds are in them afterwards.

    Args:
        subjects: what to measure.
        seconds: for each subject in all, at least one call a round.
        warm_up: seconds of calls before, for each, that are not counted.
        rounds: wanted; fewer are made where a turn would hold fewer than 3 calls.
        clock: seconds, increasing.
        cpu: CPU seconds of this process.
        read: called before the first round and after each, while nothing is measured.

    Yields:
        The number of rounds, after each.
    """
    slowest = max(subject.warm(warm_up, clock) for subject in subjects)
    if slowest > 0:
        rounds = max(min(rounds, FEWEST_ROUNDS), min(rounds, int(seconds / (CALLS_A_TURN * slowest))))
    read()
    for number in range(rounds):
        for subject in subjects if number % 2 == 0 else reversed(subjects):
            subject.turn(seconds / rounds, clock, cpu, again=len(subjects) > 1)
        read()
        yield rounds
    for subject in subjects:
        subject.measure_launches(min(1.0, seconds / 10))


def noise(seed: int = 0) -> NDArray[np.uint8]:
    """A frame of random blocks, for a benchmark without footage."""
    small = np.random.default_rng(seed).integers(0, 256, (NOISE_SIZE[0] // 16, NOISE_SIZE[1] // 16, 3), np.uint8)
    return np.ascontiguousarray(small.repeat(16, axis=0).repeat(16, axis=1))


def subject_names(places: Sequence[str], backends: Sequence[str]) -> list[str]:
    """Distinct names for pairs of a bundle and a backend: the backend alone where there is one bundle.

    Args:
        places: paths of bundles.
        backends: one for each of them.
    """
    parts = {place: place.rstrip("/").split("/") for place in places}
    tail = 1
    while len({tuple(p[-tail:]) for p in parts.values()}) < len(parts) and tail < max(map(len, parts.values())):
        tail += 1
    names: list[str] = []
    for place, backend in zip(places, backends, strict=True):
        name = backend if len(parts) == 1 else f"{'/'.join(parts[place][-tail:])} {backend}"
        again = sum(other.partition(" #")[0] == name for other in names)
        names.append(f"{name} #{again + 1}" if again else name)
    return names
