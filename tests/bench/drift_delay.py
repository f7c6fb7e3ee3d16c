"""How late drift is found, and how often there is a false alarm, on long streams made of real frames.

Run: python tests/bench/drift_delay.py BUNDLE FOLDER [FOLDER ...] [--cache DIR] [--hours 12] [--seeds 6] [--json FILE]

Each folder holds frames of a video in order, about a second apart; a gap of the numbers in their names begins another
stretch. Stretches are dealt into two halves: of one a reference is made, as if 300 frames had been collected over
ordinary days; the other is played as a stream, so no street of it is in the reference. The model sees every frame once
under each condition, changes on the last folder only; streams of hours are put together from those answers, a frame a
second, as thinning leaves of 15.

Ordinary days: stretches forwards and backwards, stops of up to a minute (a frame that stays), brightness by the hour,
more traffic in four hours of the twelve. After the changes: fog, night, a camera that was moved, dirt, focus.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.backends.predictor import open_predictor
from ptedge.drift.measures import measure_frame, measure_names
from ptedge.drift.monitor import Alarm, Monitor
from ptedge.drift.reference import Reference, summarise
from ptedge.drift.windows import Edges
from ptedge.files import write_json
from ptedge.frames.images import read_image
from ptedge.samples.effects import AIRLIGHT, EFFECTS, diamond_square, road_depth
from ptedge.samples.weather import add_fog

Image = NDArray[np.uint8]
Frame = dict[str, NDArray[np.float64]]
Look = tuple[NDArray[np.float64], NDArray[np.float64]]

GAP = 200  # of the numbers in file names, from which a stretch is another
HOURS = ("gain 0.7", "gain 0.85", "as it is", "gain 1.15", "as it is", "gain 0.85")  # of an ordinary half day
RUSH = (1, 4)  # sixths of the half day with more traffic
STOP, LONGEST_STOP = 0.02, 60  # chance of a stop at a frame, and its seconds at most
BEFORE, AFTER = 600, 1800  # seconds of a stream before a change, and that it is given
BETWEEN = 7 * 86400.0
CONTROL, CONTROLS = "nothing", 4  # and streams of it a seed


def gain(factor: float) -> Callable[[Image, int], Image]:
    """More or less light."""
    return lambda image, i: np.clip(image.astype(np.float32) * factor, 0, 255).astype(np.uint8)


def fog(strength: float) -> Callable[[Image, int], Image]:
    """Fog as ``ptedge shift`` makes it; its banks change every 40 frames."""
    banks: dict[int, NDArray[np.float32]] = {}

    def change(image: Image, i: int) -> Image:
        import torch

        height, width = image.shape[:2]
        if i // 40 not in banks:
            torch.manual_seed(i // 40)
            bank = diamond_square((1, 1, height, width), roughness=0.4, normalize_range=(0.6, 1.4))[0, 0].numpy()
            banks[i // 40] = road_depth(height, width) * bank.astype(np.float32)
        foggy = add_fog(image.astype(np.float32) / 255, banks[i // 40], 0.05 * strength, AIRLIGHT)
        return np.clip(foggy * 255 + 0.5, 0, 255).astype(np.uint8)

    return change


def night(image: Image, i: int) -> Image:
    """Night of half strength, as ``ptedge shift`` makes it."""
    dark = EFFECTS["night"](image.astype(np.float32) / 255, 0.5)
    return np.clip(dark * 255 + 0.5, 0, 255).astype(np.uint8)


def moved(down: float, degrees: float) -> Callable[[Image, int], Image]:
    """A camera that was pushed: the picture lower by a share of its height, turned, and a little closer."""

    def change(image: Image, i: int) -> Image:
        height, width = image.shape[:2]
        turn = cv2.getRotationMatrix2D((width / 2, height / 2), degrees, 1.15)
        turn[1, 2] += down * height
        return np.asarray(cv2.warpAffine(image, turn, (width, height), borderMode=cv2.BORDER_REFLECT_101), np.uint8)

    return change


def dirt(spots: int, opacity: float) -> Callable[[Image, int], Image]:
    """Spots on the lens, always the same: what is behind them is brown and blurred."""

    def change(image: Image, i: int) -> Image:
        height, width = image.shape[:2]
        rng = np.random.default_rng(7)
        cover = np.zeros((height, width), np.float32)
        for _ in range(spots):
            centre = int(rng.uniform(0, width)), int(rng.uniform(0, height))
            axes = int(width * rng.uniform(0.05, 0.12)), int(height * rng.uniform(0.08, 0.2))
            cv2.ellipse(cover, centre, axes, rng.uniform(0, 180), 0, 360, 1.0, -1)
        share = cv2.GaussianBlur(cover, (0, 0), width * 0.012)[..., None] * opacity
        behind = cv2.GaussianBlur(image, (0, 0), width * 0.03).astype(np.float32) * 0.7 + np.array([21, 18.6, 15])
        return np.clip(image * (1 - share) + behind * share, 0, 255).astype(np.uint8)

    return change


def defocus(sigma: float) -> Callable[[Image, int], Image]:
    """A lens out of focus."""
    return lambda image, i: np.asarray(cv2.GaussianBlur(image, (0, 0), sigma), np.uint8)


ORDINARY: dict[str, Callable[[Image, int], Image]] = {
    "as it is": lambda image, i: image,
    **{f"gain {factor}": gain(factor) for factor in (0.7, 0.85, 1.15)},
}
CHANGES: dict[str, Callable[[Image, int], Image]] = {
    "fog, 0.25": fog(0.25),
    "fog, 0.5": fog(0.5),
    "fog, 1": fog(1.0),
    "night, 0.5": night,
    "camera 10 % lower": moved(0.1, 0),
    "camera 20 % lower": moved(0.2, 0),
    "camera turned by 8 degrees": moved(0, 8),
    "dirt, 3 spots": dirt(3, 0.7),
    "dirt, 6 spots": dirt(6, 0.9),
    "out of focus, 1 pixel": defocus(1.0),
    "out of focus, 2 pixels": defocus(2.0),
    CONTROL: lambda image, i: image,  # what is found here is the stretches' own, and no change
}


class Answers:
    """Measures of every frame under every condition, kept on disk.

    Attributes:
        stretches: (folder, numbers of frames) that belong together.
        traffic: detections a frame of each stretch.
    """

    def __init__(self, bundle: Path, folders: Sequence[Path], cache: Path) -> None:
        self._predictor = open_predictor(bundle, threads=1)
        self._cache = cache
        self.input_size = self._predictor.input_size
        self.classes = len(self._predictor.class_names)
        self._files = {folder: sorted(folder.iterdir(), key=number_of) for folder in folders}
        self._known: dict[tuple[Path, str], list[Frame]] = {}
        self.stretches = [(folder, row) for folder, files in self._files.items() for row in split(files)]
        counts = [[self.of(folder, "as it is")[i]["boxes:0"][0] for i in row] for folder, row in self.stretches]
        self.traffic = [statistics.fmean(row) for row in counts]

    def of(self, folder: Path, name: str) -> list[Frame]:
        """Measures of all frames of a folder under one condition."""
        key = folder, name
        if key not in self._known:
            path = self._cache / f"{folder.name}_{re.sub('[^a-z0-9.]+', '-', name)}.json"
            if not path.exists():
                change = {**ORDINARY, **CHANGES}[name]
                frames = [self._measure(change(read_image(file), i)) for i, file in enumerate(self._files[folder])]
                write_json(path, [{k: v.tolist() for k, v in frame.items()} for frame in frames])
                print(f"{folder.name}, {name}: {len(frames)} frames", flush=True)
            rows = json.loads(path.read_text("utf-8"))
            self._known[key] = [{k: np.array(v, float) for k, v in row.items()} for row in rows]
        return self._known[key]

    def _measure(self, image: Image) -> Frame:
        return measure_frame(image, self._predictor.detect(image), self.input_size, self.classes)


def number_of(file: Path) -> int:
    """The last number in a file's name."""
    return int(re.findall(r"\d+", file.stem)[-1])


