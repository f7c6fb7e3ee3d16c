"""Batches by step: what step n sees depends on the seed and n alone, so workers, order and resuming change nothing.

A corrupt image is named, counted and replaced by the next one; a data set in which none can be read ends the run.
"""

from __future__ import annotations

import atexit
import signal
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import DataLoader
from torch.utils.data import Dataset as TorchDataset

from ptedge.boxes import box_area, clip_boxes
from ptedge.data.dataset import Dataset
from ptedge.errors import InputError, PtedgeError, TrainingError
from ptedge.frames import FrameIndex
from ptedge.images import read_image
from ptedge.preprocess import PIXEL_MEAN, Letterbox

from .augment import AugmentConfig, apply_zoom, draw_zoom, flip, move_boxes, strong_colour
from .source_loss import Targets

SMALLEST_BOX = 1.0  # input pixels; a labelled box thinner than this after scaling is an ignore region,
SMALLEST_SHARE = 0.3  # and so is one of which less than this share is left in the picture


@dataclass
class Batch:
    """Images of one step.

    Attributes:
        images: [B, 3, H, W] uint8: what the student sees.
        targets: labels in the pixels of ``images`` (source), empty for target frames.
        weak: [B, 3, H, W] uint8: what the teacher sees (target), else ``None``.
        views: [B, 3] (scale, dx, dy) from weak to strong (target), else ``None``.
        skipped: images that could not be read: (path, reason).
    """

    images: Tensor
    targets: list[Targets] = field(default_factory=list)
    weak: Tensor | None = None
    views: Tensor | None = None
    skipped: list[tuple[str, str]] = field(default_factory=list)


Stream = Generator[Batch, None, None]


class Views(Protocol):
    """What makes one image's entry."""

    def __call__(self, index: int, generator: torch.Generator, /) -> Any:
        """The entry; InputError when the image cannot be read."""

    def name(self, index: int) -> str:
        """Path of the image, for reports."""


def step_generator(seed: int, stream: int, step: int) -> torch.Generator:
    """The generator of one step of one stream; independent of all others."""
    state = np.random.SeedSequence([seed, stream, step]).generate_state(1, np.uint64)[0]
    return torch.Generator().manual_seed(int(state) & 0x7FFF_FFFF_FFFF_FFFF)


def draw_index(position: int, count: int, seed: int, stream: int) -> int:
    """Which of ``count`` images stands at a position of the endless shuffled sequence, a new order each epoch."""
    epoch, offset = divmod(position, count)
    order = np.random.default_rng(np.random.SeedSequence([seed, stream, epoch, 1])).permutation(count)
    return int(order[offset])


class StepBatches(TorchDataset[Batch]):
    """Batches of one stream, by step.

    Args:
        count: images in the data.
        make: builds one image's entry from its index and a generator.
        collate: entries to a batch.
        batch_size: images a step.
        steps: the last step + 1.
        seed: of the run.
        stream: number of the stream; source and target of one run differ.
        first_step: where to begin (resume).
        images: all steps together take so many; the last batch is then smaller. ``None`` for no such end.
    """

    def __init__(
        self,
        count: int,
        make: Views,
        collate: Callable[[list[Any]], Batch],
        *,
        batch_size: int,
        steps: int,
        seed: int,
        stream: int,
        first_step: int = 0,
        images: int | None = None,
    ) -> None:
        self.count = count
        self.make = make
        self.collate = collate
        self.batch_size = batch_size
        self.seed = seed
        self.stream = stream
        self.first_step = first_step
        self.images = images
        self.length = max(0, steps - first_step)

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, item: int) -> Batch:
        step = self.first_step + item
        generator = step_generator(self.seed, self.stream, step)
        entries: list[Any] = []
        skipped: list[tuple[str, str]] = []
        first = step * self.batch_size
        end = first + self.batch_size if self.images is None else min(first + self.batch_size, self.images)
        for position in range(first, end):
            start = draw_index(position, self.count, self.seed, self.stream)
            for attempt in range(self.count):
                index = (start + attempt) % self.count
                try:
                    entries.append(self.make(index, generator))
                    break
                except InputError as error:
                    skipped.append((self.make.name(index), str(error)))
            else:
                raise TrainingError(f"no image can be read. First problem: {skipped[0][1]}")
        batch = self.collate(entries)
        batch.skipped = skipped
        return batch

    def loader(self, workers: int) -> Stream:
        """Batches in order, prepared by worker processes (0: in this process).

        The processes start with the first batch and end when the generator is closed.

        Raises:
            TrainingError: no image can be read, or a worker died.
        """
        loader: DataLoader[Batch | str] = DataLoader(
            _Sentences(self),
            batch_size=None,
            shuffle=False,
            num_workers=workers,
            prefetch_factor=2 if workers else None,
            worker_init_fn=_leave_signals,
        )
        batches = iter(loader)
        end = partial(_end_workers, batches)
        if workers:
            atexit.register(end)  # for a caller that does not close the generator
        try:
            for batch in batches:
                if isinstance(batch, str):
                    raise TrainingError(batch)
                yield batch
        except RuntimeError as error:
            if "DataLoader worker" not in str(error):
                raise
            raise TrainingError(
                f"a process that prepares images died: {str(error).splitlines()[0]} "
                f"If memory ran out, lower optim.batch or set workers=0"
            ) from None
        finally:
            if workers:
                atexit.unregister(end)
                end()


