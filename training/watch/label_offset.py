"""The offset that the sides of the teacher's boxes share, told by labelled frames of the target."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ptedge.data.dataset import Dataset
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.roi_heads import RawDetections
from ptedge.errors import InputError
from ptedge.frames.source import FrameIndex

from ..batches.augment import AugmentConfig
from ..batches.few import few_views
from ..batches.steps import OFFSET_STREAM, draw_index
from ..batches.views import TargetViews
from ..losses.offset import mirrored_alike, shared_offset, side_drift, side_errors

MOST_FRAMES = 32  # of the unlabelled ones, asked each time
CHUNK = 8  # images a forward pass


class LabelOffset(nn.Module):
    """The offset at the start, and how far the teacher has moved since.

    Pseudo boxes have the teacher's offset, so without this they teach the student what the labels contradict. The model
    that the run begins with has not learnt the labelled frames: what it is off by there holds elsewhere too. Later that
    is not so, and they are not asked again; how far the teacher's sides have moved since is seen on unlabelled frames.

    Args:
        few: labelled frames.
        frames: unlabelled ones.
        input_size: (height, width) in pixels.
        every: steps between measurements.
        seed: draws the unlabelled frames.
        device: where the models are.
    """

    at_start: Tensor
    now: Tensor
    steps: Tensor
    pairs: Tensor

    def __init__(
        self,
        few: Dataset,
        frames: FrameIndex,
        input_size: tuple[int, int],
        *,
        every: int,
        seed: int,
        device: torch.device,
    ) -> None:
        super().__init__()
        self.every = every
        self.few, self.frames, self.input_size, self.seed = few, frames, input_size, seed
        # [4] x1, y1, x2, y2 over the box's size; state of the run, as is what counts the steps
        self.register_buffer("at_start", torch.zeros(4, device=device))
        self.register_buffer("now", torch.zeros(4, device=device))
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("pairs", torch.zeros((), dtype=torch.int64))  # labelled boxes that were found at the start
        self._watched: Tensor | None = None
        self._before: list[RawDetections] = []

    @property
    def of_views(self) -> Tensor:
        """[4] what of the present offset holds in views of which half are mirrored."""
        return mirrored_alike(self.now)

    def signals(self) -> dict[str, Any]:
        """``label_offset``, [4] at present, and how wide and high labels are over boxes at the start."""
        offset = self.at_start.tolist()
        return {
            "label_offset": [round(value, 4) for value in self.now.tolist()],
            "labelled_width_ratio": 1.0 / (1.0 + offset[2] - offset[0]),
            "labelled_height_ratio": 1.0 / (1.0 + offset[3] - offset[1]),
        }

    def begin(self, start: ProbabilisticFasterRCNN) -> None:
        """Ask the model that the run begins with about the labelled frames.

        Args:
            start: in eval mode.
        """
        device, errors = self.now.device, [self.now.new_zeros(0, 4)]
        views = few_views(self.few, self.input_size, AugmentConfig(), "still")
        for index in range(len(self.few)):
            try:
                image, labels = views(index, torch.Generator())
            except InputError:
                continue  # said when its turn comes
            (found,) = _detect(start, torch.from_numpy(image).permute(2, 0, 1).unsqueeze(0).to(device))
            errors.append(side_errors(found.boxes, found.labels, labels.boxes.to(device), labels.labels.to(device)))
        paired = torch.cat(errors)
        self.at_start.copy_(shared_offset(paired))
        self.now.copy_(self.at_start)
        self.pairs.fill_(len(paired))

    def of(self, teacher: ProbabilisticFasterRCNN, start: ProbabilisticFasterRCNN) -> Tensor:
        """The offset of a teacher.

        Args:
            teacher: in eval mode.
            start: the model that the run began with; asked the first time.

        Returns:
            [4] x1, y1, x2, y2 over the size of the labelled box.
        """
        if self._watched is None:
            self._watched = self._read().to(self.now.device)
            self._before = _detect(start, self._watched)
        return self.at_start + side_drift(_detect(teacher, self._watched), self._before)

    def after_step(self, teacher: ProbabilisticFasterRCNN, start: ProbabilisticFasterRCNN) -> None:
        """Count a step, and measure when it is time."""
        self.steps += 1
        if int(self.steps) % self.every == 0:
            self.now.copy_(self.of(teacher, start))

    def _read(self) -> Tensor:
        """[N, 3, H, W] uint8: unlabelled frames as they are, without those that cannot be read."""
        views = TargetViews(self.frames, self.input_size, None, mirror=False)
        images = []
        for position in range(min(MOST_FRAMES, len(self.frames))):
            try:
                index = draw_index(position, len(self.frames), self.seed, OFFSET_STREAM)
                images.append(torch.from_numpy(views(index, torch.Generator())[0]).permute(2, 0, 1))
            except InputError:
                continue
        return torch.stack(images) if images else torch.zeros(0, 3, *self.input_size, dtype=torch.uint8)


def _detect(model: ProbabilisticFasterRCNN, images: Tensor) -> list[RawDetections]:
    found: list[RawDetections] = []
    for chunk in torch.split(images, CHUNK) if len(images) else ():
        found += model.detect(chunk.float().contiguous(memory_format=torch.channels_last))
    return found
