"""What becomes of ignore regions once a data set is read: benchmarks, and those who publish on them, differ."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ptedge.data.classes import ANY_CLASS
from ptedge.data.dataset import Dataset

# neither found nor missed; as if never drawn; boxes like any other
REGIONS = ("ignore", "drop", "keep")

DROPPED = 'ignore region left out (regions = "drop")'
KEPT = 'ignore region taken as a box (regions = "keep")'


def with_regions(dataset: Dataset, rule: str) -> Dataset:
    """The data with their ignore regions as a benchmark has them; what changes is counted in the notes.

    Args:
        dataset: as its reader gives it: groups, crowds, difficult objects and areas of no interest are ignore regions.
        rule: of :data:`REGIONS`. ``ignore`` leaves them so. ``drop`` leaves them out, so that a detection there is a
            false alarm and training learns background: what conversions do that never carried them over. ``keep``
            makes them boxes like any other, but for regions that stand for every class.
    """
    if rule == "ignore":
        return dataset
    changed = 0
    samples = []
    for sample in dataset.samples:
        own = sample.ignore if rule == "drop" else sample.ignore & (sample.labels != ANY_CLASS)
        changed += int(own.sum())
        if not own.any():
            samples.append(sample)
        elif rule == "keep":
            samples.append(replace(sample, ignore=sample.ignore & ~own))
        else:
            rest = np.flatnonzero(~own)
            boxes, labels, ignore = sample.boxes[rest], sample.labels[rest], sample.ignore[rest]
            samples.append(replace(sample, boxes=boxes, labels=labels, ignore=ignore))
    if not changed:
        return dataset
    notes = {**dataset.notes, DROPPED if rule == "drop" else KEPT: changed}
    return replace(dataset, samples=tuple(samples), notes=notes)
