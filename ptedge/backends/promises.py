"""What a graph's answers promise whatever the image shows: finite, ordered, inside the input, zero where empty."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ptedge.artifacts.manifest import Manifest
from ptedge.graph_contract import ROW_OUTPUTS, Outputs, converged_images, detections_of, unused_rows


def broken_promises(outputs: Outputs, manifest: Manifest, *, made: bool = False) -> list[str]:
    """What the graph's outputs promise whatever the image shows, and do not keep.

    Args:
        outputs: for N images.
        manifest: gives the input size, the classes and the threshold.
        made: images that no camera takes. On an even one boxes suppress each other in chains of any length, and NMS may
            stop before its end: the graph then says so, as it should.
    """
    height, width = manifest.input_size
    problems = []
    if not all(np.isfinite(value).all() for value in outputs.values()):
        problems.append("numbers that are not finite")
    early = int((~converged_images(outputs)).sum())
    if early and not made:
        problems.append(f"NMS not at its fixpoint in {early} images")
    unused = unused_rows(outputs)  # [N, D]
    for name in ROW_OUTPUTS:
        if outputs[name][unused].any():
            problems.append(f"{name} beyond num_detections are not zero")
    for image in range(len(outputs["num_detections"])):
        found = detections_of(outputs, image)
        x1, y1, x2, y2 = found.boxes.T
        if not ((x1 >= 0) & (y1 >= 0) & (x2 <= width) & (y2 <= height) & (x1 <= x2) & (y1 <= y2)).all():
            problems.append("a box is inverted or outside the input")
        if (np.diff(found.scores) > 0).any() or not (
            (found.scores > manifest.score_threshold) & (found.scores <= 1)
        ).all():
            problems.append("scores are not in descending order within (threshold, 1]")
        if not ((found.labels >= 0) & (found.labels < len(manifest.class_names))).all():
            problems.append("a label has no class")
        if (found.sigma < 0).any() or (found.entropy < -1e-5).any():
            problems.append("sigma or entropy is negative")
    return problems


def promises_kept(answers: Mapping[str, Outputs]) -> str:
    """In words, and how many detections each kind of image gave.

    Args:
        answers: kind of image -> outputs that keep their promises.
    """
    found = ", ".join(f"{name} {int(outputs['num_detections'].sum())}" for name, outputs in answers.items())
    cut = {name: int((~converged_images(outputs)).sum()) for name, outputs in answers.items()}
    nms = ", ".join(f"NMS cut short in {count} of {name}" for name, count in cut.items() if count)
    return f"finite, ordered, inside, padding zero, {nms or 'NMS converged'}; detections: {found}"
