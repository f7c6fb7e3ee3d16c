"""The checkpoint a bundle is held against: its answers in torch, and which layer is to blame where a bundle departs.

The one part of the verification that needs torch, and onnx for graphs written anew; devices have neither.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ptedge.artifacts.bundle import Bundle
from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.artifacts.engine_file import PRODUCTS
from ptedge.backends.checkpoint_predictor import to_detections
from ptedge.backends.ort import OrtRunner
from ptedge.detections import Detections
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.graph_contract import IMAGES

from ..graph import StaticGraph, StaticOutput
from ..network_inputs import FRAMES, Images
from ..to_onnx import model_to_onnx
from .answers import Outputs, in_groups, infer_all, to_rows
from .backends import TriedBackend
from .by_layer import compare_graphs
from .check import BundleCheck, without_package
from .compare import Comparison, compare
from .layer_runner import layer_runner
from .limits import limits_for
from .near_ties import disturbed

OVERFLOW_SLOTS = 10  # rows of the graph that is given more objects than it can return


class Reference:
    """A checkpoint at a bundle's input size and with its calibration, and its answers for some images.

    Attributes:
        answers: scene -> detections of each image, eager and float32, in input pixels.
    """

    def __init__(self, bundle: Bundle, scenes: Mapping[str, Images], source: Path) -> None:
        """Load the checkpoint and ask it for its answers.

        Args:
            bundle: opened bundle.
            scenes: name -> [N, 3, H, W] uint8.
            source: the checkpoint.

        Raises:
            InputError: the checkpoint is missing.
            ArtifactError: it is broken.
        """
        self._bundle, self._scenes = bundle, scenes
        checkpoint = load_checkpoint(source)
        config = replace(checkpoint.config, input_size=bundle.manifest.input_size)
        # a bundle may have been calibrated after its export: what is compared is the rest
        self._checkpoint = replace(checkpoint, config=config, calibration=bundle.manifest.calibration)
        self._model = self._checkpoint.build()
        self.answers = {name: self.detect(images) for name, images in scenes.items()}

    def detect(self, images: Images) -> list[Detections]:
        """Eager detections in input pixels, image by image: [N, 3, H, W] uint8 -> N results."""
        return _detect_all(self._model, images)

    def check_checkpoint(self) -> list[BundleCheck]:
        """Its classes; the static graph in torch; and that graph with more objects than it can return."""
        manifest, found = self._bundle.manifest, self._checkpoint.class_names
        names = f"bundle {list(manifest.class_names)}, checkpoint {list(found)}"
        checks = [BundleCheck("classes", found == manifest.class_names, names)]
        static = StaticGraph(self._model)
        for name, images in self._scenes.items():
            answers = to_rows(_infer_static(static, images))
            checks.append(_equal(f"static torch, {name}", self._model, images, self.answers[name], answers))
        if manifest.precision == "fp32":
            checks.append(self._check_crowded())
        return checks

    def compare_equal(self, name: str, backend: str, scene: str, answers: list[Detections]) -> BundleCheck:
        """Whether a float32 backend's answers for a scene equal the checkpoint's, near-ties apart.

        Args:
            name: of the check.
            backend: whose answers they are.
            scene: one of the images'.
            answers: one an image, input pixels.
        """
        check = _equal(name, self._model, self._scenes[scene], self.answers[scene], answers, backend)
        return replace(check, compared=sum(len(found) for found in (*self.answers[scene], *answers)))

    def find_layer(self, tried: TriedBackend, scene: str) -> BundleCheck:
        """Which layer is to blame for a comparison that failed.

        Args:
            tried: the backend.
            scene: where it failed.
        """
        manifest = self._bundle.manifest
        name, images = f"{tried.name}, layers", np.repeat(self._scenes[scene][:1], manifest.batch, axis=0)
        try:
            found = compare_graphs(
                model_to_onnx(self._model, manifest.input_size, manifest.batch),
                (self._bundle.read_model(), self._bundle.read_second()),
                {IMAGES: images},
                limits_for(manifest.precision, tried.backend).layer,
                layer_runner(tried.backend, manifest.precision),
                hand_over=tried.backend not in PRODUCTS,  # whole numbers of 64 bits are no inputs of TensorRT 8
            )
        except ModuleNotFoundError as error:
            return without_package(name, error, tried.backend)
        departs = found.departure is not None
        return BundleCheck(name, not departs, str(found), judged=departs, backend=tried.backend)

    def _check_crowded(self) -> BundleCheck:
        """The same weights with every box above the threshold and few rows: more objects than slots."""
        name = "onnxruntime cpu, more objects than slots"
        crowded = replace(self._checkpoint.config, score_threshold=0.0, max_detections=OVERFLOW_SLOTS)
        model = replace(self._checkpoint, config=crowded).build()
        images = np.concatenate([self._scenes.get(FRAMES, self._scenes["noise"])[:2], self._scenes["black"]])
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "crowded.onnx"
            try:
                file.write_bytes(model_to_onnx(model, crowded.input_size, 1))
            except ModuleNotFoundError as error:
                return without_package(name, error, "cpu")
            with OrtRunner(file, "cpu") as runner:
                answers = to_rows(infer_all(runner, images))
        return _equal(name, model, images, _detect_all(model, images), answers, backend="cpu")


def _detect_all(model: ProbabilisticFasterRCNN, images: Images) -> list[Detections]:
    return [to_detections(model.detect(torch.from_numpy(image[None]))[0]) for image in images]


def _infer_static(static: StaticGraph, images: Images) -> Outputs:
    """Outputs of the static graph in torch, image by image."""

    def run(group: Images) -> Outputs:
        with torch.no_grad():
            found: StaticOutput = static(torch.from_numpy(group))
        return {name: value.numpy() for name, value in found._asdict().items()}

    return in_groups(images, 1, run)


def _equal(
    name: str,
    model: ProbabilisticFasterRCNN,
    images: Images,
    eager: list[Detections],
    answers: list[Detections],
    backend: str = "",
) -> BundleCheck:
    total = Comparison()
    for image, reference, answer in zip(images, eager, answers, strict=True):
        found = compare(reference, answer)
        if found.wrong:  # only then is it worth asking whether float32 decides it
            found = compare(reference, answer, list(disturbed(model, torch.from_numpy(image[None]))))
        total += found
    return BundleCheck(name, total.passed, f"{len(images)} images: {total}", backend=backend)
