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
    rounds: int = 16,
    block: int = 256,
) -> tuple[Tensor, Tensor]:
    """Greedy non-maximum suppression as a fixpoint, without data-dependent shapes.

    With M[i, j] = 1 where box i comes before j and overlaps it, the survivors are the only solution of
    ``keep = alive and not any(keep and M)``. Iterating that reaches it after as many rounds as the longest chain of
    boxes that suppress each other. Boxes are taken in blocks, best first: a finished block suppresses all later ones
    in one matrix product, so chains are cut at block borders and only half of M is ever computed.

    Args:
        boxes: [..., N, 4] xyxy, best score first.
        alive: [..., N] 1.0 for boxes that take part, 0.0 for the others.
        iou_threshold: a box is suppressed by a better survivor of IoU above this.
        labels: [..., N] class of each box, or ``None``: only boxes of one class suppress each other.
        rounds: iterations a block.
        block: boxes a block.

    Returns:
        keep [..., N] 1.0 for survivors; converged [...] 1.0 where the last round changed nothing in any block, which
        proves that keep is the answer of greedy NMS.
    """
    N = boxes.shape[-2]
    # IoU > t is intersection > t / (1 + t) * (area_i + area_j): no division, and no union to compute
    area = (boxes[..., 2:] - boxes[..., :2]).clamp(min=0).prod(-1, keepdim=True)
    fields = [boxes, area * (iou_threshold / (1.0 + iou_threshold))]
    if labels is not None:
        fields.append(labels.unsqueeze(-1).to(boxes.dtype))
    rows = torch.cat(fields, dim=-1)  # [..., N, 5 or 6]
    columns = rows.transpose(-1, -2)  # [..., 5 or 6, N]
    alive = alive.unsqueeze(-2)  # [..., 1, N]
    done: list[Tensor] = []
    converged: list[Tensor] = []
    for start in range(0, N, block):
        size = min(block, N - start)
        entering = alive[..., :size]  # of the boxes from start on
        overlap = _overlap(rows[..., start : start + size, :], columns[..., start:])  # [..., size, N - start]
        # inside the block only earlier boxes suppress; in the columns behind it all rows do
        within = overlap[..., :size].triu(1)
        keep, previous = entering, entering
        for _ in range(rounds):
            # the product counts suppressors, so this is 1 exactly for living boxes that have none
            keep, previous = torch.relu(entering - torch.matmul(keep, within)), keep
        done.append(keep)
        converged.append((keep - previous).abs().amax((-1, -2)))
        if start + size < N:
            alive = torch.relu(alive[..., size:] - torch.matmul(keep, overlap[..., size:]))
    changed = torch.stack(converged, dim=-1).amax(-1)
    return torch.cat(done, dim=-1).squeeze(-2), 1.0 - changed


def _overlap(rows: Tensor, columns: Tensor) -> Tensor:
    """1.0 where a row's box and a column's overlap above the threshold: [..., n, F] x [..., F, m] -> [..., n, m].

    The F fields are x1, y1, x2, y2, the share of the area that the intersection must exceed, and the class where
    classes count.
    """
    x1, y1, x2, y2, share, *label = torch.split(rows, 1, dim=-1)
    column_x1, column_y1, column_x2, column_y2, column_share, *column_label = torch.split(columns, 1, dim=-2)
    width = torch.relu(torch.minimum(x2, column_x2) - torch.maximum(x1, column_x1))
    # a negative height needs no clamp: the product is then never above the shares, which are not negative
    height = torch.minimum(y2, column_y2) - torch.maximum(y1, column_y1)
    overlap: Tensor = width * height > share + column_share
    if label:
        overlap = overlap & (label[0] == column_label[0])
    return overlap.to(rows.dtype)


def static_roi_align(features: Tensor, boxes: Tensor, spatial_scale: float) -> Tensor:
    """RoIAlign (7 x 7 bins, 2 x 2 samples, aligned) as two matrix products.

    Bilinear sampling is separable: out[i, j] = sum over y, x of Wy[i, y] Wx[j, x] F[y, x], where a row of W is the mean
    of the hat functions of a bin's two sampling points. The longer axis goes first, so that less is held in between.

    Args:
        features: [B, C, h, w].
        boxes: [B, R, 4] xyxy in image pixels.
        spatial_scale: feature cells a pixel, e.g. 1 / 16.

    Returns:
        [B, R, 7 * 7 * C]: in the order given by :func:`roi_feature_order`, channels fastest.

    Reference:
        He et al., Mask R-CNN, 2017, section 3; with the half-pixel shift (``aligned=True``) of later implementations.
    """
    B, C, h, w = features.shape
    R = boxes.shape[1]
    x_weights = _bin_weights(boxes[..., 0], boxes[..., 2], w, spatial_scale)  # [B, R, 7, w]
    y_weights = _bin_weights(boxes[..., 1], boxes[..., 3], h, spatial_scale)  # [B, R, 7, h]
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


def _bin_weights(low: Tensor, high: Tensor, length: int, spatial_scale: float) -> Tensor:
    """Weight of each cell along one axis in the mean over a bin's sampling points: [..., R] -> [..., R, 7, length]."""
    bins = torch.arange(ROI_SIZE, dtype=low.dtype, device=low.device)
    # all first sampling points of the bins, then all second ones
    offsets = torch.cat([(bins + (k + 0.5) / SAMPLES) / ROI_SIZE for k in range(SAMPLES)])  # [14]
    start = low.unsqueeze(-1) * spatial_scale - 0.5
    position = start + ((high - low) * spatial_scale).unsqueeze(-1) * offsets  # [..., R, 14]
    inside = ((position >= -1.0) & (position <= float(length))).to(low.dtype) / SAMPLES
    position = position.clamp(0.0, float(length - 1)).unsqueeze(-1)
    cells = torch.arange(length, dtype=low.dtype, device=low.device)
    hats = torch.relu(1.0 - (position - cells).abs()) * inside.unsqueeze(-1)  # [..., R, 14, length]
    return hats[..., :ROI_SIZE, :] + hats[..., ROI_SIZE:, :]


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
        values: [B, N] or [B, N, F].
        indices: [B, n].

    Returns:
        [B, n] or [B, n, F].
    """
    if values.dim() == 2:
        return values.gather(1, indices)
    return values.gather(1, indices.unsqueeze(-1).expand(-1, -1, values.shape[-1]))
