"""What has no place in an exported graph."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from tiny_model import tiny_onnx

from ptedge.artifacts.bundle import MODEL_NAME
from ptedge.errors import ArtifactError
from ptedge.export.check_graph import FORBIDDEN, check_graph, check_sides


def test_export_checkpoint__graph_is_flat_and_static(bundle: Path) -> None:
    proto = onnx.load(bundle / MODEL_NAME)
    operators = {node.op_type for node in proto.graph.node}
    assert not operators & (FORBIDDEN | {"BatchNormalization", "Shape", "Constant"})
    assert not any(attribute.graphs or attribute.HasField("g") for n in proto.graph.node for attribute in n.attribute)
    assert [(o.domain, o.version) for o in proto.opset_import] == [("", 17)]
    assert not any(o.type.tensor_type.elem_type == onnx.TensorProto.INT64 for o in proto.graph.output)


def test_check_graph__refuses_a_foreign_operator() -> None:
    value = onnx.helper.make_tensor_value_info
    node = onnx.helper.make_node("NonZero", ["images"], ["boxes"])
    graph = onnx.helper.make_graph(
        [node],
        "g",
        [value("images", onnx.TensorProto.UINT8, [1, 3, 16, 16])],
        [value("boxes", onnx.TensorProto.INT64, [4, None])],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(ArtifactError, match="holds NonZero"):
        check_graph(model.SerializeToString(), 1, (16, 16), 100, "fp32")


def test_check_graph__refuses_other_outputs(bundle: Path) -> None:
    with pytest.raises(ArtifactError, match="has inputs and outputs"):
        check_graph((bundle / MODEL_NAME).read_bytes(), 2, (96, 128), 30, "fp32")


def test_check_sides__what_the_manifest_says_and_nothing_else(bundle: Path) -> None:
    model = (bundle / MODEL_NAME).read_bytes()
    check_sides(model, (0, 0, 0, 0), (1, 1, 1, 1))
    with pytest.raises(ArtifactError, match="its manifest says"):
        check_sides(model, (0, 0, 0, 0), (1, 2, 1, 1))
    with pytest.raises(ArtifactError, match="lacks its constants side_offset and sigma_scale"):
        check_sides(tiny_onnx(sides=False), (0, 0, 0, 0), (1, 1, 1, 1))
