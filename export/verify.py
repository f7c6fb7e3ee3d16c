"""Does a bundle answer as its checkpoint does? Torch eager, static torch and ONNX Runtime, compared by boxes."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ptedge.bundle import Bundle, open_bundle
from ptedge.checkpoint import load_checkpoint, to_detections
from ptedge.detections import Detections
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.detector.static_graph import StaticGraph, StaticOutput
from ptedge.errors import InputError
from ptedge.files import sha256_file
from ptedge.frames import open_frames
from ptedge.preprocess import PIXEL_MEAN, Letterbox
from ptedge.runner import Runner

from .compare import Comparison, compare, disturbed
from .to_onnx import check_graph, model_to_onnx

Images = NDArray[np.uint8]  # [N, 3, H, W]
Outputs = dict[str, NDArray[Any]]
OVERFLOW_SLOTS = 10  # rows of the graph that is given more objects than it can return


@dataclass(frozen=True)
class Check:
    """One line of the report: what was checked, whether it holds, and the numbers."""

    name: str
    passed: bool
    detail: str


def verify_bundle(
    path: Path, against: Path | None = None, frames: str | None = None, limit: int = 16
) -> tuple[list[Check], Path | None]:
    """Check a bundle.

    Args:
        path: bundle folder or ONNX file.
        against: its checkpoint; ``None`` looks beside the bundle for the one the lineage names.
        frames: real frames to compare on, beside the made ones.
        limit: at most this many of them.

    Returns:
        The checks, and the checkpoint that was compared with, if any.

    Raises:
        ArtifactError: the bundle or the checkpoint cannot be opened (a hash differs, for example).
        InputError: no such frames, or ``against`` is missing.
    """
    bundle = open_bundle(path)
    manifest = bundle.manifest
    size, D = manifest.input_size, manifest.max_detections
    checks = [Check("files", True, f"match the manifest, model {bundle.model_hash[:12]}")]
    report = check_graph(bundle.model_path.read_bytes(), manifest.batch, size, D)
    checks.append(Check("graph", True, f"{report.nodes} operators, {report.size / 1e6:.1f} MB, fixed shapes"))
    scenes = make_scenes(size) | ({} if frames is None else {"frames": read_frames(frames, size, limit)})
    with Runner(bundle.model_path, "cpu") as runner:
        answers = {name: run_graph(runner, images) for name, images in scenes.items()}
        again = run_graph(runner, scenes["noise"])
    problems = [f"{name}: {p}" for name, outputs in answers.items() for p in broken_promises(outputs, bundle)]
    checks.append(Check("promises", not problems, problems[0] if problems else _counts(answers)))
    same = all(np.array_equal(again[name], answers["noise"][name]) for name in again)
    checks.append(Check("repeatable", same, "two runs give equal bytes" if same else "two runs differ"))
    source = against if against is not None else find_checkpoint(bundle)
    if source is not None:
        checks += compare_with_checkpoint(bundle, source, scenes, answers)
    return checks, source


def compare_with_checkpoint(
    bundle: Bundle, path: Path, scenes: dict[str, Images], answers: dict[str, Outputs]
) -> list[Check]:
    """The checks that need the checkpoint.

    Args:
        bundle: what is checked.
        path: checkpoint.
        scenes: name -> network inputs.
        answers: name -> what ONNX Runtime made of them.
    """
    checkpoint = load_checkpoint(path)
    manifest = bundle.manifest
    same_classes = checkpoint.class_names == manifest.class_names
    names = f"bundle {list(manifest.class_names)}, checkpoint {list(checkpoint.class_names)}"
    checks = [check_lineage(bundle, path), Check("classes", same_classes, names)]
    checkpoint = replace(checkpoint, config=replace(checkpoint.config, input_size=manifest.input_size))
    model = checkpoint.build()
    static = StaticGraph(model)
    for name, images in scenes.items():
        eager = detect_all(model, images)
        checks.append(_compared(f"static torch, {name}", model, images, eager, run_static(static, images)))
        checks.append(_compared(f"onnxruntime, {name}", model, images, eager, answers[name]))
    # the same weights with every box above the threshold and few rows: more objects than slots
    crowded = replace(checkpoint.config, score_threshold=0.0, max_detections=OVERFLOW_SLOTS)
    model = replace(checkpoint, config=crowded).build()
    images = np.concatenate([scenes.get("frames", scenes["noise"])[:2], scenes["black"]])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "crowded.onnx"
        file.write_bytes(model_to_onnx(model, manifest.input_size, 1))
        with Runner(file, "cpu") as runner:
            outputs = run_graph(runner, images)
    eager = detect_all(model, images)
    checks.append(_compared("onnxruntime, more objects than slots", model, images, eager, outputs))
    return checks


def check_lineage(bundle: Bundle, checkpoint: Path) -> Check:
    """Whether the bundle names this checkpoint as the one it was exported from."""
    wanted, found = bundle.manifest.lineage.checkpoint, sha256_file(checkpoint)
    detail = f"exported from {wanted[:12] or 'an unknown checkpoint'}, {checkpoint} is {found[:12]}"
    return Check("lineage", wanted == found, detail)


def detect_all(model: ProbabilisticFasterRCNN, images: Images) -> list[Detections]:
    """Eager detections in input pixels, image by image: [N, 3, H, W] uint8 -> N results."""
    return [to_detections(model.detect(torch.from_numpy(image[None]))[0]) for image in images]


def _compared(
    name: str, model: ProbabilisticFasterRCNN, images: Images, eager: Sequence[Detections], outputs: Outputs
) -> Check:
    total = Comparison()
    for image, reference, answer in zip(images, eager, to_rows(outputs), strict=True):
        found = compare(reference, answer)
        if found.wrong:  # only then is it worth asking whether float32 decides it
            found = compare(reference, answer, list(disturbed(model, torch.from_numpy(image[None]))))
        total += found
    return Check(name, total.passed, f"{len(images)} images: {total}")


def make_scenes(size: tuple[int, int]) -> dict[str, Images]:
    """Images without a camera: black, noise, and a pattern of blocks on the mean colour.

    Args:
        size: (height, width).

    Returns:
        Name -> [N, 3, H, W] uint8.
    """
    generator = np.random.default_rng(0)
    height, width = size
    blocks = np.empty((1, 3, height, width), np.uint8)
    blocks[:] = np.round(PIXEL_MEAN).astype(np.uint8)[:, None, None]
    for y, x in itertools.product(range(8, height - 16, 32), range(8, width - 16, 48)):
        blocks[0, :, y : y + 20, x : x + 30] = generator.integers(0, 256, (3, 1, 1))
    return {
        "black": np.zeros((1, 3, height, width), np.uint8),
        "noise": generator.integers(0, 256, (2, 3, height, width), dtype=np.uint8),
        "blocks": blocks,
    }


def read_frames(spec: str, size: tuple[int, int], limit: int) -> Images:
    """The first frames of any source, letterboxed.

    Raises:
        InputError: none there.
    """
    height, width = size
    placed = [
        Letterbox(frame.image.shape[1], frame.image.shape[0], height, width).image(frame.image).transpose(2, 0, 1)
        for frame in itertools.islice(open_frames(spec), limit)
    ]
    if not placed:
        raise InputError(f"{spec} holds no frames. Give an image, folder, list, video or field folder")
    return np.stack(placed)


def run_graph(runner: Runner, images: Images) -> Outputs:
    """Outputs of an exported graph for any number of images; each group's last image fills the batch."""
    batch = int(runner.inputs["images"][0][0])
    return _in_groups(images, batch, lambda group: runner.infer({"images": group}))


