"""What consecutive frames tell without labels, held against labels: "Evidence over time" of docs/results.md.

    python tests/bench/over_time.py MODEL DATA [--clips 24] [--frames 9] [--min-score 0.3]
    python tests/bench/over_time.py MODEL --scenes fog_camera [--clips 4] [--frames 40] [--fps 10]

Labelled video is rare. So labelled stills are moved by known amounts: each becomes a clip that pans, zooms around a
point near its middle and speeds up a little, with noise and JPEG of its own in every frame, and its labels move with
it. Or generated streets are driven down, where things also move by themselves and hide each other.

Printed are, for each side, how far sigma is from the truth, what trembling alone would say, and how errors of one
object in consecutive frames correlate; boxes filled in between two detections of a track, and how many of them are
right; and average precision with scores averaged along tracks.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.backends.predictor import Predictor, open_predictor
from ptedge.boxes import box_iou
from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset, Sample
from ptedge.detections import Detections
from ptedge.frames.images import read_image
from ptedge.samples.scenes import DOMAINS
from ptedge.samples.write import video_scenes
from ptedge.scores.average_precision import evaluate_detections
from ptedge.scores.jitter import measure_jitter
from ptedge.scores.tracking import Track, link_detections

Image = NDArray[np.uint8]
Floats = NDArray[np.float64]

NOISE, QUALITY = 2.0, 90  # grey levels of a sensor, and of JPEG
SCORE_REACH = 2  # frames on either side over which scores are averaged
FILL_GAPS = (2, 5)  # frames in a row that may be filled


@dataclass
class Clip:
    """Detections and truth of consecutive frames."""

    found: list[Detections]
    truth: list[Sample]
    whole: list[NDArray[np.bool_]]  # [G] labelled boxes that the picture's edge does not cut


def moved(image: Image, boxes: Floats, count: int, rng: np.random.Generator) -> Iterator[tuple[Image, Floats]]:
    """Frames of a still that moves, and its boxes in each, not cut at the edge."""
    height, width = image.shape[:2]
    x0, y0 = width / 2 + rng.uniform(-60, 60), height / 2 + rng.uniform(-20, 20)
    zoom = rng.uniform(0.003, 0.015) * rng.choice([-1, 1])  # a frame
    pan_x, pan_y = rng.uniform(-2.5, 2.5), rng.uniform(-0.7, 0.7)  # pixels a frame
    faster = rng.uniform(-0.05, 0.05)  # pixels a frame squared
    for k in range(-(count // 2), count - count // 2):
        s = np.exp(zoom * k)
        x, y = x0 * (1 - s) + pan_x * k + faster * k * k / 2, y0 * (1 - s) + pan_y * k
        # OpenCV counts from the middle of the first pixel, boxes from its corner
        matrix = np.array([[s, 0, x + 0.5 * s - 0.5], [0, s, y + 0.5 * s - 0.5]])
        frame = cv2.warpAffine(image, matrix, (width, height), flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT)
        noisy = (frame + rng.normal(0, NOISE, frame.shape)).round().clip(0, 255).astype(np.uint8)
        _, data = cv2.imencode(".jpg", noisy, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
        yield np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR), np.uint8), s * boxes + np.array([x, y, x, y])


def clips_of_stills(model: Predictor, data: Dataset, clips: int, frames: int) -> Iterator[Clip]:
    """Moved stills that have labels."""
    rng = np.random.default_rng(0)
    samples = [sample for sample in data.samples if len(sample.boxes)]
    for i in rng.permutation(len(samples))[:clips]:
        sample, clip = samples[i], Clip([], [], [])
        for image, boxes in moved(read_image(sample.path), sample.boxes.astype(np.float64), frames, rng):
            limit = np.tile([image.shape[1], image.shape[0]], 2)
            cut = boxes.clip(0, limit)
            clip.found.append(model.detect(image))
            clip.truth.append(replace(sample, boxes=cut.astype(np.float32), width=limit[0], height=limit[1]))
            clip.whole.append((np.abs(cut - boxes) < 0.01).all(axis=1))
        yield clip


def clips_of_scenes(model: Predictor, domain: str, clips: int, frames: int, fps: float) -> Iterator[Clip]:
    """Drives down generated streets."""
    for seed in range(clips):
        clip = Clip([], [], [])
        for number, scene in enumerate(video_scenes(DOMAINS[domain], frames, fps, seed=100 + seed)):
            height, width = scene.image.shape[:2]
            clip.found.append(model.detect(scene.image))
            clip.truth.append(
                Sample(Path(), width, height, scene.boxes, scene.labels, scene.ignore, f"{seed}-{number}")
            )
            inside = (scene.boxes[:, :2] > 0).all(axis=1) & (scene.boxes[:, 2:] < [width, height]).all(axis=1)
            clip.whole.append(inside)
        yield clip


def right(found: Detections, truth: Sample) -> NDArray[np.int64]:
    """[N] labelled box of its class that each detection overlaps most, by half at least; -1 for none."""
    if not len(truth.boxes) or not len(found):
        return np.full(len(found), -1)
    overlap = box_iou(found.boxes, truth.boxes) * (found.labels[:, None] == truth.labels[None])
    return np.where(overlap.max(axis=1) >= 0.5, overlap.argmax(axis=1), -1)


def one_box(box: NDArray[np.float32], label: int) -> Detections:
    """A detection of box [1, 4] without anything known of it."""
    nothing = np.zeros((1, 4), np.float32)
    return Detections(box, nothing[:, 0], np.array([label]), nothing, nothing[:, 0])


def joined(clips: list[Clip]) -> list[Detections]:
    """All clips one after another, an empty frame between, which ends every track."""
    return [found for clip in clips for found in (*clip.found, Detections.empty())]


def errors_of(clip: Clip, tracks: list[Track]) -> Iterator[tuple[Floats, Floats]]:
    """[T, 4] error over sigma and in shares of the box, of each track; nan where no whole labelled box is found."""
    for track in tracks:
        z, relative = np.full((len(track), 4), np.nan), np.full((len(track), 4), np.nan)
        for i, (frame, row) in enumerate(zip(track.frames.tolist(), track.rows.tolist(), strict=True)):
            one, truth = clip.found[frame].select(np.array([row])), clip.truth[frame]
            j = int(right(one, truth)[0])
            if j < 0 or truth.ignore[j] or not clip.whole[frame][j]:
                continue
            error, box = one.boxes[0].astype(np.float64) - truth.boxes[j], one.boxes[0]
            relative[i] = error / np.tile(box[2:] - box[:2], 2)
            z[i] = error / one.sigma[0]
        yield z, relative


def tell_trembling(clips: list[Clip], least_score: float) -> None:
    """Sigma's scale by labels, and by trembling."""
    pairs = [errors_of(clip, link_detections(clip.found, least_score=least_score)) for clip in clips]
    tracks = [pair for part in pairs for pair in part]
    z, relative = (np.concatenate([pair[i] for pair in tracks]) for i in range(2))
    known = ~np.isnan(z[:, 0])
    offset = np.median(relative[known], axis=0)
    without = np.abs(z - offset * z / np.where(relative == 0, np.inf, relative))[known]
    scale = np.quantile(without, 0.6827, axis=0)
    now, then = (np.concatenate([pair[0][part] for pair in tracks]) for part in (slice(None, -1), slice(1, None)))
    both = ~np.isnan(now[:, 0] + then[:, 0])
    middle = np.median(z[known], axis=0)
    now, then = (np.clip(part[both] - middle, -5, 5) for part in (now, then))
    follow = (now * then).mean(axis=0) / np.sqrt((now**2).mean(axis=0) * (then**2).mean(axis=0))
    size = clips[0].truth[0]
    every = joined(clips)
    trembling = measure_jitter(every, link_detections(every, least_score=least_score), size.width, size.height)
    print(f"{known.sum()} tracked boxes with a label; {trembling.windows} windows of {trembling.tracks} tracks")
    rows = {
        "sigma times, by labels": np.quantile(np.abs(z[known]), 0.6827, axis=0),
        "  offset removed": scale,
        "sigma times, by trembling": trembling.least_scale,
        "  standard error": trembling.error,
        "  share of what is true": trembling.least_scale / scale if trembling.least_scale is not None else None,
        "trembles by, % of the box": None if trembling.jitter is None else 100 * trembling.jitter,
        "correlation of errors, next frame": follow,
    }
    for name, values in rows.items():
        print(f"  {name:<36}" + ("-" if values is None else "".join(f"{value:>8.2f}" for value in values)))


