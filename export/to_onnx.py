"""Detector to ONNX: trace the static graph, fold what is constant, declare what it needs."""

from __future__ import annotations

import io
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch

from ptedge import __version__
from ptedge.backends.providers import CPU, session_settings
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.graph_contract import IMAGES

from .graph import StaticGraph, StaticOutput

OPSET = 17  # the newest that TensorRT 8.5 reads; see deployment notes in docs
IR_VERSION = 8  # of ONNX 1.12, which belongs to opset 17; older runtimes refuse newer files


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
            input_names=[IMAGES],
            output_names=list(StaticOutput._fields),
        )
        shapes = [tuple(value.shape) for value in graph(images)]
    return _declare(_fold(bytes(file.getvalue())), shapes)


def _fold(model: bytes) -> bytes:
    """Fold constants and fuse padding, BatchNorm and biases; ONNX Runtime's hardware-independent level does that."""
    import onnxruntime

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "folded.onnx"
        settings = session_settings()
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        settings.optimized_model_filepath = str(path)
        onnxruntime.InferenceSession(model, settings, providers=[CPU])
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
