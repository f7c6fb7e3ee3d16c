"""Learnable anchors: A shapes as log(width, height), the same at every cell of the feature map."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from .config import STRIDE


class LearnableAnchors(nn.Module):
    """A anchor shapes; the centre of the cell is the centre of its anchors.

    The parameter is the logarithm, so shapes stay positive and a step changes them by a factor.

    Args:
        sizes: square roots of areas, input pixels.
        ratios: height / width.

    Reference:
        method.md section 6; the paper's code learns raw pixels.
    """

    def __init__(self, sizes: Sequence[float], ratios: Sequence[float]) -> None:
        super().__init__()
        shapes = [(size / math.sqrt(ratio), size * math.sqrt(ratio)) for size in sizes for ratio in ratios]
        self.log_wh = nn.Parameter(torch.tensor(shapes, dtype=torch.float32).log())  # [A, 2]

    def shapes(self) -> Tensor:
        """[A, 2] (width, height) in input pixels, with gradient."""
        return self.log_wh.exp()

    def forward(self, height: int, width: int) -> Tensor:
        """Anchors of a feature map.

        Args:
            height: rows of the feature map.
            width: columns of the feature map.

        Returns:
            [height * width * A, 4] xyxy in input pixels; row-major cells, then shapes. Not clipped.
        """
        device = self.log_wh.device
        x = (torch.arange(width, device=device, dtype=torch.float32) + 0.5) * STRIDE
        y = (torch.arange(height, device=device, dtype=torch.float32) + 0.5) * STRIDE
        grid_y, grid_x = torch.meshgrid(y, x, indexing="ij")
        centres = torch.stack([grid_x, grid_y], dim=-1).reshape(-1, 1, 2)  # [h*w, 1, 2]
        half = 0.5 * self.shapes().unsqueeze(0)  # [1, A, 2]
        return torch.cat([centres - half, centres + half], dim=-1).reshape(-1, 4)