def tell_filled(clips: list[Clip], least_score: float, gap: int) -> None:
    """Boxes between two detections of a track: how many, and how many are right."""
    good, weak, overlaps = [], [], []
    hits, found, labelled = 0, 0, 0
    for clip in clips:
        for one, truth in zip(clip.found, clip.truth, strict=True):
            sure = right(one.select(one.scores >= least_score), truth)
            hits += int((sure >= 0).sum())
            found += len(sure)
            labelled += len(set(np.flatnonzero(~truth.ignore)) - set(sure.tolist()))
        for track in link_detections(clip.found, least_score=least_score, most_missed=gap):
            for k in range(len(track) - 1):
                a, b = int(track.frames[k]), int(track.frames[k + 1])
                ends = [
                    clip.found[f].boxes[r] for f, r in zip(track.frames[k : k + 2], track.rows[k : k + 2], strict=True)
                ]
                for frame in range(a + 1, b):
                    box = np.asarray(ends[0] + (ends[1] - ends[0]) * (frame - a) / (b - a), np.float32)[None]
                    here, truth = clip.found[frame], clip.truth[frame]
                    j = int(right(one_box(box, track.label), truth)[0])
                    if j >= 0 and truth.ignore[j]:
                        continue
                    good.append(j >= 0)
                    near = here.scores[box_iou(box, here.boxes)[0] >= 0.5] if len(here) else np.zeros(1)
                    weak.append(float(near.max(initial=0.0)))
                    overlaps += [float(box_iou(box, truth.boxes)[0, j])] if j >= 0 else []
    print(
        f"score {least_score:g}, at most {gap} filled: detections right {hits}/{found}, labels missed {labelled}; "
        f"filled {len(good)}, right {sum(good)} (IoU {np.median(overlaps or [0]):.2f}); a weaker box lay there "
        f"{sum(score > 0 for score in weak)} times, score {np.median(weak or [0]):.2f}"
    )


