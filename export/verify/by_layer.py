"""Where two graphs of one detector part ways: their intermediate outputs, compared in order.

By position this works only while both graphs take the same decisions: a TopK that puts two rows in the other order, a
floor that falls to the other side of a whole number, and everything behind it differs without being wrong. So the
decisions of the reference are handed to the other graph as inputs, in place of the nodes that would take them; what is
left between is continuous, and stands row by row beside the reference, up to the last layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..precision.layers import needed_nodes

Arrays = dict[str, NDArray[Any]]
Run = Callable[[bytes, Mapping[str, NDArray[Any]]], Arrays]  # serialised graph, inputs -> outputs
Proto = Any  # onnx.ModelProto

# operators whose output jumps when their input moves by nothing
DECISIONS = frozenset(
    {"TopK", "ArgMax", "ArgMin", "NonMaxSuppression", "NonZero", "Floor", "Ceil", "Round"}
    | {"Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal"}
)
GROUP_BYTES = 256 << 20  # intermediate outputs fetched at a time


@dataclass(frozen=True)
class Departure:
    """The first layer whose output is not what it should be.

    Attributes:
        layer: name of the node.
        operator: its type.
        tensor: its output.
        error: root mean square of the difference, relative to that of the reference; infinite for NaN.
        tolerance: what was allowed.
    """

    layer: str
    operator: str
    tensor: str
    error: float
    tolerance: float

    def __str__(self) -> str:
        return (
            f"{self.layer or self.tensor} ({self.operator}), its output {self.tensor} is off by {self.error:.2g} "
            f"(relative, allowed {self.tolerance:g})"
        )


@dataclass(frozen=True)
class LayerComparison:
    """What comparing two graphs layer by layer found.

    Attributes:
        compared: layers compared, up to the first that departs.
        skipped: layers behind a decision that could not be handed over, so that rows may stand elsewhere.
        departure: the first that departs; ``None`` when none does.
        largest: largest error among those that do not.
    """

    compared: int
    skipped: int
    departure: Departure | None
    largest: float

    def __str__(self) -> str:
        if self.departure is not None:
            return f"first layer that departs: {self.departure}; the {self.compared - 1} before it agree"
        if not self.compared:
            return "no layer has the same name in both graphs, so none can be compared: another version exported it"
        text = f"no single layer departs: {self.compared} agree within {self.largest:.2g} (relative)"
        if self.skipped:
            text += f"; {self.skipped} behind a selection cannot be compared by position"
        return text


def graph_with_outputs(model: bytes, names: Sequence[str], inputs: Mapping[str, NDArray[Any]] | None = None) -> bytes:
    """A graph that returns other tensors than it did.

    Args:
        model: serialised ONNX.
        names: tensors to return.
        inputs: tensor -> an array of its shape and type: these become inputs, and the nodes that made them go.

    Returns:
        The serialised graph, without the nodes that none of ``names`` needs.
    """
    import onnx

    proto = onnx.load_from_string(model)
    graph = proto.graph
    types = {value.name: value for value in _types(proto)}
    given = inputs or {}
    kept = needed_nodes(graph.node, names, given)
    needed = {*names, *(name for node in kept for name in node.input)}
    nodes = [type(node).FromString(node.SerializeToString()) for node in kept]
    for node in nodes:  # a node with one output handed over and another still needed must not make the first again
        for i, name in enumerate(node.output):
            if name in given:
                node.output[i] = f"{name}_unused"
    constants = [tensor for tensor in graph.initializer if tensor.name in needed]
    new_inputs = [value for value in graph.input if value.name in needed]
    for name, array in given.items():
        if name in needed:
            kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
            new_inputs.append(onnx.helper.make_tensor_value_info(name, kind, array.shape))
    made = onnx.helper.make_graph(nodes, graph.name, new_inputs, [types[name] for name in names], constants)
    out = onnx.helper.make_model(made, opset_imports=list(proto.opset_import), ir_version=proto.ir_version)
    return bytes(out.SerializeToString())


def compare_layers(
    reference: bytes,
    suspect: bytes,
    feeds: Mapping[str, NDArray[Any]],
    tolerance: float,
    run: Run,
    *,
    hand_over: bool = True,
) -> LayerComparison:
    """Find the first layer of a graph whose output departs from a reference.

    Args:
        reference: serialised ONNX of the float32 graph; runs on ONNX Runtime's CPU.
        suspect: serialised ONNX in question, with the reference's names for what it has in common with it.
        feeds: inputs of both.
        tolerance: of the root mean square difference, relative to the reference's root mean square.
        run: runs the suspect.
        hand_over: give the suspect the reference's decisions. Where it cannot take them as inputs, everything behind a
            decision is left out, as rows may come in another order there.
    """
    first, second = _Graph(reference), _Graph(suspect)
    shared = first.types.keys() & second.types.keys()
    decided = [name for name in second.decisions if name in shared] if hand_over else []
    values = run_cpu(graph_with_outputs(reference, decided), feeds) if decided else {}
    handed = {name: value.astype(second.types[name]) for name, value in values.items()}
    loose = second.behind([name for name in second.decisions if name not in handed])
    floating = [
        name for name in second.order if name in shared and name not in handed and first.types[name] == np.float32
    ]
    names = [name for name in floating if name not in loose]
    compared, largest = 0, 0.0
    for group in first.groups(names):
        wanted = run_cpu(graph_with_outputs(reference, group), feeds)
        graph = graph_with_outputs(suspect, group, handed)
        takes = _input_names(graph)
        found = run(graph, {name: value for name, value in {**feeds, **handed}.items() if name in takes})
        for name in group:
            compared += 1
            error = relative_error(found[name], wanted[name])
            if not error <= tolerance:
                node = second.maker[name]
                departure = Departure(node.name, node.op_type, name, error, tolerance)
                return LayerComparison(compared, len(floating) - len(names), departure, largest)
            largest = max(largest, error)
    return LayerComparison(compared, len(floating) - len(names), None, largest)


def relative_error(found: NDArray[Any], wanted: NDArray[Any]) -> float:
    """Root mean square of the difference over that of what is wanted; infinite where ``found`` is not finite."""
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    if a.shape != b.shape or not np.isfinite(a).all():
        return float("inf")
    scale = float(np.sqrt(np.mean(b * b))) if b.size else 0.0
    return float(np.sqrt(np.mean((a - b) ** 2))) / (scale + 1e-9) if b.size else 0.0


def run_cpu(model: bytes, feeds: Mapping[str, NDArray[Any]]) -> Arrays:
    """Outputs of a graph on ONNX Runtime's CPU, node by node as it is written."""
    return run_onnxruntime(model, feeds, ["CPUExecutionProvider"])


