"""One bundle on the same images everywhere: each backend against the checkpoint, and against the first backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ptedge.artifacts.bundle import Bundle
from ptedge.backends.promises import broken_promises, promises_kept
from ptedge.backends.runner import Runner
from ptedge.detections import Detections
from ptedge.progress import tracked

from ..network_inputs import FRAMES, Images
from .answers import Outputs, infer_all, to_rows
from .backends import TriedBackend
from .check import BundleCheck
from .deviation import deviation
from .limits import limits_for

if TYPE_CHECKING:  # torch, which devices do not have
    from .reference import Reference

REPEATED = "noise"  # the scene that is run twice


class SceneChecks:
    """What all comparisons of one bundle share: its images, and the answers already known for them."""

    def __init__(self, bundle: Bundle, scenes: dict[str, Images], reference: Reference | None) -> None:
        """Keep what is compared.

        Args:
            bundle: opened bundle.
            scenes: name -> [N, 3, H, W] uint8.
            reference: the checkpoint's answers for them; ``None`` compares backends with each other alone.
        """
        self._bundle, self._scenes, self._reference = bundle, scenes, reference
        self._precision = bundle.manifest.precision
        self._first: dict[str, list[Detections]] = {}  # of the first backend
        self._first_name = ""

    def check_backend(self, tried: TriedBackend, runner: Runner) -> list[BundleCheck]:
        """All checks of one backend.

        Args:
            tried: names it.
            runner: it, ready to run.
        """
        scenes = tracked(self._scenes.items(), f"comparing {tried.name}", "scenes")
        outputs = {name: infer_all(runner, images) for name, images in scenes}
        checks = [self._check_promises(tried, outputs), self._check_repeatable(tried, runner, outputs[REPEATED])]
        answers = {name: to_rows(value) for name, value in outputs.items()}
        compared: list[tuple[str, BundleCheck]] = []  # scene, what was found on it
        if self._reference is not None:
            known = self._reference
            compared += [(name, self._against_checkpoint(known, tried, name, answers[name])) for name in self._scenes]
        if self._first:
            compared += [(name, self._against_first(tried, name, answers[name])) for name in self._scenes]
        else:
            self._first, self._first_name = answers, tried.name
        checks += [check for _, check in compared]
        failing = next((scene for scene, check in compared if not check.passed), None)
        if failing is not None:
            checks.append(self._find_layer(tried, failing))
        return checks

    def _find_layer(self, tried: TriedBackend, scene: str) -> BundleCheck:
        if self._reference is not None:
            return self._reference.find_layer(tried, scene)
        detail = "the first layer that departs was not looked for: that takes --against CHECKPOINT, torch and onnx"
        return BundleCheck(f"{tried.name}, layers", True, detail, judged=False, backend=tried.backend)

    def _check_promises(self, tried: TriedBackend, outputs: dict[str, Outputs]) -> BundleCheck:
        problems = [
            f"{name}: {problem}"
            for name, found in outputs.items()
            for problem in broken_promises(found, self._bundle.manifest, made=name != FRAMES)
        ]
        detail = problems[0] if problems else promises_kept(outputs)
        return BundleCheck(f"{tried.name}, promises", not problems, detail, backend=tried.backend)

    def _check_repeatable(self, tried: TriedBackend, runner: Runner, outputs: Outputs) -> BundleCheck:
        again = infer_all(runner, self._scenes[REPEATED])
        same = all(np.array_equal(again[name], outputs[name]) for name in again)
        detail = "two runs give equal bytes" if same else "two runs differ"
        judged = tried.backend == "cpu" or same
        return BundleCheck(f"{tried.name}, repeatable", same, detail, judged=judged, backend=tried.backend)

    def _against_checkpoint(
        self, known: Reference, tried: TriedBackend, scene: str, answers: list[Detections]
    ) -> BundleCheck:
        name = f"{tried.name}, {scene}"
        if self._precision == "fp32" and tried.backend == "cpu":
            return known.compare_equal(name, tried.backend, scene, answers)
        return self._near(name, tried.backend, scene, known.answers[scene], answers)

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
            return BundleCheck(name, True, detail, judged=False, backend=backend, compared=found.detections)
        return BundleCheck(name, found.passed, detail, backend=backend, compared=found.detections)
