from __future__ import annotations

import contextlib
import io
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from tiny_model import tiny_onnx

from ptedge.artifacts.onnx_metadata import add_metadata, has_external_data, read_metadata, without_metadata
from ptedge.artifacts.protobuf import delimited


def test_read_metadata__agrees_with_onnx_runtime(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(add_metadata(add_metadata(tiny_onnx(), "a", "1" * 300), "b", "ü"))
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    assert read_metadata(path) == session.get_modelmeta().custom_metadata_map == {"a": "1" * 300, "b": "ü"}


@given(st.binary(max_size=200))
def test_read_metadata__random_bytes_give_value_error_or_nothing(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "random.onnx"
    path.write_bytes(data)
    with contextlib.suppress(ValueError):
        read_metadata(path)


def test_read_metadata__a_key_twice(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(add_metadata(add_metadata(tiny_onnx(), "a", "1"), "a", "2"))
    with pytest.raises(ValueError, match="say 'a' twice"):
        read_metadata(tmp_path / "m.onnx")


def test_without_metadata__takes_one_key_off_wherever_it_stands() -> None:
    model = tiny_onnx()
    both = add_metadata(add_metadata(model, "a", "1"), "b", "2" * 300)
    assert without_metadata(both, "a") == add_metadata(model, "b", "2" * 300)
    assert without_metadata(both, "b") == add_metadata(model, "a", "1")
    assert without_metadata(both, "c") == both
    version = b"\x08\x08"  # ir_version 8 once more
    assert without_metadata(add_metadata(model, "a", "1") + version, "a") == model + version  # in the middle


def external(model: onnx.ModelProto) -> bool:
    return has_external_data(io.BytesIO(model.SerializeToString()))


def test_has_external_data__wherever_a_tensor_may_stand() -> None:
    def elsewhere() -> onnx.TensorProto:
        tensor = numpy_helper.from_array(np.zeros(2, np.float32), "w")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        return tensor

    here = onnx.load_from_string(tiny_onnx())
    assert not external(here)
    initializer, node, inner, sparse = (onnx.load_from_string(tiny_onnx()) for _ in range(4))
    initializer.graph.initializer.append(elsewhere())
    node.graph.node.append(helper.make_node("Constant", [], ["c"], value=elsewhere()))
    branch = helper.make_graph([], "g", [], [], initializer=[elsewhere()])
    inner.graph.node.append(helper.make_node("If", ["x"], ["y"], then_branch=branch))
    sparse.graph.sparse_initializer.append(onnx.SparseTensorProto(values=elsewhere()))
    assert [external(model) for model in (initializer, node, inner, sparse)] == [True] * 4
    path = onnx.load_from_string(tiny_onnx())
    tensor = numpy_helper.from_array(np.zeros(2, np.float32), "w")
    tensor.external_data.add(key="location", value="../../etc/passwd")  # without the mark that it counts
    path.graph.initializer.append(tensor)
    assert external(path)


def test_has_external_data__graphs_without_end() -> None:
    content = b""
    for _ in range(60):
        content = delimited(1, delimited(5, delimited(6, content)))
    with pytest.raises(ValueError, match="nested too deep"):
        has_external_data(io.BytesIO(delimited(7, content)))
