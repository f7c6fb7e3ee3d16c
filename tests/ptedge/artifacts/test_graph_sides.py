"""Two constants of a graph, found and exchanged in its bytes."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from tiny_model import tiny_onnx

from ptedge.artifacts.graph_sides import read_sides, write_sides

OFFSET, SCALE = (0.25, -0.125, 0.0, 0.0625), (1.5, 1.0, 0.5, 2.0)


def with_constants(raw: bool = True, **values: np.ndarray) -> onnx.ModelProto:
    """The tiny graph with constants; as raw bytes or as a list of float32."""
    model = onnx.load_from_string(tiny_onnx(sides=False))
    for name, value in values.items():
        tensor = numpy_helper.from_array(value, name)
        if not raw:
            tensor = onnx.helper.make_tensor(name, onnx.TensorProto.FLOAT, value.shape, value.flatten())
        model.graph.initializer.append(tensor)
    return model


def neutral() -> dict[str, np.ndarray]:
    return {"side_offset": np.zeros(4, np.float32), "sigma_scale": np.ones(4, np.float32)}


@pytest.mark.parametrize("raw", [True, False])
def test_write_sides__nothing_else_changes(raw: bool) -> None:
    before = with_constants(raw, **neutral(), other=np.arange(4, dtype=np.float32))
    assert read_sides(before.SerializeToString()) == ((0, 0, 0, 0), (1, 1, 1, 1))
    written = write_sides(before.SerializeToString(), OFFSET, SCALE)
    assert read_sides(written) == (OFFSET, SCALE)
    after = onnx.load_from_string(written)
    found = {tensor.name: numpy_helper.to_array(tensor) for tensor in after.graph.initializer}
    np.testing.assert_array_equal(found["side_offset"], np.array(OFFSET, np.float32))
    np.testing.assert_array_equal(found["sigma_scale"], np.array(SCALE, np.float32))
    assert write_sides(written, (0, 0, 0, 0), (1, 1, 1, 1)) == before.SerializeToString()


def test_read_sides__of_a_graph_that_has_no_place_for_them() -> None:
    assert read_sides(tiny_onnx(sides=False)) is None
    with pytest.raises(ValueError, match="no constants side_offset and sigma_scale"):
        write_sides(tiny_onnx(sides=False), OFFSET, SCALE)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"side_offset": np.zeros(4, np.float32)}, "side_offset without the other"),
        ({**neutral(), "sigma_scale": np.ones(4)}, "sigma_scale of its graph is not four float32"),
        ({**neutral(), "side_offset": np.zeros(3, np.float32)}, "side_offset of its graph is not four float32"),
        ({**neutral(), "side_offset": np.zeros(8, np.float16)}, "side_offset of its graph is not four float32"),
    ],
)
def test_read_sides__refuses_other_constants(values: dict[str, np.ndarray], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        read_sides(with_constants(**values).SerializeToString())


def test_read_sides__refuses_a_constant_twice() -> None:
    model = with_constants(**neutral())
    model.graph.initializer.append(numpy_helper.from_array(np.ones(4, np.float32), "side_offset"))
    with pytest.raises(ValueError, match="two constants side_offset"):
        read_sides(model.SerializeToString())


def test_read_sides__of_a_cut_file() -> None:
    whole = with_constants(**neutral()).SerializeToString()
    with pytest.raises(ValueError, match="goes on to byte"):
        read_sides(whole[: len(whole) // 2])
