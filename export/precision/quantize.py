"""Int8 in the graph itself: QuantizeLinear and DequantizeLinear around convolutions and fully connected layers.

ONNX Runtime's quantiser places them and measures the ranges; this file decides which layers, and holds it to what
TensorRT takes: symmetric, zero point 0, one scale per output channel of a weight, biases left in float32. Outputs of
layers are not quantised, only inputs are: a convolution, the addition of a shortcut and the activation behind it then
fuse into one kernel.
"""

from __future__ import annotations

import contextlib
import io
import logging
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.graph_contract import IMAGES

from ..onnx_graph import Proto
from .layers import find_layers

METHODS = {"minmax": "MinMax", "percentile": "Percentile"}
PERCENTILE = 99.99  # of the magnitudes seen; docs/precision.md compares


class FrameReader:
    """Calibration frames in the form the quantiser asks for: one batch at a time, any range of them.

    Args:
        frames: [N, 3, H, W] uint8 network inputs.
        batch: images a call of the graph.
    """

    def __init__(self, frames: NDArray[np.uint8], batch: int) -> None:
        missing = -len(frames) % batch
        self._frames = np.concatenate([frames, np.repeat(frames[-1:], missing, axis=0)])
        self._batch = batch
        self.set_range(0, len(self))

    def __len__(self) -> int:
        return len(self._frames) // self._batch

    def set_range(self, start_index: int, end_index: int) -> None:
        """Read batches from ``start_index`` up to ``end_index``."""
        self._next, self._end = start_index, end_index

    def get_next(self) -> dict[str, NDArray[np.uint8]] | None:
        """The next batch, or ``None`` at the end."""
        if self._next >= self._end:
            return None
        first = self._next * self._batch
        self._next += 1
        return {IMAGES: self._frames[first : first + self._batch]}


def to_int8(
    proto: Proto,
    frames: NDArray[np.uint8],
    *,
    batch: int = 1,
    method: str = "percentile",
) -> Proto:
    """A float32 graph with all its layers before the predictors quantised; :func:`only_these` undoes some.

    Args:
        proto: folded float32 graph; unchanged.
        frames: [N, 3, H, W] uint8 network inputs to measure activations on.
        batch: images a call of the graph.
        method: how a range follows from the activations seen, a key of ``METHODS``.
    """
    import onnx
    from onnxruntime.quantization import CalibrationMethod, QuantFormat, QuantType, quantize_static

    chosen = list(find_layers(proto).weighted)
    kinds = sorted({node.op_type for node in proto.graph.node if node.name in chosen})
    options: dict[str, Any] = {
        "ActivationSymmetric": True,
        "WeightSymmetric": True,
        "QuantizeBias": False,
        "AddQDQPairToWeight": True,  # weights stay in float32 until it is known which layers are int8
        "OpTypesToExcludeOutputQuantization": kinds,
        "QDQOpTypePerChannelSupportToAxis": {"MatMul": 1},
        "CalibTensorRangeSymmetric": method != "minmax",
        "CalibStridedMinMax": 1,  # one batch at a time, so that memory does not grow with the number of frames
        "CalibPercentile": PERCENTILE,
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "int8.onnx"
        source = onnx.ModelProto()
        source.CopyFrom(proto)
        logger = logging.getLogger()
        level = logger.level
        logger.setLevel(logging.ERROR)  # the quantiser advises to fold the graph first, which has been done
        try:
            with contextlib.redirect_stdout(io.StringIO()):  # stdout is for data, and the quantiser talks there
                quantize_static(
                    source,
                    path,
                    FrameReader(frames, batch),
                    quant_format=QuantFormat.QDQ,
                    op_types_to_quantize=kinds,
                    per_channel=True,
                    activation_type=QuantType.QInt8,
                    weight_type=QuantType.QInt8,
                    nodes_to_quantize=chosen,
                    calibrate_method=getattr(CalibrationMethod, METHODS[method]),
                    extra_options=options,
                )
        finally:
            logger.setLevel(level)
        return onnx.load(path)


def only_these(proto: Proto, quantised: Proto, names: Collection[str]) -> Proto:
    """A quantised graph in which only some layers read int8, and nothing but layers does.

    The quantiser hands the rounded tensor to all who read it. A shortcut or RoIAlign gains nothing by that, and passes
    the rounding on to everything behind.

    Args:
        proto: the float32 graph.
        quantised: what :func:`to_int8` made of it.
        names: weighted layers to keep in int8.
    """
    import onnx
    import onnx.utils

    out = onnx.ModelProto()
    out.CopyFrom(quantised)
    before = {node.name: node for node in proto.graph.node}
    for node in out.graph.node:
        if node.name in before and node.name not in names:
            node.input[:] = before[node.name].input
    constants = {tensor.name: tensor for graph in (quantised.graph, proto.graph) for tensor in graph.initializer}
    del out.graph.initializer[:]
    out.graph.initializer.extend(constants.values())
    inputs, outputs = ([value.name for value in values] for values in (out.graph.input, out.graph.output))
    cut = onnx.utils.Extractor(out).extract_model(inputs, outputs)  # drops what nobody reads any more
    cut.graph.name = proto.graph.name
    return cut
