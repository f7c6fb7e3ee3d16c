"""Frames of a field folder against the reference of a model, day by day.

Most frames were collected because they are unusual, so only those that chance picked tell what the place is like.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import numpy as np

from ptedge.artifacts.manifest import Manifest
from ptedge.detections import Detections
from ptedge.drift.compare import FEWEST, Comparison, compare_frames
from ptedge.drift.measures import FloatArray, measure_frame
from ptedge.drift.words import advice, to_json
from ptedge.errors import ClassMismatchError, InputError
from ptedge.frames.images import read_image
from ptedge.progress import tracked

from ..field import FieldFolder

CHANCE = "random"  # in ``why`` of a frame
UNKNOWN_DAY = "unknown"  # collected before lines had a date
MOST_OF_A_DAY = 300  # frames that are looked at


def drift_of(folder: FieldFolder, manifest: Manifest) -> dict[str, Any]:
    """Whether the frames that chance picked are like the place that a model was made for.

    Args:
        folder: field folder.
        manifest: of the model's bundle, with a reference.

    Returns:
        ``reference`` in words; ``frames`` that chance picked; ``found``, ``moved`` and ``advice`` of the last day;
        ``enough``: some day has frames enough; ``days``, each with ``day`` (UTC), ``collected`` (by chance),
        ``frames`` (looked at), ``enough``, ``found``, ``moved``, ``advice``.

    Raises:
        InputError: the bundle has no reference.
        ClassMismatchError: the folder was collected with other classes.
    """
    if manifest.reference is None:
        raise InputError(
            "the bundle does not say what frames looked like where its model was made. Let it learn that: "
            "ptedge drift BUNDLE FRAMES --learn"
        )
    if folder.class_names != manifest.class_names:
        raise ClassMismatchError(
            "the bundle", manifest.class_names, f"field folder {folder.path}", folder.class_names, "Give its own bundle"
        )
    chosen = [record for record in folder.records() if CHANCE in record.get("why", [])]
    days = []
    for day, records in groupby(sorted(chosen, key=_day_of), _day_of):
        looked = list(records)
        measured = list(_measured(folder, looked, manifest.input_size))
        compared = compare_frames(measured, manifest.reference)
        days.append({"day": day, "collected": len(looked), **_to_json(compared, folder.class_names)})
    last: dict[str, Any] = days[-1] if days else {"found": False, "moved": [], "advice": ""}
    return {
        "reference": manifest.reference.describe(),
        "frames": len(chosen),
        "enough": any(day["enough"] for day in days),
        "found": bool(last["found"]),
        "moved": last["moved"],
        "advice": last["advice"],
        "days": days,
    }


def describe(drift: dict[str, Any]) -> list[str]:
    """The same as lines for a person.

    Args:
        drift: of :func:`drift_of`.
    """
    lines = [f"drift      {drift['frames']} frames picked by chance, against {drift['reference']}"]
    for day in drift["days"]:
        told = "; ".join(entry["text"] for entry in day["moved"]) or "as usual"
        if not day["enough"]:
            told = f"too few to say anything ({FEWEST} are needed)"
        lines.append(f"  {day['day']}  {day['frames']} frames: {told}")
    return [*lines, drift["advice"]] if drift["advice"] else lines


def _to_json(compared: Comparison, class_names: tuple[str, ...]) -> dict[str, Any]:
    return {
        "frames": compared.frames,
        "enough": compared.enough,
        "found": bool(compared.moved),
        "moved": [to_json(moved, class_names) for moved in compared.moved],
        "advice": advice(compared.moved),
    }


def _measured(
    folder: FieldFolder, records: list[dict[str, Any]], input_size: tuple[int, int]
) -> Iterator[dict[str, FloatArray]]:
    """Measures of evenly spaced frames of a day; an image that is gone is passed over, as the summary counts lines."""
    classes = len(folder.class_names)
    chosen = np.unique(np.linspace(0, len(records) - 1, min(len(records), MOST_OF_A_DAY)).round().astype(int))
    for index in tracked(chosen.tolist(), "looking at frames", "frames"):
        record = records[index]
        try:
            image = read_image(folder.path / record["file"])
        except InputError:
            continue
        yield measure_frame(image, Detections.from_json(record["detections"]), input_size, classes)


def _day_of(record: dict[str, Any]) -> str:
    """The day, UTC, that a frame was collected on."""
    return str(record.get("collected", UNKNOWN_DAY))[:10]