def split(files: Sequence[Path]) -> list[list[int]]:
    """Places of files that follow one another without a gap."""
    rows = [[0]]
    for i in range(1, len(files)):
        if number_of(files[i]) - number_of(files[i - 1]) > GAP:
            rows.append([])
        rows[-1].append(i)
    return rows


class Day:
    """Half of the stretches for a reference, the other half to play."""

    def __init__(self, answers: Answers, seed: int) -> None:
        self.answers, self.seed = answers, seed
        order = np.random.default_rng([seed, 0]).permutation(len(answers.stretches)).tolist()
        halves: tuple[list[int], list[int]] = [], []
        sizes = {folder: [0, 0] for folder, _ in answers.stretches}
        for place in order:
            folder, row = answers.stretches[place]
            to = int(sizes[folder][1] < sizes[folder][0])
            halves[to].append(place)
            sizes[folder][to] += len(row)
        self.learned, self.played = halves
        last = answers.stretches[-1][0]
        self.changed = [place for place in self.played if answers.stretches[place][0] == last]
        self.reference = self._reference()
        self._edges = Edges(self.reference)
        self._looks: dict[tuple[Path, str], list[Look]] = {}

    def _reference(self) -> Reference:
        rng = np.random.default_rng([self.seed, 1])
        frames = []
        for _ in range(300):
            name, rush = self._hour(rng)
            folder, row = self.answers.stretches[self._draw(rng, self.learned, rush)]
            frames.append(self.answers.of(folder, name)[int(rng.choice(row))])
        return summarise(frames, self.answers.input_size, "target")

    def _hour(self, rng: np.random.Generator) -> tuple[str, bool]:
        part = int(rng.integers(len(HOURS)))
        return HOURS[part], part in RUSH

    def _draw(self, rng: np.random.Generator, places: list[int], rush: bool) -> int:
        lengths = np.array([len(self.answers.stretches[place][1]) for place in places], float)
        traffic = np.array([self.answers.traffic[place] for place in places])
        weights = lengths * (1 + traffic if rush else 1)
        return int(rng.choice(places, p=weights / weights.sum()))

    def looks(self, folder: Path, name: str) -> list[Look]:
        """Where the measures of frames lie against the reference."""
        if (folder, name) not in self._looks:
            self._looks[folder, name] = [self._edges.look(frame) for frame in self.answers.of(folder, name)]
        return self._looks[folder, name]

    def play(
        self, seconds: int, rng: np.random.Generator, condition: Callable[[int], tuple[str, bool]]
    ) -> Iterator[Look]:
        """A stream: one look a second."""
        second = 0
        while True:
            name, rush = condition(second)
            folder, row = self.answers.stretches[self._draw(rng, self._places(name), rush)]
            for i in row[:: int(rng.choice((-1, 1)))]:
                stay = 1 + (int(rng.integers(5, LONGEST_STOP)) if rng.random() < STOP else 0)
                for _ in range(stay):
                    yield self.looks(folder, name)[i]
                    second += 1
                    if second == seconds:
                        return
                    if self._places(condition(second)[0]) is self._places(name):
                        name, rush = condition(second)
                if self._places(condition(second)[0]) is not self._places(name):
                    break

    def _places(self, name: str) -> list[int]:
        """Stretches that are there under a condition."""
        return self.played if name in ORDINARY else self.changed

    def watch(self, seconds: int, stream: int, condition: Callable[[int], tuple[str, bool]]) -> Monitor:
        """A monitor after so many seconds."""
        monitor = Monitor(self.reference, BETWEEN)
        for second, look in enumerate(self.play(seconds, np.random.default_rng([self.seed, stream]), condition)):
            monitor.look(float(second), *look)
        return monitor

    def constant(self, hours: float) -> dict[str, Any]:
        """Alarms of ordinary hours."""
        seconds = int(hours * 3600)

        def hour(second: int) -> tuple[str, bool]:
            part = second * len(HOURS) // seconds
            return HOURS[part], part in RUSH

        monitor = self.watch(seconds, 2, hour)
        lasted = sum((alarm.ended or seconds) - alarm.began for alarm in monitor.alarms)
        return {"alarms": monitor.total, "hours_in_alarm": round(lasted / 3600, 3), "told": told(monitor.alarms)}

    def change(self, name: str, stream: int) -> dict[str, Any]:
        """When a change is found, in seconds after it; ``None`` if not."""

        def condition(second: int) -> tuple[str, bool]:
            return ("as it is" if second < BEFORE else name), False

        monitor = self.watch(BEFORE + AFTER, stream, condition)
        after = [alarm for alarm in monitor.alarms if alarm.began >= BEFORE]
        delay = after[0].began - BEFORE if after else None
        since = after[0].since - BEFORE if after else None
        return {"delay": delay, "since": since, "before": monitor.total - len(after), "told": told(after[:1])}


