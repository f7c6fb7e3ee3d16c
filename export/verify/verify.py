"""Does a bundle answer as its checkpoint does? The course of ``ptedge verify``, and its report."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from ptedge.artifacts.bundle import Bundle, open_bundle
from ptedge.artifacts.manifest import Manifest
from ptedge.artifacts.trust import Trust
from ptedge.backends.runner import Runner
from ptedge.data.dataset import Dataset
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.files import sha256_file
from ptedge.scores.evaluation import EvaluationResult

from ..check_graph import check_graph
from ..network_inputs import first_frames, make_scenes
from .answers import detect_all, infer_all, to_rows
from .backends import TriedBackend, try_backends
from .check import BundleCheck
from .labelled import Answer, answer_data, compare_data, open_labelled
from .limits import BY_PRECISION, limits_for
from .scenes import FRAMES, SceneChecks


def verify_bundle(
    path: Path,
    against: Path | None = None,
    frames: str | None = None,
    limit: int = 16,
    *,
    data: Path | None = None,
    images: int | None = None,
    backends: Collection[str] | None = None,
    trust: Trust | None = None,
) -> tuple[list[BundleCheck], Path | None]:
    """Check a bundle.

    Args:
        path: bundle folder or ONNX file.
        against: its checkpoint; ``None`` looks beside the bundle for the one the lineage names.
        frames: real frames to compare on, beside the made ones.
        limit: at most this many of them.
        data: labelled data to compare average precision and coverage of sigma on.
        images: at most this many of its images.
        backends: ``cpu``, ``cuda``, ``tensorrt``; ``None`` takes what is there.
        trust: keys that bundle and engines must be signed with; ``None`` checks hashes alone.

    Returns:
        The checks, and the checkpoint that was compared with, if any.

    Raises:
        ArtifactError: the bundle or the checkpoint cannot be opened (a hash differs, for example).
        InputError: no such frames or data, or ``against`` is missing.
        BackendError: a backend asked for is not there.
    """
    bundle = open_bundle(path, trust)
    manifest = bundle.manifest
    checks = check_files(bundle)
    source = against if against is not None else find_checkpoint(bundle)
    scenes = make_scenes(manifest.input_size)
    if frames is not None:
        scenes[FRAMES] = first_frames(frames, manifest.input_size, limit)
    on_scenes = SceneChecks(bundle, scenes, source)
    if source is not None:
        checks += [check_lineage(bundle, source), *on_scenes.check_checkpoint()]
    on_data = None
    if data is not None:
        on_data = _DataChecks(manifest, open_labelled(data, manifest.class_names, images), on_scenes.model)
    for tried in try_backends(bundle, backends):
        runner = tried.runner
        if runner is None:
            reason = f"not compared: {tried.reason}"
            checks.append(BundleCheck(tried.name, True, reason, judged=False, backend=tried.backend))
            continue
        checks += on_scenes.check_backend(tried, runner)
        if on_data is not None:
            checks += on_data.check_backend(tried, runner)
    return checks, source


class _DataChecks:
    """Backends on labelled data, against the checkpoint; without one, against the first of them."""

    def __init__(self, manifest: Manifest, dataset: Dataset, model: ProbabilisticFasterRCNN | None) -> None:
        self._manifest, self._dataset = manifest, dataset
        self._reference = None if model is None else self._answer(lambda images: detect_all(model, images))

    def check_backend(self, tried: TriedBackend, runner: Runner) -> list[BundleCheck]:
        """What one backend finds; none for the first, where nothing else is there to compare with."""
        found = self._answer(lambda images: to_rows(infer_all(runner, images)))
        if self._reference is None:
            self._reference = found
            return []
        difference = compare_data(self._reference, found, limits_for(self._manifest.precision, tried.backend))
        name = f"{tried.name}, data"
        return [BundleCheck(name, difference.passed, str(difference), backend=tried.backend)]

    def _answer(self, answer: Answer) -> EvaluationResult:
        return answer_data(answer, self._dataset, self._manifest.input_size, self._manifest.sigma_scale)


def check_files(bundle: Bundle) -> list[BundleCheck]:
    """The bundle by itself: that it opened says that its files match; its graph is held to the contract.

    Raises:
        ArtifactError: the graph breaks it.
    """
    manifest = bundle.manifest
    report = check_graph(
        bundle.read_model(), manifest.batch, manifest.input_size, manifest.max_detections, manifest.precision
    )
    return [
        BundleCheck("files", True, f"match the manifest, model {bundle.model_hash[:12]}"),
        BundleCheck("signature", True, bundle.signature, judged=bundle.trust is not None),
        BundleCheck("graph", True, f"{report.nodes} operators, {report.size / 1e6:.1f} MB, fixed shapes"),
    ]


def check_lineage(bundle: Bundle, checkpoint: Path) -> BundleCheck:
    """Whether the bundle names this checkpoint as the one it was exported from."""
    wanted, found = bundle.manifest.lineage.checkpoint, sha256_file(checkpoint)
    detail = f"exported from {wanted[:12] or 'an unknown checkpoint'}, {checkpoint} is {found[:12]}"
    return BundleCheck("lineage", wanted == found, detail)


def find_checkpoint(bundle: Bundle) -> Path | None:
    """The checkpoint a bundle was exported from, if it still lies beside it or in a folder beside it."""
    wanted = bundle.manifest.lineage.checkpoint
    folder = bundle.path.resolve().parent
    near = [*sorted(folder.glob("*.pt")), *sorted(folder.glob("*/*.pt"))]
    return next((path for path in near if wanted and sha256_file(path) == wanted), None)


def allowed(path: Path) -> str:
    """The limits of a bundle's precision, in words."""
    limits = BY_PRECISION[open_bundle(path).manifest.precision]
    return f"limits of {limits.name}: {limits}"
