"""Checkpoint to ONNX: trace the static graph, fold what is constant, check what came out."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import io
import tempfile
import warnings
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

from ptedge import __version__
from ptedge.artifacts.bundle import Bundle, Manifest, write_bundle
from ptedge.artifacts.checkpoint import Checkpoint, load_checkpoint
from ptedge.detector.config import STRIDE
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import ArtifactError, InputError
from ptedge.files import make_output_folder, sha256_file

from .graph import StaticGraph, StaticOutput
from .precision.convert import Tell, check_calibration, convert
from .precision.graph_types import check_types

OPSET = 17  # the newest that TensorRT 8.5 reads; see deployment notes in docs
IR_VERSION = 8  # of ONNX 1.12, which belongs to opset 17; older runtimes refuse newer files
# operators whose output size depends on the data, control flow, and what needs a plugin in TensorRT
FORBIDDEN = frozenset({"NonMaxSuppression", "NonZero", "If", "Loop", "Scan", "RoiAlign", "Unique", "Compress"})


@dataclass(frozen=True)
class GraphReport:
    """What the exported graph is made of.

    Attributes:
        nodes: operators in the graph.
        size: bytes of the file.
    """

    nodes: int
    size: int


def export_checkpoint(
    checkpoint_path: Path,
    out: Path,
    *,
    input_size: tuple[int, int] | None = None,
    batch: int = 1,
    precision: str = "fp32",
    calibrate: str | None = None,
    int8_error: float | None = None,
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
        tell: takes a line on each step that takes long.

    Returns:
        The bundle, and what its graph is made of.

    Raises:
        InputError: missing checkpoint, a size that is no multiple of 16, a batch below 1, int8 without frames.
        ArtifactError: broken checkpoint, or a graph that breaks its contract.
        OutputError: ``out`` cannot be written.
    """
    check_calibration(precision, calibrate, int8_error)
    if batch < 1:
        raise InputError(f"batch is {batch}; it must be at least 1")
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
    return write_bundle(out, manifest, model), report


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
    return Manifest(
        class_names=checkpoint.class_names,
        input_size=size,
        anchors=tuple((round(float(w), 3), round(float(h), 3)) for w, h in anchors),
        backbone=config.backbone,
        batch=batch,
        score_rule=config.score_rule,
        max_detections=config.max_detections,
        score_threshold=config.score_threshold,
        lineage=dataclasses.replace(checkpoint.lineage, checkpoint=checkpoint_hash),
        created=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        tools={
            "ptedge": __version__,
            **{name: importlib.metadata.version(name) for name in ("torch", "onnx")},
        },
    )


def model_to_onnx(model: ProbabilisticFasterRCNN, size: tuple[int, int], batch: int) -> bytes:
    """A detector as serialised ONNX of opset 17, with constants folded and BatchNorm in the convolutions.

    Args:
        model: trained; unchanged.
        size: (height, width) of the input.
        batch: images a call.
    """
    graph = StaticGraph(model, size).cpu()
    images = torch.zeros(batch, 3, *size, dtype=torch.uint8)
    file: Any = io.BytesIO()  # torch types it as a path, and takes a file as well
    with warnings.catch_warnings(), torch.no_grad():
        # the tracer warns at every shape taken as constant, which is what a static graph wants, and of its own age
        warnings.simplefilter("ignore")
        torch.onnx.export(
            graph,
            (images,),
            file,
            dynamo=False,  # the flattest graph, and the one exporter that writes opset 17 unconverted
            opset_version=OPSET,
            input_names=["images"],
            output_names=list(StaticOutput._fields),
        )
        shapes = [tuple(value.shape) for value in graph(images)]
    return _declare(_fold(bytes(file.getvalue())), shapes)


def _fold(model: bytes) -> bytes:
    """Fold constants and fuse padding, BatchNorm and biases; ONNX Runtime's hardware-independent level does that."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "folded.onnx"
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        options.optimized_model_filepath = str(path)
        options.log_severity_level = 3
        onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        return path.read_bytes()


def _declare(model: bytes, shapes: list[tuple[int, ...]]) -> bytes:
    """Write the outputs' shapes, which tracing leaves open."""
    import onnx

    proto = onnx.load_from_string(model)
    for output, shape in zip(proto.graph.output, shapes, strict=True):
        element = output.type.tensor_type.elem_type
        output.CopyFrom(onnx.helper.make_tensor_value_info(output.name, element, shape))
    return finish(bytes(proto.SerializeToString()))


def finish(model: bytes) -> bytes:
    """Declare our operator set and no other, and drop what tools noted on the way."""
    import onnx

    proto = onnx.load_from_string(model)
    del proto.opset_import[:]
    proto.opset_import.append(onnx.helper.make_opsetid("", OPSET))
    proto.ir_version = IR_VERSION
    proto.producer_name, proto.producer_version = "ptedge", __version__
    del proto.graph.value_info[:], proto.metadata_props[:]
    return bytes(proto.SerializeToString())


def check_graph(
    model: bytes, batch: int, size: tuple[int, int], max_detections: int, precision: str | None = None
) -> GraphReport:
    """Hold an exported graph to its contract.

    Args:
        model: serialised ONNX.
        batch: images a call.
        size: (height, width) of the input.
        max_detections: D.
        precision: ``fp32``, ``fp16`` or ``int8``; ``None`` leaves number types unchecked.

    Raises:
        ArtifactError: invalid ONNX, an operator or type that should not be there, or an input or output that differs.
    """
    import onnx

    proto = onnx.load_from_string(model)
    try:
        onnx.checker.check_model(proto, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise ArtifactError(f"the exported graph is not valid ONNX: {error}. Please report this") from None
    foreign = {node.op_type for node in proto.graph.node if node.op_type in FORBIDDEN or node.domain}
    if foreign:
        raise ArtifactError(f"the exported graph holds {', '.join(sorted(foreign))}, which has no place there")
    float32, int32, uint8 = onnx.TensorProto.FLOAT, onnx.TensorProto.INT32, onnx.TensorProto.UINT8
    B, D = batch, max_detections
    expected = {
        "images": (uint8, (B, 3, *size)),
        "boxes": (float32, (B, D, 4)),
        "scores": (float32, (B, D)),
        "labels": (int32, (B, D)),
        "sigma": (float32, (B, D, 4)),
        "num_detections": (int32, (B,)),
        "entropy": (float32, (B, D)),
        "converged": (int32, (B,)),
    }
    found = {value.name: _type(value) for value in (*proto.graph.input, *proto.graph.output)}
    if found != expected:
        raise ArtifactError(f"the exported graph has inputs and outputs {found}, expected {expected}")
    if precision is not None:
        check_types(proto, precision)
    return GraphReport(len(proto.graph.node), len(model))


def _type(value: Any) -> tuple[int, tuple[int, ...]]:
    tensor = value.type.tensor_type
    return tensor.elem_type, tuple(d.dim_value for d in tensor.shape.dim)