def told(alarms: Sequence[Alarm] | Any) -> list[str]:
    """What moved in some alarms."""
    return sorted({f"{name} {side}" for alarm in alarms for name, side in alarm.told})


def summary(rows: list[dict[str, Any]]) -> str:
    """Found of all, median and longest delay, within two minutes."""
    delays = sorted(row["delay"] for row in rows if row["delay"] is not None)
    if not delays:
        return f"{len(rows)}: not found"
    within = sum(delay <= 120 for delay in delays)
    middle = statistics.median(delays)
    return f"{len(rows)}: found {len(delays)}, {within} in 2 min; median {middle:.0f} s, last {delays[-1]:.0f} s"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--cache", type=Path, default=Path("drift_cache"))
    parser.add_argument("--hours", type=float, default=12)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    options.cache.mkdir(parents=True, exist_ok=True)
    answers = Answers(options.bundle, options.folders, options.cache)
    print(f"{len(answers.stretches)} stretches, {len(measure_names(answers.classes))} measures", flush=True)
    days = [Day(answers, seed) for seed in range(options.seeds)]
    found: dict[str, list[dict[str, Any]]] = {}
    for number, name in enumerate(CHANGES):
        streams = CONTROLS if name == CONTROL else 1
        found[name] = [day.change(name, 3 + number + stream) for stream in range(streams) for day in days]
        print(f"{name}: {summary(found[name])}", flush=True)
    constant = []
    for day in days:
        constant.append(day.constant(options.hours))
        print(f"{options.hours:g} ordinary hours: {constant[-1]}", flush=True)
    if options.json is not None:
        write_json(options.json, {"hours": options.hours, "constant": constant, "changes": found})


if __name__ == "__main__":
    main()
