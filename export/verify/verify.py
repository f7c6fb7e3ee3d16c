"""Does a bundle answer as its checkpoint does, and as on other backends? The course of ``ptedge verify``."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from ptedge.artifacts.bundle import Bundle, open_bundle
from ptedge.artifacts.manifest import Manifest
from ptedge.artifacts.trust import Trust
from ptedge.backends.runner import Runner
from ptedge.data.dataset import Dataset
from ptedge.errors import MissingExtraError
from ptedge.files import sha256_file
from ptedge.scores.evaluation import EvaluationResult

from ..check_graph import GraphReport, check_graph, check_sides, check_stages
from ..network_inputs import FRAMES, Images, first_frames, make_scenes
from .answers import infer_all, to_rows
from .backends import TriedBackend, try_backends
from .check import BundleCheck, without_package
from .labelled import Answer, answer_data, compare_data, open_labelled
from .limits import BY_PRECISION, limits_for
from .scenes import SceneChecks

if TYPE_CHECKING:  # torch, which devices do not have
    from .reference import Reference


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
        against: its checkpoint, which takes torch; ``None`` looks beside the bundle for the one the lineage names, and
            without torch compares backends with each other alone.
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
        MissingExtraError: ``against`` is given and torch is not installed.
    """
    bundle = open_bundle(path, trust)
    manifest = bundle.manifest
    checks = check_files(bundle)
    scenes = make_scenes(manifest.input_size)
    if frames is not None:
        scenes[FRAMES] = first_frames(frames, manifest.input_size, limit)
    source, reference, found = _open_reference(bundle, scenes, against)
    checks += found
    on_scenes = SceneChecks(bundle, scenes, reference)
    on_data = None
    if data is not None:
        dataset = open_labelled(data, manifest.class_names, images)
        on_data = _DataChecks(manifest, dataset, reference.detect if reference is not None else None)
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


def _open_reference(
    bundle: Bundle, scenes: dict[str, Images], against: Path | None
) -> tuple[Path | None, Reference | None, list[BundleCheck]]:
    """The checkpoint to compare with, if there is one and torch to run it, and what checking it by itself found."""
    source = against if against is not None else find_checkpoint(bundle)
    if source is None:
        detail = "not compared: none beside the bundle matches its lineage; --against CHECKPOINT names it"
        return None, None, [BundleCheck("checkpoint", True, detail, judged=False)]
    try:
        from .reference import Reference

        reference = Reference(bundle, scenes, source)
    except ModuleNotFoundError as error:
        absent = without_package("checkpoint", error)
        if against is not None:
            raise MissingExtraError(
                f"--against runs the checkpoint with {error.name}, which is not installed. Install it with: "
                'pip install "ptedge[export]"; without --against, backends are compared with each other'
            ) from None
        return None, None, [absent]
    return source, reference, [check_lineage(bundle, source), *reference.check_checkpoint()]


class _DataChecks:
    """Backends on labelled data, against the checkpoint; without one, against the first of them."""

    def __init__(self, manifest: Manifest, dataset: Dataset, checkpoint: Answer | None) -> None:
        self._manifest, self._dataset = manifest, dataset
        self._reference = None if checkpoint is None else self._answer(checkpoint)

    def check_backend(self, tried: TriedBackend, runner: Runner) -> list[BundleCheck]:
        """What one backend finds; none for the first, where nothing else is there to compare with."""
        found = self._answer(lambda images: to_rows(infer_all(runner, images)))
        if self._reference is None:
            self._reference = found
            return []
        difference = compare_data(self._reference, found, limits_for(self._manifest.precision, tried.backend))
        name = f"{tried.name}, data"
        passed, count = difference.passed, difference.detections
        return [BundleCheck(name, passed, str(difference), backend=tried.backend, compared=count)]

    def _answer(self, answer: Answer) -> EvaluationResult:
        return answer_data(answer, self._dataset, self._manifest.input_size, self._manifest.scale_after_graph)


def check_files(bundle: Bundle) -> list[BundleCheck]:
    """The bundle by itself: that it opened says that its files match; its graph is held to the contract, with onnx.

    Raises:
        ArtifactError: the graph breaks it.
    """
    model, second = bundle.read_model(), bundle.read_second()
    try:
        report = _check_graphs(bundle.manifest, model, second)
    except ModuleNotFoundError as error:
        graph = without_package("graph", error)
    else:
        stages = "" if second is None else ", in two stages"
        detail = f"{report.nodes} operators, {report.size / 1e6:.1f} MB, fixed shapes{stages}"
        graph = BundleCheck("graph", True, detail)
    return [
        BundleCheck("files", True, f"match the manifest, model {bundle.model_hash[:12]}"),
        BundleCheck("signature", True, bundle.signature, judged=bundle.trust is not None),
        graph,
        _check_calibration(bundle.manifest, model),
    ]


def _check_graphs(manifest: Manifest, model: bytes, second: bytes | None) -> GraphReport:
    if second is not None:
        return check_stages(model, second, manifest)
    return check_graph(model, manifest.batch, manifest.input_size, manifest.max_detections, manifest.precision)


def _check_calibration(manifest: Manifest, model: bytes) -> BundleCheck:
    """What the graph corrects sides by is what the manifest says; behind two stages the manifest itself is followed.

    Raises:
        ArtifactError: it is not.
    """
    name = "calibration"
    if manifest.schema < 2:
        return BundleCheck(name, True, "after the graph, as bundles of schema 1 have it", judged=False)
    whole = manifest.second_stage is None
    if whole:
        check_sides(model, manifest.side_offset, manifest.sigma_scale)
    origin = manifest.calibrated
    if origin is None:
        return BundleCheck(name, True, "none, and the graph corrects nothing" if whole else "none")
    where = "in the graph" if whole else "behind the second stage"
    return BundleCheck(name, True, f"{where}, from {origin.boxes} boxes of {origin.images} images ({origin.how})")


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
