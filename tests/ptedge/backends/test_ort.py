from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from tiny_model import ANSWER, HEIGHT, WIDTH, tiny_onnx

from ptedge.backends.ort import OrtRunner
from ptedge.errors import ArtifactError, BackendError
from ptedge.machine.driver import cuda_device_count


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(tiny_onnx())
    return path


def test_infer__returns_every_output(model: Path) -> None:
    with OrtRunner(model, "cpu", threads=1) as runner:
        outputs = runner.infer({"images": np.zeros((1, 3, HEIGHT, WIDTH), np.uint8)})
    assert runner.inputs == {"images": ((1, 3, HEIGHT, WIDTH), np.dtype(np.uint8))}
    assert outputs["num_detections"].tolist() == [2]
    np.testing.assert_array_equal(outputs["boxes"][0, :2], ANSWER["boxes"])


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((1, 3, HEIGHT, WIDTH), np.float32), "must be uint8, got float32"),
        (np.zeros((2, 3, HEIGHT, WIDTH), np.uint8), r"must have shape \[1, 3, 64, 96\], got \[2, 3, 64, 96\]"),
        (np.zeros((3, HEIGHT, WIDTH), np.uint8), "must have shape"),
    ],
)
def test_infer__refuses_wrong_input(model: Path, array: np.ndarray, words: str) -> None:
    with OrtRunner(model, "cpu") as runner, pytest.raises(BackendError, match=words):
        runner.infer({"images": array})


def test_infer__wrong_name(model: Path) -> None:
    with (
        OrtRunner(model, "cpu") as runner,
        pytest.raises(BackendError, match=r"takes the inputs \['images'\], got \['x'\]"),
    ):
        runner.infer({"x": np.zeros(1, np.uint8)})


def test_infer__closed_runner(model: Path) -> None:
    runner = OrtRunner(model, "cpu")
    runner.close()
    runner.close()
    with pytest.raises(BackendError, match="closed"):
        runner.infer({"images": np.zeros((1, 3, HEIGHT, WIDTH), np.uint8)})


def test_infer__non_contiguous_input_gives_the_same(tmp_path: Path) -> None:
    import onnx
    from onnx import TensorProto, helper

    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=TensorProto.FLOAT)],
        "identity",
        [value("x", TensorProto.UINT8, [1, 2, 3])],
        [value("y", TensorProto.FLOAT, [1, 2, 3])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "i.onnx")
    array = np.arange(6, dtype=np.uint8).reshape(1, 3, 2).transpose(0, 2, 1)
    assert not array.flags.c_contiguous
    with OrtRunner(tmp_path / "i.onnx", "cpu") as runner:
        np.testing.assert_array_equal(runner.infer({"x": array})["y"], [[[0, 2, 4], [1, 3, 5]]])


def test_runner__tensorrt_needs_an_engine(model: Path) -> None:
    with pytest.raises(BackendError, match="is an ONNX file; TensorRT runs the engines of a bundle: ptedge build"):
        OrtRunner(model, "tensorrt")


def test_runner__unknown_backend(model: Path) -> None:
    with pytest.raises(BackendError, match="must be one of auto, tensorrt, tensorrt-rtx, cuda, cpu"):
        OrtRunner(model, "gpu")


def test_runner__auto_says_why(model: Path) -> None:
    with OrtRunner(model) as runner:
        assert runner.backend == ("cuda" if runner.reason == "a CUDA GPU answers" else "cpu")
        assert runner.reason
    with OrtRunner(model, "cpu") as runner:
        assert (runner.backend, runner.reason) == ("cpu", "asked for")


@pytest.mark.skipif(cuda_device_count() > 0, reason="this machine has a GPU")
def test_runner__cuda_without_gpu(model: Path) -> None:
    with pytest.raises(BackendError, match=r"cannot run on CUDA: .*Choose --backend cpu"):
        OrtRunner(model, "cuda")


@pytest.mark.skipif(cuda_device_count() > 0, reason="this machine has a GPU")
def test_runner__prints_nothing_without_gpu(model: Path) -> None:
    opened = f"OrtRunner(Path({str(model)!r}))"
    code = f"from pathlib import Path; from ptedge.backends.ort import OrtRunner; {opened}.close()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == done.stderr == ""


def test_runner__broken_model(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(tiny_onnx()[:100])
    with pytest.raises(ArtifactError, match=r"cannot load .*m\.onnx.*ptedge export"):
        OrtRunner(tmp_path / "m.onnx", "cpu")
