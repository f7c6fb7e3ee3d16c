"""What the teacher's boxes are off by on labelled frames of the target, measured again and again during a run."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ptedge.data.dataset import Dataset
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import InputError

from ..batches.augment import AugmentConfig
from ..batches.few import few_views
from ..losses.offset import common_offset, side_errors
from ..losses.source import ImageLabels

MOST_FRAMES = 32  # asked each time
CHUNK = 8  # images a forward pass


class LabelOffset(nn.Module):
    """The present offset, and the labelled frames on which it is measured.

    Pseudo boxes have the teacher's offset, so without this they teach the student what the labels contradict. On frames
    that the student learns from the offset is rather under- than overrated, so too little is taken away, not too much.

    Args:
        few: labelled frames.
        input_size: (height, width) in pixels.
        every: steps between measurements.
        device: where the teacher is.
    """

    offset: Tensor
    steps: Tensor

    def __init__(self, few: Dataset, input_size: tuple[int, int], every: int, device: torch.device) -> None:
        super().__init__()
        self.every = every
        # [4] x1, y1, x2, y2 over the box's size; state of the run, as is what counts the steps
        self.register_buffer("offset", torch.zeros(4, device=device))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self._frames = _read(few, input_size)

    def measure(self, teacher: ProbabilisticFasterRCNN) -> None:
        """Ask the teacher about the labelled frames, as they are.

        Args:
            teacher: in eval mode.
        """
        device = self.offset.device
        errors = []
        for first in range(0, len(self._frames), CHUNK):
            part = self._frames[first : first + CHUNK]
            images = torch.stack([image for image, _ in part]).to(device).float()
            found = teacher.detect(images.contiguous(memory_format=torch.channels_last))
            for detections, (_, labels) in zip(found, part, strict=True):
                true, classes = labels.boxes.to(device), labels.labels.to(device)
                errors.append(side_errors(detections.boxes, detections.labels, true, classes))
        if errors:
            self.offset.copy_(common_offset(torch.cat(errors)))

    def after_step(self, teacher: ProbabilisticFasterRCNN) -> None:
        """Count a step, and measure when it is time."""
        self.steps += 1
        if int(self.steps) % self.every == 0:
            self.measure(teacher)


def _read(few: Dataset, input_size: tuple[int, int]) -> list[tuple[Tensor, ImageLabels]]:
    """Labelled frames with boxes, not augmented; what cannot be read is said when its turn comes."""
    views = few_views(few, input_size, AugmentConfig(), "still")
    found: list[tuple[Tensor, ImageLabels]] = []
    for index, sample in enumerate(few.samples):
        if len(found) == MOST_FRAMES:
            break
        if not len(sample.boxes):
            continue
        try:
            image, labels = views(index, torch.Generator())
        except InputError:
            continue
        found.append((torch.from_numpy(image).permute(2, 0, 1), labels))
    return found
