"""Run a graph that is held in memory, changed or cut, on ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from ptedge.backends.providers import CPU, session_settings

Arrays = dict[str, NDArray[Any]]


def open_graph(model: bytes, providers: Sequence[str] = (CPU,), *, optimised: bool = True) -> Any:
    """Load a graph (``onnxruntime.InferenceSession``).

    Args:
        model: serialised ONNX.
        providers: ONNX Runtime's names, by preference.
        optimised: fuse and fold as ONNX Runtime likes; else it runs node by node as it is written.
    """
    import onnxruntime

    settings = session_settings()
    if not optimised:
        settings.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model, settings, providers=list(providers))


def run_graph(session: Any, feeds: Mapping[str, NDArray[Any]]) -> Arrays:
    """Outputs of a loaded graph by name.

    Args:
        session: of :func:`open_graph`.
        feeds: inputs; those that the graph does not take are left out.
    """
    takes = {value.name for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    values = session.run(names, {name: value for name, value in feeds.items() if name in takes})
    return dict(zip(names, values, strict=True))


def run_as_written(model: bytes, feeds: Mapping[str, NDArray[Any]], providers: Sequence[str] = (CPU,)) -> Arrays:
    """Outputs of a graph, computed node by node without optimisations.

    Args:
        model: serialised ONNX.
        feeds: inputs; those that the graph does not take are left out.
        providers: ONNX Runtime's names, by preference.
    """
    return run_graph(open_graph(model, providers, optimised=False), feeds)
