"""Checkpoint to bundle: what ``ptedge export`` does."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from datetime import datetime, timezone
from pathlib import Path

from ptedge import __version__
from ptedge.artifacts.bundle import Bundle, write_bundle
from ptedge.artifacts.checkpoint import Checkpoint, load_checkpoint
from ptedge.artifacts.manifest import Manifest
from ptedge.artifacts.signature import read_signing_key
from ptedge.detector.config import STRIDE
from ptedge.errors import InputError
from ptedge.files import make_output_folder, sha256_file
from ptedge.stages.settings import Selection

from .check_graph import GraphReport, check_graph, check_sides, check_stages
from .onnx_graph import finish
from .precision.convert import Tell, check_calibration, convert
from .stages import cut_stages
from .to_onnx import model_to_onnx


def export_checkpoint(
    checkpoint_path: Path,
    out: Path,
    *,
    input_size: tuple[int, int] | None = None,
    batch: int = 1,
    precision: str = "fp32",
    calibrate: str | None = None,
    int8_error: float | None = None,
    split: bool = False,
    sign: Path | None = None,
    tell: Tell = lambda line: None,
) -> tuple[Bundle, GraphReport]:
    """Write a checkpoint as a bundle.

    Args:
        checkpoint_path: ``model.pt``.
        out: bundle folder.
        input_size: (height, width) in pixels, multiples of 16; ``None`` takes the checkpoint's.
        batch: images a call.
        precision: ``fp32``, ``fp16`` or ``int8``.
        calibrate: frames of what the device will see, for ``int8`` (and to look for overflow, for ``fp16``).
        int8_error: most that int8 may change the predictors' outputs, relative to their standard deviation; ``None``
            for :data:`ptedge.export.precision.int8_choice.LIMIT`.
        split: write two graphs, with selection and suppression between and behind them left to the runtime.
        sign: private key to sign the bundle with.
        tell: takes a line on each step that takes long.

    Returns:
        The bundle, and what its graph is made of.

    Raises:
        InputError: missing checkpoint, a size that is no multiple of 16, a batch below 1, int8 without frames, no such
            key.
        ArtifactError: broken checkpoint, or a graph that breaks its contract.
        OutputError: ``out`` cannot be written.
    """
    check_calibration(precision, calibrate, int8_error)
    if batch < 1:
        raise InputError(f"batch is {batch}; it must be at least 1")
    key = read_signing_key(sign) if sign is not None else None  # before the long work
    checkpoint = load_checkpoint(checkpoint_path)
    size = input_size if input_size is not None else checkpoint.config.input_size
    check_size(size)
    make_output_folder(out.resolve().parent)
    model = model_to_onnx(checkpoint.build(), size, batch)
    model, conversion = convert(model, precision, size, batch, calibrate, int8_error, tell)
    model = finish(model)
    report = check_graph(model, batch, size, checkpoint.config.max_detections, precision)
    manifest = make_manifest(checkpoint, sha256_file(checkpoint_path), size, batch)
    manifest = dataclasses.replace(manifest, precision=precision, conversion=conversion)
    check_sides(model, manifest.side_offset, manifest.sigma_scale)
    second = None
    if split:
        model, second = cut_stages(model)
        report = check_stages(model, second, manifest)
    if checkpoint.reference is not None and manifest.reference is None:
        tell(
            "what frames look like was measured at another input size and is left out: drift is not watched against "
            f"it. Measure it again: ptedge drift {out} FRAMES --learn"
        )
    bundle = write_bundle(out, manifest, model, key, second)
    written = sum((bundle.path / name).stat().st_size for name in bundle.manifest.files)  # the manifest stands in there
    return bundle, dataclasses.replace(report, size=written)


def check_size(size: tuple[int, int]) -> None:
    """Refuse an input size that the stride does not divide.

    Raises:
        InputError: names the nearest size that works.
    """
    if any(side < STRIDE or side % STRIDE for side in size):
        near = [max(STRIDE, round(side / STRIDE) * STRIDE) for side in size]
        raise InputError(
            f"input size {size[0]}x{size[1]} (height x width) is not a multiple of {STRIDE}. "
            f"The nearest is --size {near[0]}x{near[1]}"
        )


def make_manifest(checkpoint: Checkpoint, checkpoint_hash: str, size: tuple[int, int], batch: int) -> Manifest:
    """What a bundle says about a checkpoint exported at one size."""
    config = checkpoint.config
    anchors = checkpoint.state["anchors.log_wh"].exp()
    plain = Manifest(
        class_names=checkpoint.class_names,
        input_size=size,
        anchors=tuple((round(float(w), 3), round(float(h), 3)) for w, h in anchors),
        backbone=config.backbone,
        batch=batch,
        estimate=checkpoint.estimate,
        reference=checkpoint.reference if size == config.input_size else None,
        adaptation=checkpoint.adaptation,
        score_rule=config.score_rule,
        sigma_rule=config.sigma_rule,
        max_detections=config.max_detections,
        score_threshold=config.score_threshold,
        selection=Selection(
            anchors=tuple((float(w), float(h)) for w, h in anchors),
            proposals=config.rpn_test_top_n,
            proposal_nms=config.rpn_nms,
            candidates=config.candidates,
            nms=config.nms,
            probabilistic=config.probabilistic,
        ),
        lineage=dataclasses.replace(checkpoint.lineage, checkpoint=checkpoint_hash),
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        tools={
            "ptedge": __version__,
            **{name: importlib.metadata.version(name) for name in ("torch", "onnx")},
        },
    )
    return plain.with_calibration(checkpoint.calibration)