class _Sentences(TorchDataset["Batch | str"]):
    """Batches, or the sentence of what went wrong: an exception that leaves a worker drags its traceback along."""

    def __init__(self, batches: StepBatches) -> None:
        self.batches = batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, item: int) -> Batch | str:
        try:
            return self.batches[item]
        except PtedgeError as error:
            return str(error)


def _leave_signals(worker: int) -> None:
    """Ctrl-C and a service manager's SIGTERM reach every process of the group: the main one alone ends the run."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def _end_workers(batches: Any) -> None:
    """End the workers now: while the main process exits it waits for them, and they ignore its SIGTERM."""
    batches._shutdown_workers()  # asks them to stop and waits some seconds
    for worker in batches._workers:
        if worker.is_alive():  # stuck, for example in a network file system
            worker.kill()


class SourceViews:
    """Labelled images as training entries (picklable, for workers).

    Args:
        dataset: labelled data.
        input_size: (height, width) in pixels.
        augment: the strong view; ``None`` for the weak view (flip only).
    """

    def __init__(self, dataset: Dataset, input_size: tuple[int, int], augment: AugmentConfig | None) -> None:
        self.dataset = dataset
        self.input_size = input_size
        self.augment = augment

    def __call__(self, index: int, generator: torch.Generator) -> tuple[NDArray[np.uint8], Targets]:
        """The image [H, W, 3] and its labels in input pixels."""
        sample = self.dataset.samples[index]
        content, letterbox = _content(read_image(sample.path), self.input_size)
        boxes = letterbox.boxes(sample.boxes)
        if float(torch.rand((), generator=generator)) < 0.5:
            content, boxes = flip(content, boxes)
        if self.augment is not None:
            content = strong_colour(content, self.augment, generator)
            zoom = draw_zoom(content.shape[1], content.shape[0], self.augment, generator)
            content, boxes = apply_zoom(content, zoom), move_boxes(boxes, zoom)
        full, boxes = boxes, clip_boxes(boxes, content.shape[1], content.shape[0])
        small = (boxes[:, 2:] - boxes[:, :2] < SMALLEST_BOX).any(axis=1)
        cut = box_area(boxes) < SMALLEST_SHARE * box_area(full)
        ignore = sample.ignore | small | cut
        targets = Targets(
            torch.from_numpy(boxes[~ignore]).reshape(-1, 4),
            torch.from_numpy(sample.labels[~ignore]),
            torch.from_numpy(boxes[ignore]).reshape(-1, 4),
        )
        return _pad(content, self.input_size), targets

    def name(self, index: int) -> str:
        """Path of the image."""
        return str(self.dataset.samples[index].path)


class TargetViews:
    """Unlabelled frames as pairs of a weak and a strong view with the same flip.

    Args:
        frames: unlabelled images.
        input_size: (height, width) in pixels.
        augment: the strong view; ``None`` makes the weak view alone, which then stands for both.
    """

    def __init__(self, frames: FrameIndex, input_size: tuple[int, int], augment: AugmentConfig | None) -> None:
        self.frames = frames
        self.input_size = input_size
        self.augment = augment

    def __call__(
        self, index: int, generator: torch.Generator
    ) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.float32]]:
        """The weak view, the strong view, and (scale, dx, dy) from weak to strong."""
        content, _ = _content(self.frames.read(index), self.input_size)
        if float(torch.rand((), generator=generator)) < 0.5:
            content = np.ascontiguousarray(content[:, ::-1])
        weak = _pad(content, self.input_size)
        if self.augment is None:
            return weak, weak, np.array([1, 0, 0], np.float32)
        strong = strong_colour(content, self.augment, generator)
        zoom = draw_zoom(content.shape[1], content.shape[0], self.augment, generator)
        return weak, _pad(apply_zoom(strong, zoom), self.input_size), zoom

    def name(self, index: int) -> str:
        """Path of the image, or video and frame number."""
        return self.frames.name(index)


def collate_source(entries: list[tuple[NDArray[np.uint8], Targets]]) -> Batch:
    """Entries of :class:`SourceViews` as a batch."""
    return Batch(_stack([image for image, _ in entries]), [targets for _, targets in entries])


def collate_target(entries: list[tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.float32]]]) -> Batch:
    """Entries of :class:`TargetViews` as a batch."""
    return Batch(
        _stack([strong for _, strong, _ in entries]),
        weak=_stack([weak for weak, _, _ in entries]),
        views=torch.from_numpy(np.stack([view for _, _, view in entries])),
    )


def _content(image: NDArray[np.uint8], input_size: tuple[int, int]) -> tuple[NDArray[np.uint8], Letterbox]:
    letterbox = Letterbox(image.shape[1], image.shape[0], *input_size)
    height, width = letterbox.content
    return np.ascontiguousarray(letterbox.image(image)[:height, :width]), letterbox


def _pad(content: NDArray[np.uint8], input_size: tuple[int, int]) -> NDArray[np.uint8]:
    out = np.empty((*input_size, 3), np.uint8)
    out[:] = np.round(PIXEL_MEAN).astype(np.uint8)
    out[: content.shape[0], : content.shape[1]] = content
    return out


def _stack(images: list[NDArray[np.uint8]]) -> Tensor:
    return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).contiguous()  # [B, 3, H, W]
