"""What a batch is made of: labelled images and unlabelled frames, letterboxed, in their weak and strong views."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ptedge.boxes import box_area, clip_boxes
from ptedge.data.dataset import Dataset
from ptedge.frames.images import read_image
from ptedge.frames.source import FrameIndex
from ptedge.preprocess import PIXEL_MEAN, Letterbox

from ..losses.merge import ForeignBoxes
from ..losses.source import ImageLabels
from .augment import AugmentConfig, apply_zoom, draw_zoom, flip, move_boxes, picture_in_view, strong_colour
from .batch import SourceBatch, TargetBatch
from .foreign_file import NO_BOXES, FoundBoxes

TargetEntry = tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.float32], ForeignBoxes]
SMALLEST_BOX = 1.0  # input pixels; a labelled box thinner than this after scaling is an ignore region,
SMALLEST_SHARE = 0.3  # and so is one of which less than this share is left in the picture


class SourceViews:
    """Labelled images as training entries (picklable, for workers).

    Args:
        dataset: labelled data.
        input_size: (height, width) in pixels.
        augment: the strong view; ``None`` for the weak view (flip only).
        mirror: half of the images are mirrored.
    """

    def __init__(
        self, dataset: Dataset, input_size: tuple[int, int], augment: AugmentConfig | None, *, mirror: bool = True
    ) -> None:
        self.dataset = dataset
        self.input_size = input_size
        self.augment = augment
        self.mirror = mirror

    def __call__(self, index: int, generator: torch.Generator) -> tuple[NDArray[np.uint8], ImageLabels]:
        """The image [H, W, 3] and its labels in input pixels."""
        sample = self.dataset.samples[index]
        content, letterbox = _content(read_image(sample.path), self.input_size)
        boxes = letterbox.boxes(sample.boxes)
        mirrored = float(torch.rand((), generator=generator)) < 0.5  # drawn in any case: the rest stays as it was
        if mirrored and self.mirror:
            content, boxes = flip(content, boxes)
        if self.augment is not None:
            content = strong_colour(content, self.augment, generator)
            zoom = draw_zoom(content.shape[1], content.shape[0], self.augment, generator)
            content, boxes = apply_zoom(content, zoom), move_boxes(boxes, zoom)
        full, boxes = boxes, clip_boxes(boxes, content.shape[1], content.shape[0])
        small = (boxes[:, 2:] - boxes[:, :2] < SMALLEST_BOX).any(axis=1)
        cut = box_area(boxes) < SMALLEST_SHARE * box_area(full)
        ignore = sample.ignore | small | cut
        labels = ImageLabels(
            torch.from_numpy(boxes[~ignore]).reshape(-1, 4),
            torch.from_numpy(sample.labels[~ignore]),
            torch.from_numpy(boxes[ignore]).reshape(-1, 4),
        )
        return _pad(content, self.input_size), labels

    def name(self, index: int) -> str:
        """Path of the image."""
        return str(self.dataset.samples[index].path)


class TargetViews:
    """Unlabelled frames as pairs of a weak and a strong view with the same flip.

    Args:
        frames: unlabelled images.
        input_size: (height, width) in pixels.
        augment: the strong view; ``None`` makes the weak view alone, which then stands for both.
        foreign: what another detector found in each frame; empty for none.
        mirror: half of the frames are mirrored.
    """

    def __init__(
        self,
        frames: FrameIndex,
        input_size: tuple[int, int],
        augment: AugmentConfig | None,
        foreign: Sequence[FoundBoxes] = (),
        *,
        mirror: bool = True,
    ) -> None:
        self.frames = frames
        self.input_size = input_size
        self.augment = augment
        self.foreign = foreign
        self.mirror = mirror

    def __call__(self, index: int, generator: torch.Generator) -> TargetEntry:
        """The weak view, the strong view, [7] as in ``TargetBatch.views``, and foreign boxes in the weak view."""
        content, letterbox = _content(self.frames.read(index), self.input_size)
        found = self.foreign[index] if self.foreign else NO_BOXES
        boxes = letterbox.boxes(found.boxes)
        mirrored = float(torch.rand((), generator=generator)) < 0.5
        if mirrored and self.mirror:
            content, boxes = flip(content, boxes)
        foreign = ForeignBoxes(*map(torch.from_numpy, (boxes, found.scores, found.labels)))
        weak = _pad(content, self.input_size)
        if self.augment is None:
            return weak, weak, _view(np.array([1, 0, 0], np.float32), content), foreign
        strong = strong_colour(content, self.augment, generator)
        zoom = draw_zoom(content.shape[1], content.shape[0], self.augment, generator)
        return weak, _pad(apply_zoom(strong, zoom), self.input_size), _view(zoom, content), foreign

    def name(self, index: int) -> str:
        """Path of the image, or video and frame number."""
        return self.frames.name(index)


def collate_source(entries: list[tuple[NDArray[np.uint8], ImageLabels]]) -> SourceBatch:
    """Entries of :class:`SourceViews` as a batch."""
    return SourceBatch(_stack([image for image, _ in entries]), [labels for _, labels in entries])


def collate_target(entries: list[TargetEntry]) -> TargetBatch:
    """Entries of :class:`TargetViews` as a batch."""
    return TargetBatch(
        weak=_stack([weak for weak, _, _, _ in entries]),
        strong=_stack([strong for _, strong, _, _ in entries]),
        views=torch.from_numpy(np.stack([view for _, _, view, _ in entries])),
        foreign=[foreign for _, _, _, foreign in entries],
    )


def _view(zoom: NDArray[np.float32], content: NDArray[np.uint8]) -> NDArray[np.float32]:
    return np.concatenate([zoom, picture_in_view(zoom, content.shape[1], content.shape[0])])


def _content(image: NDArray[np.uint8], input_size: tuple[int, int]) -> tuple[NDArray[np.uint8], Letterbox]:
    letterbox = Letterbox(image.shape[1], image.shape[0], *input_size)
    height, width = letterbox.content
    return np.ascontiguousarray(letterbox.image(image)[:height, :width]), letterbox


def _pad(content: NDArray[np.uint8], input_size: tuple[int, int]) -> NDArray[np.uint8]:
    height, width = content.shape[:2]
    if (height, width) == input_size:
        return content
    out = np.empty((*input_size, 3), np.uint8)
    # only what the content leaves free: three bytes at a time are slow
    out[height:] = out[:height, width:] = np.round(PIXEL_MEAN).astype(np.uint8)
    out[:height, :width] = content
    return out


def _stack(images: list[NDArray[np.uint8]]) -> Tensor:
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous()  # [B, 3, H, W]
