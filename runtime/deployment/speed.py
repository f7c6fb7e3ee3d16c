"""How fast a bundle is here, beside the one that runs: both in turns, so that heat and other load meet both."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ptedge.backends.bundle_predictor import BundlePredictor

from ..benchmark.measure import STAGES, Subject, measure, noise
from ..benchmark.stats import paired_ratio
from .check import GateCheck
from .options import GateOptions

WARM_UP = 1.0  # seconds of each that are not counted


def check_speed(
    challenger: BundlePredictor,
    champion: BundlePredictor | None,
    frames: Sequence[NDArray[np.uint8]],
    options: GateOptions,
) -> GateCheck:
    """Measure from picture to detections.

    Args:
        challenger: to be promoted.
        champion: that runs; ``None`` for none.
        frames: pictures to measure on; a made one without any.
        options: ``seconds``, ``max_ms`` and ``max_ratio``.
    """
    if options.seconds == 0:
        return GateCheck("speed", True, "not measured: --seconds 0", judged=False)
    images = list(frames) or [noise()]
    subjects = [Subject("challenger", challenger, images)]
    if champion is not None:
        subjects.append(Subject("champion", champion, images))
    for _ in measure(subjects, options.seconds, WARM_UP):
        pass
    times = [_milliseconds(subject) for subject in subjects]
    p90 = float(np.percentile(np.concatenate(times[0]), 90))
    text = f"9 of 10 frames in {p90:.1f} ms on {challenger.runner.backend}"
    figures = {"p90_ms": round(p90, 2)}
    passed, judged = True, False
    if options.max_ms is not None:
        passed, judged = p90 <= options.max_ms, True
        text += f" (allowed: {options.max_ms:g})"
    if champion is not None:
        medians = [[float(np.median(turn)) for turn in turns] for turns in times]
        found = paired_ratio(medians[1], medians[0])
        passed, judged = passed and found.value <= options.max_ratio, True
        text += f"; {found.value:.2f} times what the running version takes (allowed: {options.max_ratio:g})"
        figures["ratio"] = round(found.value, 4)
    return GateCheck("speed", passed, text, judged, figures=figures)


def _milliseconds(subject: Subject) -> list[NDArray[np.float64]]:
    """From picture to detections, of each turn."""
    column = STAGES.index("end_to_end")
    return [turn.times[:, column] * 1000 for turn in subject.rounds]
