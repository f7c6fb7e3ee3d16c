"""What a step is given: batches of labelled images, of unlabelled frames, and of both."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from torch import Tensor

from ..losses.merge import ForeignBoxes
from ..losses.source import ImageLabels


@dataclass(frozen=True, kw_only=True)
class Batch:
    """Where the images of a batch come from.

    Attributes:
        positions: the images' places in the endless sequence of the run.
        skipped: images that could not be read: (path, reason).
    """

    positions: list[int] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)


@dataclass(frozen=True)
class SourceBatch(Batch):
    """Labelled images of one step, or of one of its parts when gradients are accumulated.

    Attributes:
        images: [B, 3, H, W] uint8.
        labels: of each image, in its pixels.
    """

    images: Tensor
    labels: list[ImageLabels]

    def __len__(self) -> int:
        return len(self.images)

    def pin_memory(self) -> SourceBatch:
        """The same batch in page-locked memory, from which copies to a GPU do not wait (called by the loader)."""
        return replace(self, images=self.images.pin_memory())


@dataclass(frozen=True)
class TargetBatch(Batch):
    """Unlabelled frames of one step, or of one of its parts, in two views each.

    Attributes:
        weak: [B, 3, H, W] uint8: what the teacher sees.
        strong: [B, 3, H, W] uint8: what the student sees.
        views: [B, 7] (scale, dx, dy) from weak to strong, and x1, y1, x2, y2 of the part of the strong view that shows
            the picture, in input pixels.
        foreign: what another detector found in each frame, in its weak view; empty where there is none.
    """

    weak: Tensor
    strong: Tensor
    views: Tensor
    foreign: list[ForeignBoxes] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.strong)

    def pin_memory(self) -> TargetBatch:
        """The same batch in page-locked memory, see :meth:`SourceBatch.pin_memory`."""
        return replace(self, weak=self.weak.pin_memory(), strong=self.strong.pin_memory())


@dataclass(frozen=True)
class AdaptBatch:
    """What a step of adaptation is given.

    Attributes:
        target: unlabelled frames.
        source: labelled images of the source; ``None`` when source-free.
        labelled: labelled frames of the target; ``None`` when there are none.
    """

    target: TargetBatch
    source: SourceBatch | None
    labelled: SourceBatch | None = None

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """Images of all of them that could not be read: (path, reason)."""
        parts = (self.target, self.source, self.labelled)
        return [entry for part in parts if part is not None for entry in part.skipped]