def averaged(clip: Clip) -> list[Detections]:
    """Scores averaged over the neighbours in the track; a frame that misses the object counts 0."""
    scores = [found.scores.astype(np.float64) for found in clip.found]
    for track in link_detections(clip.found, least_score=0.05, most_missed=1):
        own = np.zeros(len(clip.found))
        for frame, row in zip(track.frames, track.rows, strict=True):
            own[frame] = clip.found[frame].scores[row]
        for frame, row in zip(track.frames, track.rows, strict=True):
            scores[frame][row] = own[max(0, frame - SCORE_REACH) : frame + SCORE_REACH + 1].mean()
    return [
        replace(found, scores=new.astype(np.float32)).select(np.argsort(-new, kind="stable"))
        for found, new in zip(clip.found, scores, strict=True)
    ]


def tell_scores(clips: list[Clip], class_names: tuple[str, ...]) -> None:
    """Average precision, as it is and with scores averaged along tracks."""
    truth = [sample for clip in clips for sample in clip.truth]
    for name, found in (
        ("as it is", [one for clip in clips for one in clip.found]),
        ("scores averaged", [one for clip in clips for one in averaged(clip)]),
    ):
        metrics = evaluate_detections(found, truth, class_names)
        print(f"{name}: AP50 {metrics.ap50:.3f}, AP75 {metrics.ap75:.3f}")


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--scenes", choices=sorted(DOMAINS))
    parser.add_argument("--clips", type=int, default=24)
    parser.add_argument("--frames", type=int, default=9)
    parser.add_argument("--fps", type=float, default=10.0)
    parser.add_argument("--min-score", type=float, default=0.3)
    options = parser.parse_args()
    model = open_predictor(options.model, threads=1)
    if options.scenes:
        made = clips_of_scenes(model, options.scenes, options.clips, options.frames, options.fps)
    else:
        data = open_dataset(options.data, class_names=model.class_names, use="score")
        made = clips_of_stills(model, data, options.clips, options.frames)
    clips = list(made)
    tell_trembling(clips, options.min_score)
    for score in (0.3, 0.5, 0.7):
        for gap in FILL_GAPS:
            tell_filled(clips, score, gap)
    tell_scores(clips, model.class_names)


if __name__ == "__main__":
    main()