def run_onnxruntime(model: bytes, feeds: Mapping[str, NDArray[Any]], providers: Sequence[str]) -> Arrays:
    """Outputs of a graph on ONNX Runtime, without its optimisations.

    Args:
        model: serialised ONNX.
        feeds: inputs; those the graph does not take are left out.
        providers: ONNX Runtime's names.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=list(providers))
    takes = {value.name for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    values = session.run(names, {name: value for name, value in feeds.items() if name in takes})
    return dict(zip(names, values, strict=True))


def decisions(model: bytes) -> list[str]:
    """Tensors of a graph that jump when what they are computed from moves by nothing, in the graph's order."""
    return _Graph(model).decisions


class _Graph:
    """Names and types of a graph's tensors, in the order in which they are computed."""

    def __init__(self, model: bytes) -> None:
        import onnx

        proto = onnx.load_from_string(model)
        self.nodes = list(proto.graph.node)
        constants = {tensor.name for tensor in proto.graph.initializer}
        values = {value.name: value.type.tensor_type for value in _types(proto) if value.name not in constants}
        self.types = {
            name: np.dtype(onnx.helper.tensor_dtype_to_np_dtype(value.elem_type)) for name, value in values.items()
        }
        self.shapes = {name: [d.dim_value for d in value.shape.dim] for name, value in values.items()}
        self.maker = {name: node for node in self.nodes for name in node.output}
        self.order = [name for node in self.nodes for name in node.output if name in self.types]
        self.decisions = [name for name in self.order if self._decides(self.maker[name])]

    def _decides(self, node: Any) -> bool:
        if node.op_type == "Cast":  # rounds down when it goes from floating to whole numbers
            source = self.types.get(node.input[0])
            return source is not None and source.kind == "f" and self.types[node.output[0]].kind in "iu"
        return node.op_type in DECISIONS

    def behind(self, names: Iterable[str]) -> set[str]:
        """Tensors that are computed from any of these."""
        found = set(names)
        for node in self.nodes:
            if found & set(node.input):
                found |= set(node.output)
        return found

    def groups(self, names: Sequence[str]) -> Iterator[list[str]]:
        """Names in their order, so many at a time as their values fit in memory."""
        group: list[str] = []
        size = 0
        for name in names:
            group.append(name)
            size += int(np.prod(self.shapes[name])) * 4
            if size >= GROUP_BYTES:
                yield group
                group, size = [], 0
        if group:
            yield group


def _types(proto: Proto) -> list[Any]:
    import onnx

    graph = onnx.shape_inference.infer_shapes(proto).graph
    return [*graph.input, *graph.value_info, *graph.output]


def _input_names(model: bytes) -> set[str]:
    import onnx

    return {value.name for value in onnx.load_from_string(model).graph.input}
