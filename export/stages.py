"""One graph in two: cut where its stages meet, so that nothing selects or suppresses inside a graph.

Some builders of engines fail on the selections and the rounds of suppression of the one graph, or are slow there. What
is left of it in the two stages is convolutions, products of matrices and element-wise work. The cut needs onnx and no
torch: a device can make it. Arithmetic on both sides is that of the one graph, in its precision.
"""

from __future__ import annotations

from typing import NamedTuple

from ptedge.errors import ArtifactError
from ptedge.graph_contract import FEATURES, FIRST_STAGE, PROPOSALS, SECOND_STAGE, VARIANCES

from .onnx_graph import Proto, finish, graph_with_outputs, read_graph


class Stages(NamedTuple):
    """The two graphs of :mod:`ptedge.graph_contract`, serialised."""

    first: bytes
    second: bytes


def cut_stages(model: bytes) -> Stages:
    """The two stages of a graph.

    Args:
        model: serialised ONNX as the exporter writes it, in any precision.

    Raises:
        ArtifactError: its tensors have no names to cut it at, as it was exported before they had.
        MissingExtraError: no onnx package.
    """
    made = _made(read_graph(model))
    if missing := [name for name in (*FIRST_STAGE, PROPOSALS, *SECOND_STAGE) if name not in made | {VARIANCES}]:
        raise ArtifactError(
            f"the graph has no tensor {missing[0]} to cut it at: an earlier version exported it. "
            "Write it again: ptedge export CHECKPOINT --out BUNDLE"
        )
    first = graph_with_outputs(model, FIRST_STAGE)
    second = graph_with_outputs(model, [name for name in SECOND_STAGE if name in made], [FEATURES, PROPOSALS])
    return Stages(finish(first), finish(second))


def _made(proto: Proto) -> set[str]:
    return {name for node in proto.graph.node for name in node.output}
