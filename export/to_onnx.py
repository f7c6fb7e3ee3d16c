"""Detector to ONNX: trace the static graph, fold what is constant, declare what it needs."""

from __future__ import annotations

import io
import tempfile
import warnings
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from ptedge.backends.providers import CPU, session_settings
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.graph_contract import IMAGES, VARIANCES

from .graph import StageTensors, StaticGraph, StaticOutput
from .onnx_graph import OPSET, finish


class _NamedGraph(StaticGraph):
    """The static graph with all tensors that have names in the file as its outputs."""

    @property
    def stage_names(self) -> list[str]:
        """Those between and behind the stages; a vanilla detector's variances are a constant."""
        return [name for name in StageTensors._fields if name != VARIANCES or self.model.config.probabilistic]

    def forward(self, images: Tensor) -> Any:  # tracing takes a flat tuple
        outputs, stages = self.with_stages(images)
        return (*outputs, *(getattr(stages, name) for name in self.stage_names))


def model_to_onnx(model: ProbabilisticFasterRCNN, size: tuple[int, int], batch: int) -> bytes:
    """A detector as serialised ONNX of opset 17, with constants folded and BatchNorm in the convolutions.

    The tensors at which it can be cut have the names of :mod:`ptedge.graph_contract`.

    Args:
        model: trained; unchanged.
        size: (height, width) of the input.
        batch: images a call.
    """
    graph = _NamedGraph(model, size).cpu()
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
            output_names=[*StaticOutput._fields, *graph.stage_names],
        )
        shapes = [tuple(value.shape) for value in graph.with_stages(images)[0]]
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
    """Leave the outputs of the contract, and write their shapes, which tracing leaves open."""
    import onnx

    proto = onnx.load_from_string(model)
    del proto.graph.output[len(shapes) :]  # tensors between the stages keep their names
    for output, shape in zip(proto.graph.output, shapes, strict=True):
        element = output.type.tensor_type.elem_type
        output.CopyFrom(onnx.helper.make_tensor_value_info(output.name, element, shape))
    return finish(bytes(proto.SerializeToString()))
