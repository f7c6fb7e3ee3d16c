"""Detection operators of fixed shape, for the exported graph.

Ordinary NMS, NonZero and RoIAlign have outputs whose size depends on the data, or need a plugin; TensorRT and ONNX
Runtime pay for both. Here everything is comparison, matrix product and TopK. Leading dimensions ``...`` are the batch.
"""

from __future__ import annotations

import torch
from torch import Tensor

ROI_SIZE = 7
SAMPLES = 2  # sampling points of a bin and axis; _bin_weights adds exactly two


def fixpoint_nms(
    boxes: Tensor,
    alive: Tensor,
    iou_threshold: float,
    labels: Tensor | None = None,
    rounds: int = 12,
    block: int = 640,
) -> tuple[Tensor, Tensor]:
    """Greedy non-maximum suppression as a fixpoint, without data-dependent shapes.

    With M[i, j] = 1 where box i comes before j and overlaps it, the survivors are the only solution of
    ``keep = alive and not any(keep and M)``. Iterating that from ``alive`` gives bounds in turns, each nearer than the
    last: after an even number of rounds nothing is missing, after an odd number nothing is too much. Where two meet,
    they are the answer; that takes as many rounds as the longest chain of boxes that suppress each other. Boxes beyond
    ``block`` are taken in blocks, best first: a finished block suppresses all later ones in one matrix product, so
    chains are cut at block borders and memory stays small.

    Args:
        boxes: [..., N, 4] xyxy, best score first, x1 <= x2 and y1 <= y2.
        alive: [..., N] 1.0 for boxes that take part, 0.0 for the others.
        iou_threshold: a box is suppressed by a better survivor of IoU above this.
        labels: [..., N] class of each box, or ``None``: only boxes of one class suppress each other.
        rounds: iterations a block; even, so that a box too many is kept where they do not suffice, and none is lost.
        block: boxes a block.

    Returns:
        keep [..., N] 1.0 for survivors; converged [...] 1.0 where the last round changed nothing in any block, which
        proves that keep is the answer of greedy NMS.
    """
    rows = _overlap_fields(boxes, iou_threshold, labels)  # [..., N, F]
    columns = rows.transpose(-1, -2)  # [..., F, N]
    entering = alive.unsqueeze(-2)  # [..., 1, N], of the boxes that are left
    done: list[Tensor] = []
    changed: list[Tensor] = []
    while True:
        left = rows.shape[-2]
        size = min(block, left)
        here, columns_here, columns_left, entering_left = rows, columns, columns, entering
        if size < left:
            here, rows = torch.split(rows, [size, left - size], dim=-2)
            columns_here, columns_left = torch.split(columns, [size, left - size], dim=-1)
            entering, entering_left = torch.split(entering, [size, left - size], dim=-1)
        earlier = torch.ones(size, size, dtype=torch.bool, device=boxes.device).triu(1)
        within = (_overlap(here, columns_here) & earlier).to(boxes.dtype)
        keep, previous = entering, entering
        for _ in range(rounds):
            # the product counts suppressors, so this is 1 exactly for living boxes that have none
            keep, previous = torch.relu(entering - torch.matmul(keep, within)), keep
        done.append(keep)
        changed.append((keep - previous).abs().amax((-1, -2)))
        if size == left:
            break
        entering = torch.relu(entering_left - torch.matmul(keep, _overlap(here, columns_left).to(boxes.dtype)))
        columns = columns_left
    if len(done) == 1:
        return done[0].squeeze(-2), 1.0 - changed[0]
    return torch.cat(done, dim=-1).squeeze(-2), 1.0 - torch.stack(changed, dim=-1).amax(-1)


def _overlap_fields(boxes: Tensor, iou_threshold: float, labels: Tensor | None) -> Tensor:
    """What :func:`_overlap` compares: [..., N, 4] -> [..., N, 5 or 6].

    IoU > t is intersection > t / (1 + t) * (area_i + area_j): no division, and no union to compute. So each box brings
    its sides, its share of what the intersection must exceed, and its class where classes count.
    """
    top_left, bottom_right = torch.split(boxes, 2, dim=-1)
    width, height = torch.split(bottom_right - top_left, 1, dim=-1)
    fields = [boxes, width * height * (iou_threshold / (1.0 + iou_threshold))]
    if labels is not None:
        fields.append(labels.unsqueeze(-1).to(boxes.dtype))
    return torch.cat(fields, dim=-1)


def _overlap(rows: Tensor, columns: Tensor) -> Tensor:
    """True where a row's box and a column's overlap above the threshold: [..., n, F] x [..., F, m] -> [..., n, m]."""
    x1, y1, x2, y2, share, *label = torch.split(rows, 1, dim=-1)
    column_x1, column_y1, column_x2, column_y2, column_share, *column_label = torch.split(columns, 1, dim=-2)
    width = torch.relu(torch.minimum(x2, column_x2) - torch.maximum(x1, column_x1))
    # a negative height needs no clamp: the product is then never above the shares, which are not negative
    height = torch.minimum(y2, column_y2) - torch.maximum(y1, column_y1)
    overlap: Tensor = width * height > share + column_share
    if label:
        overlap = overlap & (label[0] == column_label[0])
    return overlap


