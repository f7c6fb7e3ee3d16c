"""Build engines without a GPU: TensorRT-RTX does so ahead of time, for GPUs named by their compute capability.

What it proves: a recent parser reads the graph, its number types hold together where every layer takes them as they
stand, and the compiler of fused layers takes it. Kernels are made later, on the GPU: nothing is known of speed, of
answers, or of other versions of TensorRT.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import torch

from ptedge.backends.trt import make_log, start
from ptedge.detector.config import ModelConfig
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import BackendError
from ptedge.export.engine.worker import read_network
from ptedge.export.onnx_graph import finish
from ptedge.export.precision.half import to_float16
from ptedge.export.precision.int8_weights import store_int8
from ptedge.export.precision.quantize import to_int8
from ptedge.export.to_onnx import model_to_onnx

MODULE = "tensorrt_rtx_bindings"
MISSING = "TensorRT-RTX builds the engines: pip install -e '.[test-tensorrt]' (x86-64)"


@dataclass(frozen=True)
class Built:
    """What came of a build.

    Attributes:
        size: bytes of the engine.
        layers: kind -> how many, of the network as TensorRT read it.
    """

    size: int
    layers: Counter[str]


class AheadBuilder:
    """TensorRT-RTX's builder; one a process, since its log is one a process."""

    def __init__(self) -> None:
        """Load it.

        Raises:
            ImportError: it is not installed.
        """
        self._rtx: Any = importlib.import_module(MODULE)
        self._log = make_log(self._rtx)
        self._builder = start(self._rtx.Builder, self._log)
        self.version = str(self._rtx.__version__)

    def build(self, model: bytes, capabilities: Sequence[str]) -> Built:
        """An engine for some kinds of GPU, thrown away.

        Args:
            model: serialised ONNX of fixed shapes.
            capabilities: compute capabilities, for example ``8.6``.

        Raises:
            BackendError: refused; with TensorRT's words.
        """
        self._log.lines = []
        network, parser = read_network(self._rtx, self._builder, self._log, model, strongly_typed=True)
        config = self._builder.create_builder_config()
        config.num_compute_capabilities = len(capabilities)
        for i, name in enumerate(capabilities):
            config.set_compute_capability(getattr(self._rtx.ComputeCapability, f"SM{name.replace('.', '')}"), i)
        engine = self._builder.build_serialized_network(network, config)
        if engine is None:
            raise BackendError(f"TensorRT-RTX {self.version} does not build this graph: {self._log.text()}")
        layers = Counter(network.get_layer(i).type.name.lower() for i in range(network.num_layers))
        del parser
        return Built(engine.nbytes, layers)


def untrained_graph(backbone: str, precision: str, size: tuple[int, int], **settings: Any) -> bytes:
    """A graph in a precision, from untrained weights.

    For int8 every layer before the predictors is quantised, which is more than an export would choose, and what is left
    between them is float16.

    Args:
        backbone: name of the backbone.
        precision: ``fp32``, ``fp16`` or ``int8``.
        size: (height, width) of the input.
        settings: of the detector, beside those.
    """
    torch.manual_seed(0)
    config = ModelConfig(backbone=backbone, weights="none", input_size=size, **settings)
    model = model_to_onnx(ProbabilisticFasterRCNN(config, 2), size, 1)
    if precision == "fp32":
        return model
    proto = onnx.load_from_string(model)
    if precision == "int8":
        frames = np.random.default_rng(0).integers(0, 256, (2, 3, *size), dtype=np.uint8)
        proto = to_int8(proto, frames, method="minmax")
    return finish(store_int8(to_float16(proto, {})[0]).SerializeToString())
