"""What an ONNX graph computes in which order, and graphs cut out of it.

Two graphs of one detector can be compared by position only while both take the same decisions: a TopK that puts two
rows in the other order, a floor that falls to the other side of a whole number, and everything behind it differs
without being wrong. So a graph can be cut such that decisions taken elsewhere are its inputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ptedge import __version__
from ptedge.errors import missing_extra

Node = Any  # onnx.NodeProto
Proto = Any  # onnx.ModelProto

OPSET = 17  # the newest that TensorRT 8.5 reads; see deployment notes in docs
IR_VERSION = 8  # of ONNX 1.12, which belongs to opset 17; older runtimes refuse newer files

# operators whose output jumps when their input moves by nothing
DECISIONS = frozenset(
    {"TopK", "ArgMax", "ArgMin", "NonMaxSuppression", "NonZero", "Floor", "Ceil", "Round"}
    | {"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"}
)


def read_graph(model: bytes) -> Proto:
    """A graph on a device, where the onnx package may be absent.

    Args:
        model: serialised ONNX.

    Raises:
        MissingExtraError: no onnx package.
    """
    try:
        import onnx
    except ImportError:
        raise missing_extra("onnx", "tensorrt") from None
    return onnx.load_from_string(model)


class OnnxGraph:
    """Tensors of a graph of fixed shapes, constants apart.

    Attributes:
        types: name -> numpy type, of inputs and of what nodes give.
        shapes: name -> sides.
        maker: name -> the node that gives it.
        order: what nodes give, in the order in which it is computed.
        decisions: of these, what jumps when that from which it is computed moves by nothing.
    """

    def __init__(self, model: bytes) -> None:
        """Read a graph.

        Args:
            model: serialised ONNX.
        """
        import onnx

        proto = onnx.shape_inference.infer_shapes(onnx.load_from_string(model))
        self._nodes = list(proto.graph.node)
        constants = {tensor.name for tensor in proto.graph.initializer}
        known = (*proto.graph.input, *proto.graph.value_info, *proto.graph.output)
        values = {value.name: value.type.tensor_type for value in known if value.name not in constants}
        self.types = {
            name: np.dtype(onnx.helper.tensor_dtype_to_np_dtype(value.elem_type)) for name, value in values.items()
        }
        self.shapes = {name: [d.dim_value for d in value.shape.dim] for name, value in values.items()}
        self.maker: dict[str, Node] = {name: node for node in self._nodes for name in node.output}
        self.order = [name for node in self._nodes for name in node.output if name in self.types]
        self.decisions = [name for name in self.order if self._decides(self.maker[name])]

    def _decides(self, node: Node) -> bool:
        if node.op_type == "Cast":  # rounds down when it goes from floating to whole numbers
            source = self.types.get(node.input[0])
            return source is not None and source.kind == "f" and self.types[node.output[0]].kind in "iu"
        return node.op_type in DECISIONS

    def behind(self, names: Iterable[str]) -> set[str]:
        """These tensors and all that are computed from any of them."""
        found = set(names)
        for node in self._nodes:
            if found & set(node.input):
                found |= set(node.output)
        return found


def graph_with_outputs(model: bytes, names: Sequence[str], given: Iterable[str] = ()) -> bytes:
    """A graph that returns other tensors than it did.

    Args:
        model: serialised ONNX of fixed shapes.
        names: tensors to return.
        given: tensors that become inputs; the nodes that made them go.

    Returns:
        The serialised graph, without the nodes and inputs that none of ``names`` needs.
    """
    import onnx
    import onnx.utils

    given = set(given)
    proto = onnx.shape_inference.infer_shapes(onnx.load_from_string(model))
    inputs = [*(value.name for value in proto.graph.input), *sorted(given)]
    cut = onnx.utils.Extractor(proto).extract_model(inputs, list(names))
    read = {name for node in cut.graph.node for name in node.input}
    for value in [value for value in cut.graph.input if value.name not in read]:
        cut.graph.input.remove(value)
    for node in cut.graph.node:  # one with an output handed over and another still needed must not make the first again
        node.output[:] = [f"{name}_unused" if name in given else name for name in node.output]
    return bytes(cut.SerializeToString())


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
