"""Graphs build as engines, on TensorRT-RTX and without a GPU; tests/bench/engine_builds.py builds all of them."""

from __future__ import annotations

from functools import partial

import onnx
import pytest
from build_ahead import MISSING, MODULE, AheadBuilder, untrained_graph

from ptedge.detector.roi_heads import ROIHead
from ptedge.errors import BackendError
from ptedge.export.engine import worker
from ptedge.export.engine.options import BuildOptions
from ptedge.export.engine.process import GraphRefusedError
from ptedge.export.stages import cut_stages

SMALL = {"anchor_sizes": (16.0,), "rpn_test_top_n": (60, 20), "candidates": 40, "max_detections": 10}


@pytest.fixture(scope="module")
def builder() -> AheadBuilder:
    pytest.importorskip(MODULE, reason=MISSING)
    return AheadBuilder()


# the two that hold every number type and both kinds of backbone; a build takes some seconds
@pytest.mark.parametrize(("backbone", "precision"), [("efficientnet_lite0", "int8"), ("vgg16", "fp16")])
def test_build__graphs_of_an_export(
    builder: AheadBuilder, backbone: str, precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptedge.detector.model.ROIHead", partial(ROIHead, hidden=64))
    model = untrained_graph(backbone, precision, (32, 48), **SMALL)
    built = builder.build(model, ["8.6"])
    assert built.size > 1_000_000
    assert built.layers["convolution"] >= 10 and built.layers["topk"] == 4
    assert bool(built.layers["quantize"]) == bool(built.layers["dequantize"]) == (precision == "int8")
    assert not {"nms", "loop", "condition", "plugin", "plugin_v2", "non_zero"} & set(built.layers)


def test_build__a_refusal_has_its_reason(builder: AheadBuilder) -> None:
    values = [
        onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [4000]),
        onnx.helper.make_tensor_value_info("best", onnx.TensorProto.FLOAT, [3900]),
        onnx.helper.make_tensor_value_info("rows", onnx.TensorProto.INT64, [3900]),
    ]
    node = onnx.helper.make_node("TopK", ["x", "k"], ["best", "rows"], name="too_many")
    k = onnx.helper.make_tensor("k", onnx.TensorProto.INT64, [1], [3900])
    graph = onnx.helper.make_graph([node], "g", values[:1], values[1:], [k])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(BackendError, match="3840"):
        builder.build(model.SerializeToString(), ["8.6"])


def test_worker__builds_stages_for_tensorrt_rtx(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(MODULE, reason=MISSING)
    monkeypatch.setattr("ptedge.detector.model.ROIHead", partial(ROIHead, hidden=64))
    model = untrained_graph("efficientnet_lite0", "fp16", (32, 48), **SMALL)
    for graph in cut_stages(model):
        engine = worker.build(graph, "fp16", BuildOptions(workspace_mb=256), None, backend="tensorrt-rtx")
        assert len(engine) > 100_000
    with pytest.raises(GraphRefusedError, match=r"TensorRT-RTX .* cannot read the model"):
        worker.build(b"no graph", "fp16", BuildOptions(), None, backend="tensorrt-rtx")
