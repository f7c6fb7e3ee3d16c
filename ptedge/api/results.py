"""What a model found in one image: arrays as everywhere in ptedge, single detections, and other tools' forms."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from ptedge.detections import Detections
from ptedge.drawing.draw import draw_detections
from ptedge.errors import InputError, named_extras
from ptedge.frames.images import read_image

if TYPE_CHECKING:
    import pandas
    import supervision

SIDES = ("x1", "y1", "x2", "y2")


class Detection(NamedTuple):
    """One object.

    Attributes:
        label: 0-based index into the class names.
        name: of the class.
        score: in [0, 1].
        box: x1, y1, x2, y2 in pixels of the image.
        sigma: standard deviation in pixels of x1, y1, x2, y2.
        entropy: of the class distribution in nats, background included; 0 is certain.
    """

    label: int
    name: str
    score: float
    box: tuple[float, float, float, float]
    sigma: tuple[float, float, float, float]
    entropy: float


@dataclass(frozen=True)
class ImageDetections(Detections):
    """Detections of one image with the names of their classes: ``len``, iteration and ``[i]`` give single ones.

    A slice, a boolean mask or indices give detections again: ``found[found.scores > 0.5]``.

    Attributes:
        class_names: names by label.
        image: [H, W, 3] uint8 RGB that they were found on, or its file, which :meth:`plot` reads again.
    """

    class_names: tuple[str, ...] = ()
    image: NDArray[np.uint8] | Path | None = dataclasses.field(default=None, repr=False)

    @classmethod
    def of(
        cls, found: Detections, class_names: Sequence[str], image: NDArray[np.uint8] | Path | None
    ) -> ImageDetections:
        """What a model found, with names and image.

        Args:
            found: in pixels of the image.
            class_names: names by label.
            image: array (RGB) or file.
        """
        arrays = (found.boxes, found.scores, found.labels, found.sigma, found.entropy)
        return cls(*arrays, class_names=tuple(class_names), image=image)

    def __iter__(self) -> Iterator[Detection]:
        return (self._one(i) for i in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Detection: ...
    @overload
    def __getitem__(self, index: slice | NDArray[np.bool_] | NDArray[np.int64]) -> ImageDetections: ...
    def __getitem__(self, index: int | slice | NDArray[np.bool_] | NDArray[np.int64]) -> Detection | ImageDetections:
        if isinstance(index, (int, np.integer)):
            return self._one(range(len(self))[index])
        return self.select(np.arange(len(self))[index])

    def select(self, keep: NDArray[np.bool_] | NDArray[np.int64]) -> ImageDetections:
        """The detections at a boolean mask [N] or at indices [M]."""
        return ImageDetections.of(super().select(keep), self.class_names, self.image)

    @property
    def names(self) -> list[str]:
        """The class name of each detection."""
        return [self.class_names[label] for label in self.labels.tolist()]

    def to_json(self, class_names: Sequence[str] | None = None) -> list[dict[str, Any]]:
        """One dictionary a detection, as in a line of ``detections.jsonl``.

        Args:
            class_names: names by label; ``None`` for the model's.
        """
        return super().to_json(self.class_names if class_names is None else class_names)

    def to_supervision(self) -> supervision.Detections:
        """As ``supervision.Detections``: ``data`` has ``class_name``, ``sigma`` [N, 4] and ``entropy`` [N].

        Raises:
            MissingExtraError: supervision is not installed.
        """
        with named_extras():
            import supervision
        data = {"class_name": np.array(self.names, str), "sigma": self.sigma, "entropy": self.entropy}
        return supervision.Detections(
            xyxy=self.boxes, confidence=self.scores, class_id=self.labels.astype(int), data=dict(data)
        )

    def to_pandas(self) -> pandas.DataFrame:
        """A table, one row a detection: label, name, score, x1 to y2, sigma_x1 to sigma_y2, entropy.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        with named_extras():
            import pandas
        columns: dict[str, Any] = {"label": self.labels, "name": self.names, "score": self.scores}
        columns.update({side: self.boxes[:, i] for i, side in enumerate(SIDES)})
        columns.update({f"sigma_{side}": self.sigma[:, i] for i, side in enumerate(SIDES)})
        return pandas.DataFrame({**columns, "entropy": self.entropy})

    def plot(self, image: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
        """The image with boxes, labels, and on every side a band as wide as its standard deviation.

        Args:
            image: [H, W, 3] uint8 RGB to draw on; ``None`` for the one that was given to the model.

        Returns:
            [H, W, 3] uint8 RGB, a new array.

        Raises:
            InputError: there is no image, or its file is gone.
        """
        ground = self.image if image is None else image
        if ground is None:
            raise InputError("these detections carry no image to draw on. Give one: detections.plot(image)")
        return draw_detections(read_image(ground) if isinstance(ground, Path) else ground, self, self.class_names)

    def _one(self, i: int) -> Detection:
        label = int(self.labels[i])
        x1, y1, x2, y2 = (float(value) for value in self.boxes[i])
        left, top, right, bottom = (float(value) for value in self.sigma[i])
        return Detection(
            label,
            self.class_names[label],
            float(self.scores[i]),
            (x1, y1, x2, y2),
            (left, top, right, bottom),
            float(self.entropy[i]),
        )
