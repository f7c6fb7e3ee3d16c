"""Which share of the frames that a strategy keeps really has a mistake of the model: the tables of docs/collect.md.

    python tests/bench/collect_precision.py BUNDLE... --data target/oracle.json
    python tests/bench/collect_precision.py BUNDLE... --scenes clear dusk [--drives 8] [--frames 100]
    python tests/bench/collect_precision.py BUNDLE --videos a.mp4 b.mp4 [--share 0.1]    # how many, without labels

DATA is labelled frames in the order in which they were filmed. Generated streets are driven down at 10 frames a second,
one domain after the other, with labels. Each strategy picks alone; so many frames as it is given a share of, in the
order in which they came and without distance between them. A frame has a *missed* object where a label has no detection
of its class at the threshold and above with an IoU of 0.5, a *wrong* box where such a detection has no label. Chance is
held against all frames, which is what it comes to in the mean. Several bundles are several models; rows are sums.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.boxes import box_iou
from ptedge.data import open_dataset
from ptedge.detections import Detections
from ptedge.frames.images import read_image
from ptedge.frames.source import Frame, open_frames
from ptedge.runtime.collection.choose import Chooser
from ptedge.runtime.collection.ledger import RANDOM
from ptedge.runtime.collection.policy import Policy, Shares
from ptedge.runtime.collection.window import Look, Windows
from ptedge.runtime.sinks.files import Result
from ptedge.samples.scenes import DOMAINS
from ptedge.samples.write import video_scenes
from ptedge.scores.matching import UNMATCHED, match_boxes

SAME = 0.5  # IoU of a detection and the label that it finds
FPS = 10.0


@dataclass(frozen=True)
class Judged:
    """A frame, what was found in it, and what of that is a mistake."""

    look: Look
    missed: int
    wrong: int


@dataclass
class Row:
    """Sums over frames."""

    frames: int = 0
    missed: int = 0
    wrong: int = 0
    either: int = 0
    mistakes: int = 0

    def add(self, one: Judged) -> None:
        self.frames += 1
        self.missed += one.missed > 0
        self.wrong += one.wrong > 0
        self.either += one.missed + one.wrong > 0
        self.mistakes += one.missed + one.wrong


def mistakes(
    objects: Detections, boxes: NDArray[np.float32], labels: NDArray[np.int64], ignore: NDArray[np.bool_]
) -> tuple[int, int]:
    """Missed objects and wrong boxes of a frame."""
    missed = wrong = 0
    for label in {*labels.tolist(), *objects.labels.tolist()} - {-1}:
        own, theirs = objects.labels == label, (labels == label) | ((labels == -1) & ignore)
        overlap = box_iou(objects.boxes[own], boxes[theirs]).astype(np.float64)
        matched = match_boxes(overlap, ignore[theirs], [SAME])[0]
        wrong += int((matched == UNMATCHED).sum())
        missed += int((~ignore[theirs]).sum()) - int((matched >= 0).sum())
    return missed, wrong


def labelled(model: BundlePredictor, data: Path, threshold: float) -> Iterator[Judged]:
    dataset = open_dataset(data, class_names=model.class_names, use="score")
    for i, sample in enumerate(sorted(dataset.samples, key=lambda one: number(one.path))):
        image = read_image(sample.path)
        look = looked(model, Frame(image, i, None, "frames", None), threshold)
        yield Judged(look, *mistakes(look.objects, sample.boxes, sample.labels, sample.ignore))


def driven(model: BundlePredictor, domains: list[str], drives: int, frames: int, threshold: float) -> Iterator[Judged]:
    for drive in range(drives):
        domain = DOMAINS[domains[drive * len(domains) // drives]]
        for i, scene in enumerate(video_scenes(domain, frames, FPS, seed=700 + drive)):
            frame = Frame(scene.image, drive * frames + i, drive * 60.0 + i / FPS, "drives", None)
            look = looked(model, frame, threshold)
            yield Judged(look, *mistakes(look.objects, scene.boxes.astype(np.float32), scene.labels, scene.ignore))


def count(model: BundlePredictor, videos: list[Path], share: float, threshold: float) -> None:
    """Frames that each strategy picks, and how many of them distance and likeness leave."""
    print("| strategy | " + " | ".join(f"{path.name}: picked | kept" for path in videos) + " |")
    print("|---|" + "---|---|" * len(videos))
    streams = [[looked(model, frame, threshold) for frame in open_frames(str(path))] for path in videos]
    for name in Shares().by_name:
        cells = []
        for looks in streams:
            policy = alone(name, share, threshold)
            chooser = Chooser(policy, len(model.class_names), random.Random(0))
            windows = Windows(threshold, len(model.class_names))
            every = [window for look in looks for window in windows.add(look)] + list(windows.rest())
            picks = [window for window in every if chooser.choose(window).why]
            kept = 0
            for window in picks:
                if chooser.refusal(window) is None:
                    chooser.keep(window.now)
                    kept += 1
            cells += [str(len(picks)), str(kept)]
        print(f"| `{name}` | {' | '.join(cells)} |")
    print(f"frames: {', '.join(str(len(looks)) for looks in streams)}")


def alone(strategy: str, share: float, threshold: float) -> Policy:
    """A policy of one strategy."""
    return Policy(Shares(**{name: share * (name == strategy) for name in Shares().by_name}), threshold=threshold)


def number(path: Path) -> tuple[int, str]:
    digits = "".join(c if c.isdecimal() else " " for c in path.stem).split()
    return (int(digits[-1]) if digits else 0), path.name


def looked(model: BundlePredictor, frame: Frame, threshold: float) -> Look:
    found = model.detect(frame.image)
    look = Look(Result(frame, found, model.class_names), found, found.select(found.scores >= threshold))
    _ = look.small, look.light
    blank = np.broadcast_to(np.uint8(0), frame.image.shape)  # pixels are not needed any more
    look.result = replace(look.result, frame=replace(frame, image=blank))
    return look


def picked(frames: list[Judged], policy: Policy, num_classes: int) -> list[Judged]:
    chooser = Chooser(policy, num_classes, random.Random(0))
    windows = Windows(policy.threshold, num_classes)
    by_look = {id(one.look): one for one in frames}
    every = [window for one in frames for window in windows.add(one.look)] + list(windows.rest())
    return [by_look[id(window.now)] for window in every if chooser.choose(window).why]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundles", type=Path, nargs="+")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--scenes", nargs="+", choices=sorted(DOMAINS))
    parser.add_argument("--videos", nargs="+", type=Path)
    parser.add_argument("--drives", type=int, default=8)
    parser.add_argument("--frames", type=int, default=100, help="of a drive")
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--threshold", type=float, default=0.3)
    options = parser.parse_args()
    if options.videos:
        count(BundlePredictor(options.bundles[0], "cpu", 1), options.videos, options.share, options.threshold)
        return
    rows: dict[str, Row] = {}
    for bundle in options.bundles:
        model = BundlePredictor(bundle, "cpu", 1)
        if options.data:
            frames = list(labelled(model, options.data, options.threshold))
        else:
            frames = list(driven(model, options.scenes, options.drives, options.frames, options.threshold))
        for one in frames:
            rows.setdefault(RANDOM, Row()).add(one)
        for name in [name for name in Shares().by_name if name != RANDOM]:
            row = rows.setdefault(name, Row())
            for one in picked(frames, alone(name, options.share, options.threshold), len(model.class_names)):
                row.add(one)
    print("| strategy | frames kept | a missed object | a wrong box | either | mistakes a frame |")
    print("|---|---|---|---|---|---|")
    for name, row in rows.items():
        shown = f"{options.share * row.frames:.0f}" if name == RANDOM else str(row.frames)
        shares_of = [f"{100 * value / max(1, row.frames):.0f} %" for value in (row.missed, row.wrong, row.either)]
        print(f"| `{name}` | {shown} | {' | '.join(shares_of)} | {row.mistakes / max(1, row.frames):.2f} |")


if __name__ == "__main__":
    main()
