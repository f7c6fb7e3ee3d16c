"""A detector of a few nodes for tests: constant answers, the inputs and outputs of a real bundle."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from ptedge.artifacts.bundle import Bundle, write_bundle
from ptedge.artifacts.manifest import Manifest
from ptedge.graph_contract import output_signature

HEIGHT, WIDTH, ROWS = 64, 96, 5
CLASS_NAMES = ("car", "person")

# two detections in a 64 x 96 input, best first
ANSWER: dict[str, list[Any]] = {
    "boxes": [[8, 16, 40, 48], [50, 10, 90, 30]],
    "scores": [0.9, 0.6],
    "labels": [0, 1],
    "sigma": [[1, 2, 3, 4], [0.5, 0.5, 0.5, 0.5]],
    "entropy": [0.1, 0.8],
}


def tiny_onnx(
    answer: Mapping[str, Sequence[Any]] = ANSWER, batch: int = 1, converged: int = 1, sides: bool = True
) -> bytes:
    """A serialised graph that answers every image with ``answer``, padded to ROWS rows; ``sides``: as the constants
    ``side_offset`` and ``sigma_scale`` correct it."""
    count = len(answer["scores"])
    values: dict[str, NDArray[Any]] = {
        name: np.zeros(shape, kind) for name, (shape, kind) in output_signature(batch, ROWS).items()
    }
    values["num_detections"][:], values["converged"][:] = count, converged
    for name, rows in answer.items():
        if count:
            values[name][:, :count] = np.array(rows, values[name].dtype)
    # every output depends on the input (plus zero times its sum), as ONNX Runtime drops unused inputs
    nodes = [
        helper.make_node("Cast", ["images"], ["pixels"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["pixels"], ["top"], axes=[0, 1, 2, 3], keepdims=0),
        helper.make_node("Mul", ["top", "zero"], ["nothing"]),
    ]
    constants = [numpy_helper.from_array(np.float32(0), "zero")]
    outputs = []
    for name, value in values.items():
        constants.append(numpy_helper.from_array(value, f"{name}_value"))
        kind = helper.np_dtype_to_tensor_dtype(value.dtype)
        nodes.append(helper.make_node("Cast", ["nothing"], [f"{name}_zero"], to=kind))
        nodes.append(helper.make_node("Add", [f"{name}_value", f"{name}_zero"], [name]))
        outputs.append(helper.make_tensor_value_info(name, kind, value.shape))
    if sides:
        nodes += _correct(values["boxes"], nodes, constants)
    images = helper.make_tensor_value_info("images", TensorProto.UINT8, [batch, 3, HEIGHT, WIDTH])
    graph = helper.make_graph(nodes, "tiny", [images], outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


def _correct(boxes: NDArray[Any], nodes: list[Any], constants: list[Any]) -> list[Any]:
    """Nodes that correct boxes and sigma, which get other names before."""
    for node in nodes:
        if node.output[0] in ("boxes", "sigma"):
            node.output[0] += "_raw"
    size = np.tile(boxes[..., 2:] - boxes[..., :2], 2)
    constants += [
        numpy_helper.from_array(np.zeros(4, np.float32), "side_offset"),
        numpy_helper.from_array(np.ones(4, np.float32), "sigma_scale"),
        numpy_helper.from_array(size, "size"),
    ]
    return [
        helper.make_node("Mul", ["side_offset", "size"], ["by"]),
        helper.make_node("Sub", ["boxes_raw", "by"], ["boxes"]),
        helper.make_node("Mul", ["sigma_raw", "sigma_scale"], ["sigma"]),
    ]


def tiny_manifest(**changes: Any) -> Manifest:
    """The description of :func:`tiny_onnx`."""
    values: dict[str, Any] = {
        "class_names": CLASS_NAMES,
        "input_size": (HEIGHT, WIDTH),
        "anchors": ((16.0, 16.0),),
        "backbone": "tiny",
        "max_detections": ROWS,
    }
    return Manifest(**(values | changes))


def tiny_bundle(folder: Path, model: bytes | None = None, **changes: Any) -> Bundle:
    """A bundle of :func:`tiny_onnx` on disk."""
    return write_bundle(folder, tiny_manifest(**changes), tiny_onnx() if model is None else model)
