"""Where two graphs of one detector part ways: their intermediate outputs, compared in order.

By position this works only while both graphs take the same decisions: a TopK that puts two rows in the other order, a
floor that falls to the other side of a whole number, and everything behind it differs without being wrong. So the
decisions of the reference are handed to the other graph as inputs, in place of the nodes that would take them; what is
left between is continuous, and stands row by row beside the reference, up to the last layer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.graph_contract import FEATURES, PROPOSALS

from ..onnx_graph import OnnxGraph, graph_with_outputs
from ..onnx_run import Arrays, run_as_written

Run = Callable[[bytes, Mapping[str, NDArray[Any]]], Arrays]  # serialised graph, inputs -> outputs
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


def compare_layers(
    reference: bytes,
    suspect: bytes,
    feeds: Mapping[str, NDArray[Any]],
    tolerance: float,
    run: Run = run_as_written,
    *,
    hand_over: bool = True,
) -> LayerComparison:
    """Find the first layer of a graph whose output departs from a reference.

    Args:
        reference: serialised ONNX of the float32 graph; runs on ONNX Runtime's CPU.
        suspect: serialised ONNX in question, with the reference's names for what it has in common with it.
        feeds: inputs of both.
        tolerance: of the root mean square difference, relative to the reference's root mean square.
        run: runs the suspect; leaves out inputs that it does not take.
        hand_over: give the suspect the reference's decisions. Where it cannot take them as inputs, everything behind a
            decision is left out, as rows may come in another order there.
    """
    first, second = OnnxGraph(reference), OnnxGraph(suspect)
    shared = first.types.keys() & second.types.keys()
    decided = [name for name in second.decisions if name in shared] if hand_over else []
    values = run_as_written(graph_with_outputs(reference, decided), feeds) if decided else {}
    handed = {name: value.astype(second.types[name]) for name, value in values.items()}
    loose = second.behind([name for name in second.decisions if name not in handed])
    floating = [
        name for name in second.order if name in shared and name not in handed and first.types[name] == np.float32
    ]
    names = [name for name in floating if name not in loose]
    compared, largest = 0, 0.0
    for group in _groups(first, names):
        wanted = run_as_written(graph_with_outputs(reference, group), feeds)
        graph = graph_with_outputs(suspect, group, handed)
        found = run(graph, {**feeds, **handed})
        for name in group:
            compared += 1
            error = relative_error(found[name], wanted[name])
            if not error <= tolerance:
                node = second.maker[name]
                departure = Departure(node.name, node.op_type, name, error, tolerance)
                return LayerComparison(compared, len(floating) - len(names), departure, largest)
            largest = max(largest, error)
    return LayerComparison(compared, len(floating) - len(names), None, largest)


def compare_graphs(
    reference: bytes,
    suspects: tuple[bytes, bytes | None],
    feeds: Mapping[str, NDArray[Any]],
    tolerance: float,
    run: Run = run_as_written,
    *,
    hand_over: bool = True,
) -> LayerComparison:
    """As :func:`compare_layers`, of a model that may be two graphs: the second is fed with what the reference has.

    Args:
        reference: serialised ONNX of the float32 graph, in one.
        suspects: the graph in question, or its two stages.
        feeds: inputs of the graph.
        tolerance: of the root mean square difference, relative to the reference's root mean square.
        run: runs a suspect.
        hand_over: give the suspects the reference's decisions.
    """
    first, second = suspects
    found = compare_layers(reference, first, feeds, tolerance, run, hand_over=hand_over)
    if second is None or found.departure is not None:
        return found
    types = OnnxGraph(second).types
    values = run_as_written(graph_with_outputs(reference, [FEATURES, PROPOSALS]), feeds)
    given = {**feeds, **{name: value.astype(types[name]) for name, value in values.items()}}
    behind = compare_layers(reference, second, given, tolerance, run, hand_over=hand_over)
    return LayerComparison(
        found.compared + behind.compared,
        found.skipped + behind.skipped,
        behind.departure,
        max(found.largest, behind.largest),
    )


def relative_error(found: NDArray[Any], wanted: NDArray[Any]) -> float:
    """Root mean square of the difference over that of what is wanted; infinite where ``found`` is not finite."""
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    if a.shape != b.shape or not np.isfinite(a).all():
        return float("inf")
    scale = float(np.sqrt(np.mean(b * b))) if b.size else 0.0
    return float(np.sqrt(np.mean((a - b) ** 2))) / (scale + 1e-9) if b.size else 0.0


def _groups(graph: OnnxGraph, names: Sequence[str]) -> Iterator[list[str]]:
    """Names in their order, so many at a time as their values fit in memory."""
    group: list[str] = []
    size = 0
    for name in names:
        group.append(name)
        size += int(np.prod(graph.shapes[name])) * 4
        if size >= GROUP_BYTES:
            yield group
            group, size = [], 0
    if group:
        yield group
