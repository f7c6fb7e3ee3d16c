"""Which provider ONNX Runtime really uses, and the reason told where it is not the one asked for; no GPU needed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from tiny_model import HEIGHT, WIDTH, tiny_bundle, tiny_onnx

from ptedge.backends import providers
from ptedge.backends.choose import open_runner
from ptedge.backends.ort import OrtRunner
from ptedge.backends.providers import CPU, CUDA, TENSORRT, missing_library, open_gpu_session, open_session
from ptedge.errors import ArtifactError, BackendError

REAL = onnxruntime.InferenceSession


class Machine:
    """ONNX Runtime with the providers of a build, of which only some can be loaded; all work is done on the CPU."""

    def __init__(self, built: tuple[str, ...], loads: tuple[str, ...]) -> None:
        self.built, self.loads, self.error = built, loads, ""
        self.asked: list[tuple[list[str], Any, Any]] = []

    def session(self, path: str, settings: Any, *, providers: list[str], **more: Any) -> Any:
        self.asked.append((providers, more.get("provider_options"), more.get("enable_fallback")))
        if self.error and providers[0] != CPU:
            raise RuntimeError(self.error)
        session = REAL(path, settings, providers=[CPU])
        session.get_providers = lambda: [p for p in providers if p in self.loads]
        return session


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine((TENSORRT, CUDA, CPU), (TENSORRT, CUDA, CPU))
    monkeypatch.setattr(onnxruntime, "get_available_providers", lambda: list(machine.built))
    monkeypatch.setattr(onnxruntime, "InferenceSession", machine.session)
    monkeypatch.setattr(onnxruntime, "preload_dlls", lambda directory: None, raising=False)
    monkeypatch.setattr("ptedge.backends.ort.cuda_device_count", lambda: 1)
    monkeypatch.setattr(providers, "missing_library", lambda provider: "libcudnn.so.9 is missing")
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    return machine


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.onnx"
    path.write_bytes(tiny_onnx())
    return path


def test_cuda__taken_by_auto_and_by_name(machine: Machine, model: Path) -> None:
    with OrtRunner(model) as runner:
        assert (runner.backend, runner.reason) == ("cuda", "a CUDA GPU answers")
        assert runner.infer({"images": np.zeros((1, 3, HEIGHT, WIDTH), np.uint8)})["num_detections"].tolist() == [2]
    with OrtRunner(model, "cuda") as runner:
        assert (runner.backend, runner.reason) == ("cuda", "asked for")
    assert machine.asked[0] == ([CUDA, CPU], [{}, {}], 0)


def test_auto__tells_of_the_engine_that_is_not_there(machine: Machine, tmp_path: Path) -> None:
    runner = open_runner(tiny_bundle(tmp_path / "b"))
    assert runner.reason.startswith("a CUDA GPU answers; no TensorRT engine in the bundle")
    assert "ptedge build" in runner.reason


def test_auto__names_the_library_that_is_missing(machine: Machine, model: Path) -> None:
    machine.loads = (CPU,)
    with OrtRunner(model) as runner:
        assert runner.backend == "cpu"
        assert "cannot load its CUDA libraries (libcudnn.so.9 is missing)" in runner.reason
    with pytest.raises(BackendError, match=r"cannot run on CUDA: there is a GPU.*Choose --backend cpu"):
        OrtRunner(model, "cuda")


def test_auto__goes_on_with_the_cpu_when_cuda_refuses_to_start(machine: Machine, model: Path) -> None:
    machine.error = "CUDA_PATH is set but CUDA wasn't able to be loaded.\nmore"
    with OrtRunner(model) as runner:
        assert (runner.backend, runner.reason) == ("cpu", "CUDA_PATH is set but CUDA wasn't able to be loaded.")


def test_auto__a_broken_model_is_the_models_fault(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(tiny_onnx()[:100])
    with pytest.raises(ArtifactError, match=r"cannot load .*m\.onnx"):
        OrtRunner(tmp_path / "m.onnx")


@pytest.mark.parametrize(
    ("precision", "allowed"), [("fp32", ("False", "False")), ("fp16", ("True", "False")), ("int8", ("True", "True"))]
)
def test_ort_tensorrt__of_a_bundle(machine: Machine, tmp_path: Path, precision: str, allowed: tuple[str, str]) -> None:
    runner = open_runner(tiny_bundle(tmp_path / "b", precision=precision), "ort-tensorrt")
    assert (runner.backend, runner.reason) == ("ort-tensorrt", "asked for")
    assert machine.asked == [
        ([TENSORRT, CUDA, CPU], [dict(zip(("trt_fp16_enable", "trt_int8_enable"), allowed, strict=True)), {}, {}], 0)
    ]


def test_ort_tensorrt__cuda_in_its_place_is_an_error(machine: Machine, model: Path) -> None:
    machine.loads = (CUDA, CPU)
    with pytest.raises(BackendError, match=r"through ONNX Runtime: there is a GPU, but .* its TensorRT libr"):
        OrtRunner(model, "ort-tensorrt")


def test_ort_tensorrt__not_in_this_build(machine: Machine, model: Path) -> None:
    machine.built = (CUDA, CPU)
    with pytest.raises(BackendError, match="this onnxruntime is built without TensorRT"):
        OrtRunner(model, "ort-tensorrt")


def test_open_gpu_session__no_gpu(machine: Machine, model: Path) -> None:
    assert open_gpu_session(model, CUDA, None, 0) == (None, "no NVIDIA GPU answers")
    assert machine.asked == []


def test_open_session__threads(model: Path) -> None:
    session = open_session(model, [CPU], 2)
    assert session.get_session_options().intra_op_num_threads == 2
    assert session.get_providers() == [CPU]


def test_missing_library__is_a_library_or_nothing() -> None:
    for provider in (CUDA, TENSORRT):
        found = missing_library(provider)
        assert found == "" or (".so" in found and found.endswith("is missing"))


def test_backend__unknown(model: Path) -> None:
    with pytest.raises(BackendError, match="must be one of auto, tensorrt, tensorrt-rtx, cuda, cpu"):
        OrtRunner(model, "gpu")


def test_open_session__int8_is_computed_as_it_stands_in_the_file(tmp_path: Path) -> None:
    """ONNX Runtime by default rounds weights and biases next to Quantize and Dequantize to integers of its own."""
    import onnx
    from onnx import helper, numpy_helper

    constants = {
        "scale": np.float32(0.1),
        "zero": np.int8(0),
        "weight": np.array([100, 0.3], np.float32).reshape(2, 1, 1, 1),
        "bias": np.array([0.011, 0.013], np.float32),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        helper.make_node("Conv", ["d", "weight", "bias"], ["y"]),
        helper.make_node("QuantizeLinear", ["y", "scale", "zero"], ["p"]),  # makes it a quantised layer to it
    ]
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 1, 2, 2])],
        [
            helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 2, 2, 2]),
            helper.make_tensor_value_info("p", onnx.TensorProto.INT8, [1, 2, 2, 2]),
        ],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    x = np.array([[[[0.1, 5.0], [-3.3, 20.0]]]], np.float32)  # 20 is cut off at 127 times 0.1
    y = open_session(path, [CPU], 1).run(["y"], {"x": x})[0]
    np.testing.assert_allclose(y[0, 1].ravel(), [0.043, 1.513, -0.977, 3.823], rtol=1e-5)  # 0.3 x + 0.013
    np.testing.assert_allclose(y[0, 0].ravel(), [10.011, 500.011, -329.989, 1270.011], rtol=1e-6)
