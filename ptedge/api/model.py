"""A model that is called with images: ``model = ptedge.load("bundle"); detections = model("street.jpg")``."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Union, overload

import numpy as np
from numpy.typing import NDArray

from ptedge.api.images import Color, to_rgb
from ptedge.api.results import ImageDetections
from ptedge.artifacts.trust import Trust
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.backends.predictor import Predictor, open_predictor
from ptedge.detections import Detections
from ptedge.errors import InputError, named_extras

if TYPE_CHECKING:
    from PIL.Image import Image

OneImage = Union[str, Path, NDArray[np.uint8], "Image"]


class Model:
    """A loaded model. Use ``with``, or :meth:`close`, to free it before the program ends.

    One model serves one thread at a time.

    Attributes:
        path: checkpoint, bundle, ONNX file or engine.
        predictor: what answers, in the form that the rest of ptedge uses.
    """

    def __init__(self, path: Path, predictor: Predictor) -> None:
        self.path = path
        self.predictor = predictor

    @property
    def class_names(self) -> tuple[str, ...]:
        """Names by label."""
        return tuple(self.predictor.class_names)

    @property
    def input_size(self) -> tuple[int, int]:
        """(height, width) in pixels of the network's input; images of any size are fitted to it."""
        return self.predictor.input_size

    @property
    def backend(self) -> str:
        """``tensorrt``, ``cuda`` or ``cpu``; ``torch`` for a checkpoint."""
        return self.predictor.runner.backend if isinstance(self.predictor, BundlePredictor) else "torch"

    @overload  # a str is a sequence of str, too
    def __call__(  # type: ignore[overload-overlap]
        self, image: OneImage, *, color: Color = "rgb", min_score: float = 0.0
    ) -> ImageDetections: ...
    @overload
    def __call__(
        self, image: Sequence[OneImage], *, color: Color = "rgb", min_score: float = 0.0
    ) -> list[ImageDetections]: ...
    def __call__(
        self, image: OneImage | Sequence[OneImage], *, color: Color = "rgb", min_score: float = 0.0
    ) -> ImageDetections | list[ImageDetections]:
        """Detect.

        Args:
            image: a file; an array [H, W, 3] or, grey, [H, W] of uint8; a PIL image; or a list of these.
            color: order of an array's channels: ``rgb``, or ``bgr`` as OpenCV reads images. Files and PIL images know
                theirs.
            min_score: leave out detections scored lower, 0 to 1.

        Returns:
            Detections in pixels of the image, best score first; of a list, a list in its order.

        Raises:
            InputError: an unreadable file, an array of another type or shape, or no image at all.
            BackendError: the backend refuses, or the model is closed.
        """
        if isinstance(image, (list, tuple)):
            return self._detect_all(image, color, min_score)
        return self._detect_all([image], color, min_score)[0]  # type: ignore[list-item]  # a str is a Sequence too

    def close(self) -> None:
        """Free the model; it answers no more."""
        self.predictor.close()

    def __enter__(self) -> Model:
        """Itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def __repr__(self) -> str:
        height, width = self.input_size
        names = ", ".join(self.class_names)
        return f"<ptedge.Model {str(self.path)!r}: {names}; input {height} x {width} on {self.backend}>"

    def _detect_all(self, images: Sequence[OneImage], color: Color, min_score: float) -> list[ImageDetections]:
        if not 0 <= min_score <= 1:
            raise InputError(f"min_score is {min_score}; it must be at least 0 and at most 1")
        group = self.predictor.batch if isinstance(self.predictor, BundlePredictor) else 1
        results = []
        for start in range(0, len(images), group):  # no more images are decoded than the graph takes at once
            given = images[start : start + group]
            arrays = [to_rgb(image, color) for image in given]
            for image, array, found in zip(given, arrays, self._answers(arrays), strict=True):
                kept = found.select(found.scores >= min_score)
                ground = Path(image) if isinstance(image, (str, Path)) else array
                results.append(ImageDetections.of(kept, self.class_names, ground))
        return results

    def _answers(self, arrays: list[NDArray[np.uint8]]) -> list[Detections]:
        if isinstance(self.predictor, BundlePredictor):
            return self.predictor.detect_batch(arrays)
        return [self.predictor.detect(array) for array in arrays]


def load(
    path: str | PathLike[str],
    *,
    backend: str = "auto",
    threads: int | None = None,
    trust: str | PathLike[str] | Sequence[str | PathLike[str]] = (),
) -> Model:
    """Load a model.

    Args:
        path: bundle folder, ``model.onnx``, engine in its bundle, or checkpoint (``model.pt``, which needs torch).
        backend: ``tensorrt``, ``cuda`` or ``cpu``; ``auto`` takes the first that works here. A checkpoint runs on the
            GPU if there is one.
        threads: CPU threads; ``None`` for one a core.
        trust: files of public keys that a bundle must be signed with; without, its hashes alone are checked.

    Raises:
        InputError: nothing there, or none of these kinds.
        ArtifactError: broken or foreign file, or nobody who is trusted signed it.
        BackendError: the backend asked for is not there.
        MissingExtraError: a checkpoint without torch installed.
    """
    keys = (trust,) if isinstance(trust, (str, PathLike)) else trust
    place = Path(path)
    with named_extras():
        predictor = open_predictor(place, backend, threads, Trust.read(tuple(Path(key) for key in keys)))
    return Model(place, predictor)