def static_roi_align(features: Tensor, boxes: Tensor, spatial_scale: float) -> Tensor:
    """RoIAlign (7 x 7 bins, 2 x 2 samples, aligned) as two matrix products.

    Bilinear sampling is separable: out[i, j] = sum over y, x of Wy[i, y] Wx[j, x] F[y, x], where a row of W is the mean
    of the hat functions of a bin's two sampling points. The longer axis goes first, so that less is held in between.

    Args:
        features: [B, C, h, w].
        boxes: [B, R, 4] xyxy in image pixels, within the image: every sampling point then lies on the features.
        spatial_scale: feature cells a pixel, e.g. 1 / 16.

    Returns:
        [B, R, 7 * 7 * C]: in the order given by :func:`roi_feature_order`, channels fastest.

    Reference:
        He et al., Mask R-CNN, 2017, section 3; with the half-pixel shift (``aligned=True``) of later implementations.
    """
    B, C, h, w = features.shape
    R = boxes.shape[1]
    x_weights, y_weights = _bin_weights(boxes, (w, h), spatial_scale)  # [B, R, 7, w], [B, R, 7, h]
    # channels last in two steps that are plain matrix transposes: runtimes are slow at the general one
    cells = features.reshape(B, C, h * w).transpose(1, 2).reshape(B, h, w, C)
    if _x_first(h, w):
        first, second, cells = x_weights, y_weights, cells.transpose(1, 2)  # [B, w, h, C]
    else:
        first, second = y_weights, x_weights
    long, short = cells.shape[1:3]
    half = torch.matmul(first.reshape(B, R * ROI_SIZE, long), cells.reshape(B, long, short * C))
    half = half.reshape(B, R, ROI_SIZE, short, C)
    pooled = torch.matmul(second.unsqueeze(2), half)  # [B, R, 7 (long axis), 7 (short axis), C]
    return pooled.reshape(B, R, ROI_SIZE * ROI_SIZE * C)


def _x_first(h: int, w: int) -> bool:
    return w >= h


def _bin_weights(boxes: Tensor, lengths: tuple[int, int], spatial_scale: float) -> tuple[Tensor, Tensor]:
    """Weight of each cell in the mean over a bin's sampling points, along x and along y.

    Lengths are in units of ``SAMPLES`` cells, which is exact and makes a hat of two sampling points half as high.

    Args:
        boxes: [..., R, 4] xyxy in image pixels, within the image.
        lengths: cells in x and in y.
        spatial_scale: cells a pixel.

    Returns:
        [..., R, 7, w] and [..., R, 7, h].
    """
    bins = torch.arange(ROI_SIZE, dtype=boxes.dtype, device=boxes.device)
    # all first sampling points of the bins, then all second ones
    offsets = torch.cat([(bins + (k + 0.5) / SAMPLES) / ROI_SIZE for k in range(SAMPLES)]).unsqueeze(-1)  # [14, 1]
    low, high = torch.split(boxes, 2, dim=-1)  # [..., R, 2]
    start = low * (spatial_scale / SAMPLES) - 0.5 / SAMPLES
    extent = (high - low) * (spatial_scale / SAMPLES)
    position = start.unsqueeze(-2) + extent.unsqueeze(-2) * offsets  # [..., R, 14, 2]
    last = boxes.new_tensor([(length - 1) / SAMPLES for length in lengths])
    weights = []
    for along, length in zip(torch.split(torch.minimum(torch.relu(position), last), 1, dim=-1), lengths, strict=True):
        cells = torch.arange(length, dtype=boxes.dtype, device=boxes.device) / SAMPLES
        hats = torch.relu(1.0 / SAMPLES - (along - cells).abs())  # [..., R, 14, length]
        first, second = torch.split(hats, ROI_SIZE, dim=-2)
        weights.append(first + second)
    return weights[0], weights[1]


def roi_feature_order(channels: int, h: int, w: int) -> Tensor:
    """Where each feature of :func:`static_roi_align` stands in RoIAlign's usual [C, 7 (y), 7 (x)] layout.

    A linear layer trained on the usual layout takes the new one with ``weight[:, order]``.

    Args:
        channels: C.
        h: feature rows.
        w: feature columns.

    Returns:
        [49 * C] int64 indices.
    """
    usual = torch.arange(channels * ROI_SIZE * ROI_SIZE).reshape(channels, ROI_SIZE, ROI_SIZE)
    return usual.permute(2, 1, 0).flatten() if _x_first(h, w) else usual.permute(1, 2, 0).flatten()


def best_rows(scores: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Compaction without NonZero: the rows of the highest scores.

    Args:
        scores: [B, N]; rows to leave out carry a score below all others.
        count: rows wanted; at most N are given.

    Returns:
        scores [B, n] and indices [B, n], best first, n = min(count, N).
    """
    best = torch.topk(scores, min(count, scores.shape[1]), dim=1)
    return best.values, best.indices


def take_rows(values: Tensor, indices: Tensor) -> Tensor:
    """Rows of each image.

    Args:
        values: [B, N, F].
        indices: [B, n].

    Returns:
        [B, n, F].
    """
    B, N = values.shape[:2]
    if B > 1:  # one gather along one axis; a gather of elements needs an index for each of them
        indices = indices + N * torch.arange(B, device=indices.device).unsqueeze(1)
    return values.flatten(0, 1)[indices]
