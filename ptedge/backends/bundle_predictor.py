"""A bundle that answers images with detections: letterbox, graph, letterbox back."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.artifacts.bundle import open_bundle
from ptedge.artifacts.engine_file import ENGINE_SUFFIX, PRODUCTS
from ptedge.artifacts.trust import Trust
from ptedge.backends.choose import open_runner
from ptedge.backends.runner import Runner
from ptedge.detections import Detections
from ptedge.errors import ArtifactError, BackendError
from ptedge.graph_contract import IMAGES, OUTPUTS, converged_images, detections_of, input_signature
from ptedge.preprocess import PIXEL_MEAN, Letterbox


class BundlePredictor:
    """A bundle or bare ONNX file as a :class:`ptedge.backends.predictor.Predictor`.

    Attributes:
        class_names: names by label.
        input_size: (height, width) of the network input in pixels.
        model_hash: sha256 of the ONNX file.
        signature: who vouches for the bundle, in words.
        manifest: of the bundle.
        runner: what runs the graph; its ``backend`` and ``reason`` say on what.
        batch: images a call of the graph takes.
        unconverged: images so far whose suppression stopped before its fixpoint (boxes may overlap there).
    """

    def __init__(
        self,
        path: Path,
        backend: str = "auto",
        threads: int | None = None,
        slots: int = 1,
        *,
        trust: Trust | None = None,
        quick_shrink: bool = False,
    ) -> None:
        """Open a bundle and load its model.

        Args:
            path: bundle folder, ONNX file, or engine file inside a bundle.
            backend: one of :data:`ptedge.backends.runner.BACKENDS`; an engine file is TensorRT's alone.
            threads: CPU threads; ``None`` leaves the default.
            slots: calls that can be under way at once on TensorRT.
            trust: keys that bundle and engine must be signed with; ``None`` checks hashes alone.
            quick_shrink: large images become network input by :func:`ptedge.preprocess.shrink_quickly`.

        Raises:
            ArtifactError: broken bundle or engine, or a graph that is not what its manifest says.
            BackendError: the backend is not there, or no engine fits this machine.
            MissingExtraError: TensorRT was asked for and is not installed.
        """
        engine = path.name if path.suffix == ENGINE_SUFFIX else None
        if engine is not None and backend not in ("auto", *PRODUCTS):
            raise BackendError(f"{path} is a TensorRT engine; it cannot run on {backend}. Give its bundle instead")
        bundle = open_bundle(path if engine is None else path.parent, trust)
        self.manifest = bundle.manifest
        self.class_names = bundle.manifest.class_names
        self.input_size = bundle.manifest.input_size
        self.model_hash = bundle.model_hash
        self.signature = bundle.signature
        self.batch = bundle.manifest.batch
        self.unconverged = 0
        self._quick = quick_shrink
        self._sigma_scale = np.array(bundle.manifest.scale_after_graph, np.float32)
        self.runner: Runner = open_runner(bundle, backend, threads, engine=engine, slots=slots)
        expected = input_signature(self.batch, self.input_size)
        missing = [name for name in OUTPUTS if name not in self.runner.output_names]
        if self.runner.inputs != expected or missing:
            raise ArtifactError(
                f"{bundle.model_path} is not the graph its manifest describes: inputs {self.runner.inputs}, "
                f"expected {expected}, outputs missing: {missing}. "
                f"Write it again: ptedge export CHECKPOINT --out {path}"
            )

    def detect(self, image: NDArray[np.uint8]) -> Detections:
        """Detections of one image.

        Args:
            image: [height, width, 3] uint8 RGB.

        Returns:
            Detections in pixels of that image, best score first.
        """
        return self.detect_batch([image])[0]

    def detect_batch(self, images: Sequence[NDArray[np.uint8]]) -> list[Detections]:
        """Detections of any number of images, taken in groups of the graph's batch size.

        Args:
            images: each [height, width, 3] uint8 RGB; sizes may differ.

        Returns:
            One result an image, in order.
        """
        found: list[Detections] = []
        for start in range(0, len(images), self.batch):
            array, boxes = self.preprocess(images[start : start + self.batch])
            found += self.postprocess(self.runner.infer({IMAGES: array}), boxes)
        return found

    def preprocess(self, images: Sequence[NDArray[np.uint8]]) -> tuple[NDArray[np.uint8], list[Letterbox]]:
        """Images as network input.

        Args:
            images: 1 to B images, each [height, width, 3] uint8 RGB. Places left over are filled with the mean.

        Returns:
            ([B, 3, H, W] uint8, one letterbox an image).
        """
        height, width = self.input_size
        array = np.empty((self.batch, 3, height, width), np.uint8)
        letterboxes = []
        for i, image in enumerate(images):
            if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or 0 in image.shape:
                raise BackendError(f"an image must be uint8 [height, width, 3], got {image.dtype} {list(image.shape)}")
            letterbox = Letterbox(image.shape[1], image.shape[0], height, width)
            array[i] = letterbox.image(image, quick=self._quick).transpose(2, 0, 1)  # [3, H, W]
            letterboxes.append(letterbox)
        array[len(images) :] = np.round(PIXEL_MEAN).astype(np.uint8)[:, None, None]
        return array, letterboxes

    def postprocess(self, outputs: Mapping[str, NDArray[Any]], letterboxes: Sequence[Letterbox]) -> list[Detections]:
        """Network output as detections in image pixels.

        Args:
            outputs: of the graph; rows beyond ``num_detections`` are ignored.
            letterboxes: of :meth:`preprocess`.

        Returns:
            One result a letterbox, calibrated: by the graph, or in schema 1 by the manifest's factors of sigma.

        Raises:
            BackendError: the graph returned numbers that are not finite, or a label that does not exist.
        """
        found = []
        for i, letterbox in enumerate(letterboxes):
            detections = detections_of(outputs, i)
            detections = dataclasses.replace(detections, sigma=detections.sigma * self._sigma_scale)
            self._check(detections)
            found.append(letterbox.undo(detections))
        self.unconverged += int((~converged_images(outputs)[: len(letterboxes)]).sum())
        return found

    @property
    def record(self) -> dict[str, Any]:
        """What field folders keep with each frame: ``model``, its hash, and ``preprocessing``."""
        manifest = self.manifest
        size = list(manifest.input_size)
        preprocessing = {"letterbox": manifest.letterbox, "input_size": size, "color": manifest.color}
        return {"model": self.model_hash, "preprocessing": preprocessing}

    def close(self) -> None:
        """Free the model."""
        self.runner.close()

    def _check(self, detections: Detections) -> None:
        for name in ("boxes", "scores", "sigma", "entropy"):
            if not np.isfinite(getattr(detections, name)).all():
                raise BackendError(
                    f"the model returned {name} that are not finite numbers ({self.manifest.precision} on "
                    f"{self.runner.backend}). Export with --precision fp32 and compare: ptedge verify"
                )
        labels = detections.labels
        if labels.size and not (labels.min() >= 0 and labels.max() < len(self.class_names)):
            raise BackendError(
                f"the model returned label {labels.max()}, but its manifest has {len(self.class_names)} classes. "
                "Write the bundle again: ptedge export"
            )
