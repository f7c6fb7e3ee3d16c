"""Does a bundle answer as its checkpoint does? Torch, ONNX Runtime and TensorRT, compared by boxes and sigma."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from ptedge.artifacts.bundle import Bundle, open_bundle
from ptedge.artifacts.checkpoint import Checkpoint, load_checkpoint
from ptedge.backends.ort import OrtRunner
from ptedge.backends.runner import Runner
from ptedge.detections import Detections
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.files import sha256_file
from ptedge.graph_contract import converged_images

from ..graph import StaticGraph
from ..made_images import Images, make_scenes, read_frames
from ..to_onnx import check_graph, model_to_onnx
from .answers import Outputs, broken_promises, detect_all, run_graph, run_static, to_rows
from .by_layer import compare_layers
from .candidates import Candidate, layer_runner, open_candidates
from .compare import Comparison, compare, disturbed
from .deviation import deviation
from .labelled import DataAnswer, answer_data, compare_data, open_labelled
from .limits import BY_PRECISION, limits_for

OVERFLOW_SLOTS = 10  # rows of the graph that is given more objects than it can return


@dataclass(frozen=True)
class Check:
    """One line of the report: what was checked, whether it holds, and the numbers.

    Attributes:
        name: what was checked.
        passed: it holds, or was not judged.
        detail: numbers, or why it was not judged.
        judged: false for what is not there, and for numbers that are told only.
    """

    name: str
    passed: bool
    detail: str
    judged: bool = True


def verify_bundle(
    path: Path,
    against: Path | None = None,
    frames: str | None = None,
    limit: int = 16,
    *,
    data: Path | None = None,
    images: int | None = None,
    backends: Collection[str] | None = None,
) -> tuple[list[Check], Path | None]:
    """Check a bundle.

    Args:
        path: bundle folder or ONNX file.
        against: its checkpoint; ``None`` looks beside the bundle for the one the lineage names.
        frames: real frames to compare on, beside the made ones.
        limit: at most this many of them.
        data: labelled data to compare average precision and coverage of sigma on.
        images: at most this many of its images.
        backends: ``cpu``, ``cuda``, ``tensorrt``; ``None`` takes what is there.

    Returns:
        The checks, and the checkpoint that was compared with, if any.

    Raises:
        ArtifactError: the bundle or the checkpoint cannot be opened (a hash differs, for example).
        InputError: no such frames or data, or ``against`` is missing.
        BackendError: a backend asked for is not there.
    """
    bundle = open_bundle(path)
    manifest = bundle.manifest
    checks = [Check("files", True, f"match the manifest, model {bundle.model_hash[:12]}")]
    report = check_graph(
        bundle.model_path.read_bytes(), manifest.batch, manifest.input_size, manifest.max_detections, manifest.precision
    )
    checks.append(Check("graph", True, f"{report.nodes} operators, {report.size / 1e6:.1f} MB, fixed shapes"))
    source = against if against is not None else find_checkpoint(bundle)
    scenes = make_scenes(manifest.input_size)
    if frames is not None:
        scenes["frames"] = read_frames(frames, manifest.input_size, limit)
    work = _Verification(bundle, scenes, source)
    if source is not None:
        checks += work.check_checkpoint(source)
    dataset = None if data is None else open_labelled(data, manifest.class_names, images)
    reference: DataAnswer | None = None
    if dataset is not None and work.model is not None:
        model = work.model
        reference = answer_data(
            lambda inputs: detect_all(model, inputs), dataset, manifest.input_size, manifest.sigma_scale
        )
    for candidate in open_candidates(bundle, backends):
        runner = candidate.runner
        if runner is None:
            checks.append(Check(candidate.name, True, f"not compared: {candidate.reason}", judged=False))
            continue
        checks += work.check_candidate(candidate, runner)
        if dataset is not None:
            found = answer_data(_answers(runner), dataset, manifest.input_size, manifest.sigma_scale)
            if reference is not None:
                difference = compare_data(reference, found, limits_for(manifest.precision, candidate.backend))
                checks.append(Check(f"{candidate.name}, data", difference.passed, str(difference)))
            else:
                reference = found  # without a checkpoint, the first backend is what the others are compared with
    return checks, source


class _Verification:
    """What all comparisons of one bundle share: its images, and the answers already known for them."""

    def __init__(self, bundle: Bundle, scenes: dict[str, Images], source: Path | None) -> None:
        self.bundle, self.scenes = bundle, scenes
        self.precision = bundle.manifest.precision
        self.first: dict[str, list[Detections]] = {}  # of the first backend
        self.first_name = ""
        self.checkpoint: Checkpoint | None = None
        self.model: ProbabilisticFasterRCNN | None = None
        self.eager: dict[str, list[Detections]] = {}
        if source is not None:
            checkpoint = load_checkpoint(source)
            config = replace(checkpoint.config, input_size=bundle.manifest.input_size)
            self.checkpoint = replace(checkpoint, config=config)
            self.model = self.checkpoint.build()
            self.eager = {name: detect_all(self.model, images) for name, images in scenes.items()}

    def check_checkpoint(self, path: Path) -> list[Check]:
        """Lineage and classes; the static graph in torch; and that graph with more objects than it can return."""
        assert self.checkpoint is not None and self.model is not None
        manifest, found = self.bundle.manifest, self.checkpoint.class_names
        names = f"bundle {list(manifest.class_names)}, checkpoint {list(found)}"
        checks = [check_lineage(self.bundle, path), Check("classes", found == manifest.class_names, names)]
        static = StaticGraph(self.model)
        for name, images in self.scenes.items():
            answers = to_rows(run_static(static, images))
            checks.append(_equal(f"static torch, {name}", self.model, images, self.eager[name], answers))
        if self.precision == "fp32":
            checks.append(self._check_crowded(self.checkpoint))
        return checks

    def _check_crowded(self, checkpoint: Checkpoint) -> Check:
        """The same weights with every box above the threshold and few rows: more objects than slots."""
        crowded = replace(checkpoint.config, score_threshold=0.0, max_detections=OVERFLOW_SLOTS)
        model = replace(checkpoint, config=crowded).build()
        images = np.concatenate([self.scenes.get("frames", self.scenes["noise"])[:2], self.scenes["black"]])
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "crowded.onnx"
            file.write_bytes(model_to_onnx(model, crowded.input_size, 1))
            with OrtRunner(file, "cpu") as runner:
                answers = to_rows(run_graph(runner, images))
        name = "onnxruntime cpu, more objects than slots"
        return _equal(name, model, images, detect_all(model, images), answers)

    def check_candidate(self, candidate: Candidate, runner: Runner) -> list[Check]:
        """All checks of one backend."""
        outputs = {name: run_graph(runner, images) for name, images in self.scenes.items()}
        again = run_graph(runner, self.scenes["noise"])
        problems = [
            f"{name}: {problem}"
            for name, found in outputs.items()
            for problem in broken_promises(found, self.bundle, made=name != "frames")
        ]
        same = all(np.array_equal(again[name], outputs["noise"][name]) for name in again)
        repeat = "two runs give equal bytes" if same else "two runs differ"
        checks = [
            Check(f"{candidate.name}, promises", not problems, problems[0] if problems else promises_kept(outputs)),
            Check(f"{candidate.name}, repeatable", same, repeat, judged=candidate.backend == "cpu" or same),
        ]
        answers = {name: to_rows(value) for name, value in outputs.items()}
        compared = [self._against_checkpoint(candidate, name, answers[name]) for name in self.scenes if self.eager]
        if self.first:
            compared += [self._against_first(candidate, name, answers[name]) for name in self.scenes]
        else:
            self.first, self.first_name = answers, candidate.name
        bad = failed(compared)
        if bad and self.checkpoint is not None:
            compared.append(self._find_layer(candidate, bad[0].name.rpartition(", ")[2]))
        return [*checks, *compared]

    def _against_checkpoint(self, candidate: Candidate, scene: str, answers: list[Detections]) -> Check:
        name, images = f"{candidate.name}, {scene}", self.scenes[scene]
        if self.precision == "fp32" and candidate.backend == "cpu":
            assert self.model is not None
            return _equal(name, self.model, images, self.eager[scene], answers)
        return self._near(name, candidate.backend, scene, self.eager[scene], answers)

    def _against_first(self, candidate: Candidate, scene: str, answers: list[Detections]) -> Check:
        name = f"{candidate.name} against {self.first_name}, {scene}"
        return self._near(name, candidate.backend, scene, self.first[scene], answers)

    def _near(
        self, name: str, backend: str, scene: str, reference: list[Detections], answers: list[Detections]
    ) -> Check:
        found = deviation(reference, answers, limits_for(self.precision, backend))
        detail = f"{len(answers)} images: {found}"
        if self.precision == "int8" and scene != "frames":  # nothing like what it was calibrated for
            return Check(name, True, f"{detail}; not judged, int8 is calibrated for frames (--frames)", judged=False)
        return Check(name, found.passed, detail)

    def _find_layer(self, candidate: Candidate, scene: str) -> Check:
        """Which layer is to blame for a comparison that failed."""
        assert self.model is not None
        manifest = self.bundle.manifest
        reference = model_to_onnx(self.model, manifest.input_size, manifest.batch)
        images = np.repeat(self.scenes[scene][:1], manifest.batch, axis=0)
        found = compare_layers(
            reference,
            self.bundle.model_path.read_bytes(),
            {"images": images},
            limits_for(self.precision, candidate.backend).layer,
            layer_runner(candidate.backend, self.precision),
            hand_over=candidate.backend != "tensorrt",  # whole numbers of 64 bits are no inputs of TensorRT 8
        )
        return Check(
            f"{candidate.name}, layers", found.departure is None, str(found), judged=found.departure is not None
        )


def check_lineage(bundle: Bundle, checkpoint: Path) -> Check:
    """Whether the bundle names this checkpoint as the one it was exported from."""
    wanted, found = bundle.manifest.lineage.checkpoint, sha256_file(checkpoint)
    detail = f"exported from {wanted[:12] or 'an unknown checkpoint'}, {checkpoint} is {found[:12]}"
    return Check("lineage", wanted == found, detail)


def find_checkpoint(bundle: Bundle) -> Path | None:
    """The checkpoint a bundle was exported from, if it still lies beside it or in a folder beside it."""
    wanted = bundle.manifest.lineage.checkpoint
    folder = bundle.path.resolve().parent
    candidates = [*sorted(folder.glob("*.pt")), *sorted(folder.glob("*/*.pt"))]
    return next((path for path in candidates if wanted and sha256_file(path) == wanted), None)


def failed(checks: Sequence[Check]) -> list[Check]:
    """Those that do not hold."""
    return [check for check in checks if not check.passed]


def allowed(path: Path) -> str:
    """The limits of a bundle's precision, in words."""
    limits = BY_PRECISION[open_bundle(path).manifest.precision]
    return f"limits of {limits.name}: {limits}"


def _equal(
    name: str, model: ProbabilisticFasterRCNN, images: Images, eager: list[Detections], answers: list[Detections]
) -> Check:
    total = Comparison()
    for image, reference, answer in zip(images, eager, answers, strict=True):
        found = compare(reference, answer)
        if found.wrong:  # only then is it worth asking whether float32 decides it
            found = compare(reference, answer, list(disturbed(model, torch.from_numpy(image[None]))))
        total += found
    return Check(name, total.passed, f"{len(images)} images: {total}")


def _answers(runner: Runner) -> Callable[[Images], list[Detections]]:
    return lambda inputs: to_rows(run_graph(runner, inputs))


def promises_kept(answers: dict[str, Outputs]) -> str:
    """In words, and how many detections each kind of image gave."""
    found = ", ".join(f"{name} {int(outputs['num_detections'].sum())}" for name, outputs in answers.items())
    cut = {name: int((~converged_images(outputs)).sum()) for name, outputs in answers.items()}
    nms = ", ".join(f"NMS cut short in {count} of {name}" for name, count in cut.items() if count)
    return f"finite, ordered, inside, padding zero, {nms or 'NMS converged'}; detections: {found}"
