"""What ``ptedge run --quick-shrink`` saves and what it changes: processor time, pixels, and AP on labelled images.

    python tests/bench/quick_shrink.py BUNDLE DATA [--width 1280] [--repeats 40]

Every image of DATA becomes network input by area averaging and by the quick way, and BUNDLE answers both. With
``--width`` the images are enlarged to that width first, as cameras have more pixels than data sets; a bundle with a
small input (``ptedge export --size``) shows the same on pixels as they were taken. The difference of AP50 comes with 90
% bounds by drawing images.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.data import open_dataset
from ptedge.detections import Detections
from ptedge.frames.images import read_image
from ptedge.preprocess import Letterbox
from ptedge.scores.average_precision import evaluate_detections
from ptedge.scores.paired import paired_ap50

WAYS = {"area": False, "quick": True}


def processor_ms(work: Callable[[], object], repeats: int) -> float:
    """Median of the thread's processor time, ms."""
    taken = []
    for _ in range(repeats):
        start = time.thread_time()
        work()
        taken.append(time.thread_time() - start)
    return 1e3 * statistics.median(taken)


def main() -> None:
    """Measure and print one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bundle", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--width", type=int, help="enlarge images to this width first")
    parser.add_argument("--repeats", type=int, default=40, help="of the timing")
    options = parser.parse_args()
    cv2.setNumThreads(1)
    models = {way: BundlePredictor(options.bundle, "cpu", 1, quick_shrink=quick) for way, quick in WAYS.items()}
    dataset = open_dataset(options.data)
    found: dict[str, list[Detections]] = {way: [] for way in WAYS}
    away = []
    for sample in dataset.samples:
        image = read_image(sample.path)
        factor = options.width / image.shape[1] if options.width else 1.0
        if options.width:
            size = options.width, round(image.shape[0] * factor)
            image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_CUBIC), np.uint8)
        for way, model in models.items():
            one = model.detect(image)
            found[way].append(replace(one, boxes=np.asarray(one.boxes / factor, np.float32)))
        placed = Letterbox(image.shape[1], image.shape[0], *models["area"].input_size)
        inputs = [placed.image(image, quick=quick).astype(np.int16) for quick in WAYS.values()]
        away.append(np.abs(inputs[1] - inputs[0]))
    scores = {way: evaluate_detections(one, dataset.samples, dataset.class_names) for way, one in found.items()}
    pair = paired_ap50(found["area"], found["quick"], dataset.samples, len(dataset.class_names))
    report = {
        "images": len(dataset.samples),
        "pixels_a_side": round(1 / placed.scale, 2),
        "processor_ms": {
            way: round(processor_ms(lambda quick=quick: placed.image(image, quick=quick), options.repeats), 2)
            for way, quick in WAYS.items()
        },
        "grey_levels_away": {
            "mean": round(float(np.mean([x.mean() for x in away])), 3),
            "most": int(max(x.max() for x in away)),
        },
        **{way: {"AP50": one.ap50, "AP75": one.ap75, "AP": one.ap} for way, one in scores.items()},
        "AP50_difference": None if pair is None else {"value": pair.value, "low": pair.low, "high": pair.high},
    }
    print(json.dumps(report, indent=2))


if __name__ == "__main__":
    main()
