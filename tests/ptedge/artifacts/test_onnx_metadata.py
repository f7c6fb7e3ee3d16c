from __future__ import annotations

import contextlib
from pathlib import Path

import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_model import tiny_onnx

from ptedge.artifacts.onnx_metadata import add_metadata, read_metadata


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
