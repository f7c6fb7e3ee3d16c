"""Graphs in memory on ONNX Runtime."""

from __future__ import annotations

import numpy as np
from small_graph import selecting_graph

from ptedge.export.onnx_run import open_graph, run_as_written, run_graph


def test_run_graph__by_name_and_without_what_it_does_not_take() -> None:
    feeds = {"x": np.array([1, 2, 3, 4, 5, 6], np.float32), "other": np.zeros(1, np.float32)}
    assert {name: value.tolist() for name, value in run_graph(open_graph(selecting_graph()), feeds).items()} == {
        "c": [36, 30, 24]
    }
    assert run_as_written(selecting_graph(bias=1), feeds)["c"].tolist() == [37, 31, 25]