def run_static(static: StaticGraph, images: Images) -> Outputs:
    """Outputs of the static graph in torch, image by image."""

    def run(group: Images) -> Outputs:
        with torch.no_grad():
            found: StaticOutput = static(torch.from_numpy(group))
        return {name: value.numpy() for name, value in found._asdict().items()}

    return _in_groups(images, 1, run)


def _in_groups(images: Images, batch: int, run: Callable[[Images], Outputs]) -> Outputs:
    parts: list[Outputs] = []
    for start in range(0, len(images), batch):
        group = images[start : start + batch]
        filler = np.repeat(group[-1:], batch - len(group), axis=0)
        outputs = run(np.ascontiguousarray(np.concatenate([group, filler])))
        parts.append({name: value[: len(group)] for name, value in outputs.items()})
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def to_rows(outputs: Outputs) -> list[Detections]:
    """Graph outputs as detections in input pixels, one entry an image."""
    return [
        Detections(
            outputs["boxes"][i, :n],
            outputs["scores"][i, :n],
            outputs["labels"][i, :n].astype(np.int64),
            outputs["sigma"][i, :n],
            outputs["entropy"][i, :n],
        )
        for i, n in enumerate(outputs["num_detections"])
    ]


def broken_promises(outputs: Outputs, bundle: Bundle) -> list[str]:
    """What the graph's outputs promise whatever the image shows, and do not keep.

    Args:
        outputs: for N images.
        bundle: its manifest gives the input size, the classes and the threshold.
    """
    manifest = bundle.manifest
    height, width = manifest.input_size
    problems = []
    if not all(np.isfinite(value).all() for value in outputs.values()):
        problems.append("numbers that are not finite")
    if not outputs["converged"].all():
        problems.append(f"NMS not at its fixpoint in {int((outputs['converged'] == 0).sum())} images")
    rows = np.arange(manifest.max_detections) >= outputs["num_detections"][:, None]  # [N, D] beyond the detections
    for name in ("boxes", "scores", "labels", "sigma", "entropy"):
        if outputs[name][rows].any():
            problems.append(f"{name} beyond num_detections are not zero")
    for found in to_rows(outputs):
        x1, y1, x2, y2 = found.boxes.T
        if not ((x1 >= 0) & (y1 >= 0) & (x2 <= width) & (y2 <= height) & (x1 <= x2) & (y1 <= y2)).all():
            problems.append("a box is inverted or outside the input")
        if (np.diff(found.scores) > 0).any() or not (
            (found.scores > manifest.score_threshold) & (found.scores <= 1)
        ).all():
            problems.append("scores are not in descending order within (threshold, 1]")
        if not ((found.labels >= 0) & (found.labels < len(manifest.class_names))).all():
            problems.append("a label has no class")
        if (found.sigma < 0).any() or (found.entropy < -1e-5).any():
            problems.append("sigma or entropy is negative")
    return problems


def _counts(answers: dict[str, Outputs]) -> str:
    found = ", ".join(f"{name} {int(outputs['num_detections'].sum())}" for name, outputs in answers.items())
    return f"finite, ordered, inside, padding zero, NMS converged; detections: {found}"


def find_checkpoint(bundle: Bundle) -> Path | None:
    """The checkpoint a bundle was exported from, if it still lies beside it or in a folder beside it."""
    wanted = bundle.manifest.lineage.checkpoint
    folder = bundle.path.resolve().parent
    candidates = [*sorted(folder.glob("*.pt")), *sorted(folder.glob("*/*.pt"))]
    return next((path for path in candidates if wanted and sha256_file(path) == wanted), None)


def failed(checks: Sequence[Check]) -> list[Check]:
    """Those that do not hold."""
    return [check for check in checks if not check.passed]
