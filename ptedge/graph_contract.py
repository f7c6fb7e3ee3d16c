"""The graph between export and device: names, types and shapes of its inputs and outputs, and how they are read.

One input: ``images`` [B, 3, H, W] uint8 RGB, letterboxed. Outputs, D rows an image, best score first:

- ``boxes`` [B, D, 4] float32, xyxy in pixels of the input;
- ``scores`` [B, D] float32 in [0, 1];
- ``labels`` [B, D] int32, 0-based;
- ``sigma`` [B, D, 4] float32, standard deviation in input pixels of x1, y1, x2, y2;
- ``num_detections`` [B] int32: how many rows are used; the others are zero;
- ``entropy`` [B, D] float32, of the class distribution in nats;
- ``converged`` [B] int32: 1 where suppression reached its fixpoint, 0 where it stopped before and boxes may overlap.

Two constants, by name, hold the calibration of the sides, which is in boxes and sigma already (graphs of manifests of
schema 1 have none): ``side_offset`` [4] and ``sigma_scale`` [4] float32, 0 and 1 where there is none.

The graph can be cut at tensors that have names in it, of which float ones are float16 where the layers around them are.
N anchors (cell by cell, row by row), R proposals, K classes; :mod:`ptedge.stages` does what lies between the stages and
behind the second:

- first stage, from ``images``: ``features`` [B, C, h, w], what RoIAlign reads; ``objectness`` [B, N] logits;
  ``anchor_deltas`` [B, N, 4];
- second stage, from ``features`` and ``proposals`` [B, R, 4] float32, xyxy in pixels of the input: ``logits``
  [B, R, K + 1], background last; ``box_deltas`` [B, R, K, 4]; ``variances`` [B, R, K, 4] in delta space, which a graph
  of a vanilla detector does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.detections import Detections

Signature = dict[str, tuple[tuple[int, ...], np.dtype[Any]]]  # name -> (shape, type), in the graph's order
Outputs = Mapping[str, NDArray[Any]]

IMAGES = "images"
SIDE_OFFSET, SIGMA_SCALE = "side_offset", "sigma_scale"
OUTPUTS = ("boxes", "scores", "labels", "sigma", "num_detections", "entropy", "converged")
FEATURES, OBJECTNESS, ANCHOR_DELTAS = FIRST_STAGE = ("features", "objectness", "anchor_deltas")
PROPOSALS = "proposals"
LOGITS, BOX_DELTAS, VARIANCES = SECOND_STAGE = ("logits", "box_deltas", "variances")
ROW_OUTPUTS = ("boxes", "scores", "labels", "sigma", "entropy")  # those with D rows an image


def input_signature(batch: int, input_size: tuple[int, int]) -> Signature:
    """What a graph takes.

    Args:
        batch: images a call, B.
        input_size: (height, width) in pixels.
    """
    return {IMAGES: ((batch, 3, *input_size), np.dtype(np.uint8))}


def output_signature(batch: int, max_detections: int) -> Signature:
    """What a graph gives, in the order of :data:`OUTPUTS`.

    Args:
        batch: images a call, B.
        max_detections: rows an image, D.
    """
    float32, int32 = np.dtype(np.float32), np.dtype(np.int32)
    images, rows, corners = (batch,), (batch, max_detections), (batch, max_detections, 4)
    return {
        "boxes": (corners, float32),
        "scores": (rows, float32),
        "labels": (rows, int32),
        "sigma": (corners, float32),
        "num_detections": (images, int32),
        "entropy": (rows, float32),
        "converged": (images, int32),
    }


def detections_of(outputs: Outputs, image: int) -> Detections:
    """Detections of one image of the batch, in pixels of the input; sigma as the graph gives it.

    Args:
        outputs: of the graph.
        image: its place in the batch.
    """
    n = int(outputs["num_detections"][image])
    return Detections(
        boxes=outputs["boxes"][image, :n].astype(np.float32),
        scores=outputs["scores"][image, :n].astype(np.float32),
        labels=outputs["labels"][image, :n].astype(np.int64),
        sigma=outputs["sigma"][image, :n].astype(np.float32),
        entropy=outputs["entropy"][image, :n].astype(np.float32),
    )


def converged_images(outputs: Outputs) -> NDArray[np.bool_]:
    """Where suppression reached its fixpoint.

    Args:
        outputs: of the graph.

    Returns:
        [B].
    """
    return np.asarray(outputs["converged"] != 0)


def unused_rows(outputs: Outputs) -> NDArray[np.bool_]:
    """Rows that hold no detection; the graph promises zeros there.

    Args:
        outputs: of the graph.

    Returns:
        [B, D].
    """
    rows = np.arange(outputs["scores"].shape[1])
    return np.asarray(rows >= outputs["num_detections"][:, None])
