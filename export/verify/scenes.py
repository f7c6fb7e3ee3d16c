"""One bundle on the same images everywhere: each backend against the checkpoint in torch, and against the first."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from ptedge.artifacts.bundle import Bundle
from ptedge.artifacts.checkpoint import Checkpoint, load_checkpoint
from ptedge.backends.ort import OrtRunner
from ptedge.backends.runner import Runner
from ptedge.detections import Detections
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.graph_contract import IMAGES

from ..graph import StaticGraph
from ..network_inputs import Images
from ..to_onnx import model_to_onnx
from .answers import Outputs, detect_all, infer_all, infer_static, to_rows
from .backends import TriedBackend
from .by_layer import compare_layers
from .check import BundleCheck
from .compare import Comparison, compare
from .deviation import deviation
from .layer_runner import layer_runner
from .limits import limits_for
from .near_ties import disturbed
from .promises import broken_promises, promises_kept

FRAMES = "frames"  # the scene of the user's own frames; all others are made
REPEATED = "noise"  # the scene that is run twice
OVERFLOW_SLOTS = 10  # rows of the graph that is given more objects than it can return


class SceneChecks:
    """What all comparisons of one bundle share: its images, and the answers already known for them.

    Attributes:
        model: the checkpoint in torch, at the bundle's input size; ``None`` without one.
    """

    def __init__(self, bundle: Bundle, scenes: dict[str, Images], source: Path | None) -> None:
        """Ask the checkpoint for its answers.

        Args:
            bundle: opened bundle.
            scenes: name -> [N, 3, H, W] uint8.
            source: the checkpoint to compare with; ``None`` compares backends with each other alone.

        Raises:
            InputError: the checkpoint is missing.
            ArtifactError: it is broken.
        """
        self._bundle, self._scenes = bundle, scenes
        self._precision = bundle.manifest.precision
        self._first: dict[str, list[Detections]] = {}  # of the first backend
        self._first_name = ""
        self._checkpoint: Checkpoint | None = None
        self.model: ProbabilisticFasterRCNN | None = None
        self._eager: dict[str, list[Detections]] = {}
        if source is not None:
            checkpoint = load_checkpoint(source)
            config = replace(checkpoint.config, input_size=bundle.manifest.input_size)
            self._checkpoint = replace(checkpoint, config=config)
            self.model = self._checkpoint.build()
            self._eager = {name: detect_all(self.model, images) for name, images in scenes.items()}

    def check_checkpoint(self) -> list[BundleCheck]:
        """Its classes; the static graph in torch; and that graph with more objects than it can return."""
        assert self._checkpoint is not None and self.model is not None
        manifest, found = self._bundle.manifest, self._checkpoint.class_names
        names = f"bundle {list(manifest.class_names)}, checkpoint {list(found)}"
        checks = [BundleCheck("classes", found == manifest.class_names, names)]
        static = StaticGraph(self.model)
        for name, images in self._scenes.items():
            answers = to_rows(infer_static(static, images))
            checks.append(_equal(f"static torch, {name}", self.model, images, self._eager[name], answers))
        if self._precision == "fp32":
            checks.append(self._check_crowded(self._checkpoint))
        return checks

    def _check_crowded(self, checkpoint: Checkpoint) -> BundleCheck:
        """The same weights with every box above the threshold and few rows: more objects than slots."""
        crowded = replace(checkpoint.config, score_threshold=0.0, max_detections=OVERFLOW_SLOTS)
        model = replace(checkpoint, config=crowded).build()
        images = np.concatenate([self._scenes.get(FRAMES, self._scenes["noise"])[:2], self._scenes["black"]])
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "crowded.onnx"
            file.write_bytes(model_to_onnx(model, crowded.input_size, 1))
            with OrtRunner(file, "cpu") as runner:
                answers = to_rows(infer_all(runner, images))
        name = "onnxruntime cpu, more objects than slots"
        return _equal(name, model, images, detect_all(model, images), answers, backend="cpu")

    def check_backend(self, tried: TriedBackend, runner: Runner) -> list[BundleCheck]:
        """All checks of one backend.

        Args:
            tried: names it.
            runner: it, ready to run.
        """
        outputs = {name: infer_all(runner, images) for name, images in self._scenes.items()}
        checks = [self._check_promises(tried, outputs), self._check_repeatable(tried, runner, outputs[REPEATED])]
        answers = {name: to_rows(value) for name, value in outputs.items()}
        compared: list[tuple[str, BundleCheck]] = []  # scene, what was found on it
        if self._eager:
            compared += [(name, self._against_checkpoint(tried, name, answers[name])) for name in self._scenes]
        if self._first:
            compared += [(name, self._against_first(tried, name, answers[name])) for name in self._scenes]
        else:
            self._first, self._first_name = answers, tried.name
        checks += [check for _, check in compared]
        failing = next((scene for scene, check in compared if not check.passed), None)
        if failing is not None and self._checkpoint is not None:
            checks.append(self._find_layer(tried, failing))
        return checks

    def _check_promises(self, tried: TriedBackend, outputs: dict[str, Outputs]) -> BundleCheck:
        problems = [
            f"{name}: {problem}"
            for name, found in outputs.items()
            for problem in broken_promises(found, self._bundle, made=name != FRAMES)
        ]
        detail = problems[0] if problems else promises_kept(outputs)
        return BundleCheck(f"{tried.name}, promises", not problems, detail, backend=tried.backend)

    def _check_repeatable(self, tried: TriedBackend, runner: Runner, outputs: Outputs) -> BundleCheck:
        again = infer_all(runner, self._scenes[REPEATED])
        same = all(np.array_equal(again[name], outputs[name]) for name in again)
        detail = "two runs give equal bytes" if same else "two runs differ"
        judged = tried.backend == "cpu" or same
        return BundleCheck(f"{tried.name}, repeatable", same, detail, judged=judged, backend=tried.backend)

    def _against_checkpoint(self, tried: TriedBackend, scene: str, answers: list[Detections]) -> BundleCheck:
        name, images = f"{tried.name}, {scene}", self._scenes[scene]
        if self._precision == "fp32" and tried.backend == "cpu":
            assert self.model is not None
            return _equal(name, self.model, images, self._eager[scene], answers, tried.backend)
        return self._near(name, tried.backend, scene, self._eager[scene], answers)

    def _against_first(self, tried: TriedBackend, scene: str, answers: list[Detections]) -> BundleCheck:
        name = f"{tried.name} against {self._first_name}, {scene}"
        return self._near(name, tried.backend, scene, self._first[scene], answers)

    def _near(
        self, name: str, backend: str, scene: str, reference: list[Detections], answers: list[Detections]
    ) -> BundleCheck:
        found = deviation(reference, answers, limits_for(self._precision, backend))
        detail = f"{len(answers)} images: {found}"
        if self._precision == "int8" and scene != FRAMES:  # nothing like what it was calibrated for
            detail += "; not judged, int8 is calibrated for frames (--frames)"
            return BundleCheck(name, True, detail, judged=False, backend=backend)
        return BundleCheck(name, found.passed, detail, backend=backend)

    def _find_layer(self, tried: TriedBackend, scene: str) -> BundleCheck:
        """Which layer is to blame for a comparison that failed."""
        assert self.model is not None
        manifest = self._bundle.manifest
        reference = model_to_onnx(self.model, manifest.input_size, manifest.batch)
        images = np.repeat(self._scenes[scene][:1], manifest.batch, axis=0)
        found = compare_layers(
            reference,
            self._bundle.read_model(),
            {IMAGES: images},
            limits_for(self._precision, tried.backend).layer,
            layer_runner(tried.backend, self._precision),
            hand_over=tried.backend != "tensorrt",  # whole numbers of 64 bits are no inputs of TensorRT 8
        )
        departs = found.departure is not None
        return BundleCheck(f"{tried.name}, layers", not departs, str(found), judged=departs, backend=tried.backend)


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
