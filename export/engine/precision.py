"""Number types for TensorRT 8, whose networks are weakly typed: flags allow a type, and layers are held to theirs.

TensorRT 10 and later take the types of the graph as they stand and need none of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..onnx_graph import read_graph
from ..precision.int8_weights import pair_weights
from ..precision.layers import int8_nodes

if TYPE_CHECKING:
    import tensorrt as trt


def allow_precision(
    tensorrt: Any, network: trt.INetworkDefinition, config: trt.IBuilderConfig, model: bytes, precision: str
) -> None:
    """Allow the number types that a graph uses, and hold every layer to the type that the graph gives it.

    Args:
        tensorrt: the module.
        network: parsed from the model.
        config: of the builder; its flags are set.
        model: serialised ONNX.
        precision: of the model: ``fp32``, ``fp16`` or ``int8``.

    Raises:
        MissingExtraError: fp16 or int8 without the onnx package.
    """
    if precision == "fp32":
        return
    flags = tensorrt.BuilderFlag
    types = number_types(model)
    if "int8" in types.values():  # of a model in two stages one may have no int8 layer, and then no ranges either
        config.set_flag(flags.INT8)
    if "float16" not in types.values():
        return  # Quantize and Dequantize say which layers are int8; the others are float32, the only other type allowed
    config.set_flag(flags.FP16)
    config.set_flag(flags.OBEY_PRECISION_CONSTRAINTS)
    pending: list[Any] = []
    for i in range(network.num_layers):
        layer = network.get_layer(i)
        pending.append(layer)
        kind = next((types[name] for name in _output_names(layer) if name in types), None)
        if kind is None:
            continue  # a helper layer of the parser: it belongs to the node whose output comes next
        if kind != "int8":
            for member in pending:
                _hold(tensorrt, member, tensorrt.float32 if kind == "float32" else tensorrt.float16)
        pending.clear()


def readable_weights(model: bytes) -> bytes:
    """A graph with int8 weights in the form that TensorRT 8 is sure to read; others as they are.

    Args:
        model: serialised ONNX.

    Raises:
        MissingExtraError: no onnx package.
    """
    return bytes(pair_weights(read_graph(model)).SerializeToString())


def _output_names(layer: trt.ILayer) -> list[str]:
    return [layer.get_output(j).name for j in range(layer.num_outputs) if layer.get_output(j) is not None]


def _hold(tensorrt: Any, layer: trt.ILayer, kind: Any) -> None:
    """Give a layer its precision; layers on integers and booleans, casts and constants have none to give."""
    outputs = [layer.get_output(j) for j in range(layer.num_outputs)]
    floating = (tensorrt.float32, tensorrt.float16)
    fixed = (tensorrt.LayerType.CONSTANT, tensorrt.LayerType.SHAPE, tensorrt.LayerType.IDENTITY)
    if layer.type in fixed or not any(output is not None and output.dtype in floating for output in outputs):
        return
    layer.precision = kind
    for j, output in enumerate(outputs):
        if output is not None and output.dtype in floating:
            layer.set_output_type(j, kind)


def number_types(model: bytes) -> dict[str, str]:
    """Tensors of an ONNX graph that are ``float32`` or ``float16``, or inside an int8 kernel (``int8``), by name.

    In the last, Quantize and Dequantize give the precision and nothing else may.

    Args:
        model: serialised ONNX.

    Raises:
        MissingExtraError: no onnx package.
    """
    proto = read_graph(model)
    import onnx  # there, or the line above had said that it is not

    proto = onnx.shape_inference.infer_shapes(proto)
    kinds = {onnx.TensorProto.FLOAT: "float32", onnx.TensorProto.FLOAT16: "float16"}
    values = (*proto.graph.value_info, *proto.graph.output)
    types = {value.name: kinds.get(value.type.tensor_type.elem_type) for value in values}
    inside = int8_nodes(proto)
    types |= {name: "int8" for node in proto.graph.node if node.name in inside for name in node.output}
    return {name: kind for name, kind in types.items() if kind is not None}
