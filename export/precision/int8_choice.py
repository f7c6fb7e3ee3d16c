"""Which layers may be int8: those that do most of the arithmetic for the least error, measured on frames.

What int8 saves and what it costs lie in different layers. In a small network on a 240 x 416 image the two fully
connected layers do four fifths of all multiplications and can be rounded without anyone noticing; the first blocks of
the backbone do a tenth, and cause nearly all of the error. So every layer is rounded alone and its error measured where
a detection's numbers come from, at the predictors; then layers are taken by error per multiplication, as long as the
errors together stay below a limit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ptedge.graph_contract import IMAGES
from ptedge.progress import tracked

from ..onnx_graph import OnnxGraph, Proto, graph_with_outputs
from ..onnx_run import Arrays, open_graph, run_graph
from .layers import Layers, multiplications
from .quantize import only_these

LIMIT = 0.015  # of the error at the predictors; docs/precision.md compares
FRAMES = 6  # thousands of places each; more change the errors little


@dataclass(frozen=True)
class Choice:
    """Layers for int8.

    Attributes:
        ranges: of activations, how they were found.
        layers: names, in the graph's order; at least one.
        error: of all chosen together; above the limit only where no layer stays below it alone.
        share: of all multiplications, that the chosen layers do.
    """

    ranges: str
    layers: tuple[str, ...]
    error: float
    share: float


def choose_layers(
    proto: Proto, quantised: Mapping[str, Proto], layers: Layers, frames: NDArray[np.uint8], batch: int, limit: float
) -> Choice:
    """Find the layers that do most of the arithmetic while their rounding stays unnoticed.

    Args:
        proto: the float32 graph.
        quantised: how ranges were found -> the same graph with every layer in int8. The one is taken with which most of
            the multiplications stay within the limit; if none does, the one with the least error.
        layers: of ``proto``.
        frames: [N, 3, H, W] uint8 network inputs.
        batch: images a call of the graph.
        limit: of the error, see :class:`ErrorMeter`.
    """
    meter = ErrorMeter(proto, layers, frames, batch)
    work = multiplications(proto)
    found = []
    for ranges, graph in quantised.items():
        every = tracked(layers.weighted, f"int8: layers, ranges by {ranges}", "layers")
        errors = {name: meter.error(graph, [name]) for name in every}
        chosen: list[str] = []
        for name in sorted(errors, key=lambda name: errors[name] ** 2 / work[name]):
            if sum(errors[other] ** 2 for other in (*chosen, name)) <= limit**2:  # independent roundings add in squares
                chosen.append(name)
        chosen = chosen or [min(errors, key=lambda name: errors[name])]
        while (error := meter.error(graph, chosen)) > limit and len(chosen) > 1:
            chosen.pop()  # they were not as independent as that
        names = tuple(name for name in errors if name in chosen)
        share = sum(work[name] for name in names) / sum(work.values())
        found.append(Choice(ranges, names, error, share))
    return max(found, key=lambda c: (1, c.share) if c.error <= limit else (0, -c.error))


class ErrorMeter:
    """What int8 layers do to the numbers that detections are made of.

    The error is the root mean square change of what the predictors give (objectness, deltas, class logits, variances),
    relative to its standard deviation, and averaged in squares over the predictors. Selections between the layers
    (TopK, suppression) are those of the float32 graph, so that values stand at the same places in both.

    Args:
        proto: the float32 graph.
        layers: of ``proto``.
        frames: [N, 3, H, W] uint8 network inputs; about ``FRAMES`` of them are used, at equal distances.
        batch: images a call of the graph.
    """

    def __init__(self, proto: Proto, layers: Layers, frames: NDArray[np.uint8], batch: int) -> None:
        self._proto = proto
        self._outputs = [node.output[0] for node in proto.graph.node if node.name in layers.predictors]
        rows = np.linspace(0, len(frames) - 1, -(-FRAMES // batch) * batch).round().astype(int)
        images = [{IMAGES: frames[rows[i : i + batch]]} for i in range(0, len(rows), batch)]
        model = proto.SerializeToString()
        self._decisions = OnnxGraph(model).decisions
        session = open_graph(graph_with_outputs(model, [*self._decisions, *self._outputs]))
        self._wanted = [
            feeds | run_graph(session, feeds) for feeds in images
        ]  # what the other graphs are fed with, too
        spread = [[np.var(values[name]) for name in self._outputs] for values in self._wanted]
        self._variance = np.mean(spread, axis=0)

    def error(self, quantised: Proto, names: Collection[str]) -> float:
        """The error while these layers are in int8, as in ``quantised``, and all others in float32."""
        model = only_these(self._proto, quantised, names).SerializeToString()
        session = open_graph(graph_with_outputs(model, self._outputs, self._decisions))
        squares = [self._squares(run_graph(session, wanted), wanted) for wanted in self._wanted]
        return float(np.sqrt(np.mean(np.mean(squares, axis=0) / (self._variance + 1e-12))))  # 0 where all is constant

    def _squares(self, found: Arrays, wanted: Arrays) -> list[float]:
        """Mean square of each predictor's change."""
        return [float(np.mean(np.square(found[name] - wanted[name], dtype=np.float64))) for name in self._outputs]
