"""The engine runner on a simulated device: addresses, copies, threads, contexts, errors. The real one needs a GPU."""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_tensorrt import FakeDriver, fake_tensorrt, install

from ptedge.backends import trt as trt_runner
from ptedge.backends import trt_slot
from ptedge.backends.cuda import CudaGraph
from ptedge.backends.trt import TensorRTRunner
from ptedge.errors import ArtifactError, BackendError, MissingExtraError

TENSORS = {
    "images": ((1, 3, 5), "UINT8", True),
    "boxes": ((1, 3, 5), "FLOAT", False),
    "count": ((1,), "INT32", False),
    "scores": ((1, 3), "FLOAT", False),
}


def _work(images: Any) -> dict[str, Any]:
    return {"boxes": images * 2.0, "count": int(images.sum()), "scores": images.max(-1) / 4.0}


class RecordedWork(CudaGraph):
    """A graph that remembers the function instead of the kernels."""

    def __init__(self, stream: int, work: Any) -> None:
        self._work = work
        work()

    def launch(self) -> None:
        self._work()

    def close(self) -> None:
        self._work = None


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return _install(monkeypatch, FakeDriver())


def _install(monkeypatch: pytest.MonkeyPatch, driver: FakeDriver) -> FakeDriver:
    install(monkeypatch, driver, TENSORS, _work)
    monkeypatch.setattr(trt_slot, "CudaGraph", RecordedWork)
    return driver


def _image(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (1, 3, 5), dtype=np.uint8)


def _check(found: dict[str, np.ndarray], image: np.ndarray) -> None:
    np.testing.assert_array_equal(found["boxes"], image.astype(np.float32) * 2)
    assert found["count"].tolist() == [image.sum()]
    np.testing.assert_array_equal(found["scores"], image.max(-1) / np.float32(4))


def test_infer__values_types_and_order(device: FakeDriver) -> None:
    with TensorRTRunner(b"engine", "e") as runner:
        assert runner.backend == "tensorrt"
        assert runner.inputs == {"images": ((1, 3, 5), np.dtype(np.uint8))}
        assert runner.output_names == ("boxes", "count", "scores")
        found = runner.infer({"images": _image(0)})
        _check(found, _image(0))
        assert {name: value.dtype for name, value in found.items()} == {
            "boxes": np.float32,
            "count": np.int32,
            "scores": np.float32,
        }


def test_infer__answers_belong_to_the_caller(device: FakeDriver) -> None:
    with TensorRTRunner(b"engine", "e") as runner:
        first = runner.infer({"images": _image(1)})
        runner.infer({"images": _image(2)})
        _check(first, _image(1))


def test_infer__an_input_that_is_not_contiguous_is_read_as_it_looks(device: FakeDriver) -> None:
    turned = np.ascontiguousarray(_image(3)[0].T).T[None]
    assert not turned.flags.c_contiguous
    with TensorRTRunner(b"engine", "e") as runner:
        _check(runner.infer({"images": turned}), _image(3))


def test_infer__on_an_integrated_gpu_nothing_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = _install(monkeypatch, FakeDriver(integrated=True))
    monkeypatch.setattr(driver, "memcpy_htod_async", None)  # calling it would fail
    monkeypatch.setattr(driver, "memcpy_dtoh_async", None)
    with TensorRTRunner(b"engine", "e") as runner:
        assert runner.memory == "mapped"
        _check(runner.infer({"images": _image(4)}), _image(4))
        _check(runner.infer({"images": _image(5)}), _image(5))


def test_infer__from_several_threads(device: FakeDriver) -> None:
    wrong: list[int] = []
    with TensorRTRunner(b"engine", "e", slots=2) as runner:

        def ask(first: int) -> None:
            for seed in range(first, 60, 4):
                found = runner.infer({"images": _image(seed)})
                if not np.array_equal(found["boxes"], _image(seed) * np.float32(2)):
                    wrong.append(seed)

        threads = [threading.Thread(target=ask, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(10)
    assert wrong == []


@pytest.mark.parametrize(
    ("feeds", "words"),
    [
        ({}, r"takes the inputs \['images'\], got \[\]"),
        ({"images": np.zeros((1, 3, 6), np.uint8)}, r"must be uint8 \[1, 3, 5\], got uint8 \[1, 3, 6\]"),
        ({"images": np.zeros((1, 3, 5), np.float32)}, "got float32"),
    ],
)
def test_infer__wrong_input(device: FakeDriver, feeds: dict[str, np.ndarray], words: str) -> None:
    with TensorRTRunner(b"engine", "e") as runner, pytest.raises(BackendError, match=words):
        runner.infer(feeds)


def test_infer__after_a_failure_on_the_device_the_next_call_works(
    device: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TensorRTRunner(b"engine", "car.engine") as runner:
        with monkeypatch.context() as broken:

            def fail(*arguments: Any) -> None:
                raise device.Error("cuMemcpyHtoDAsync failed: an illegal memory access was encountered")

            broken.setattr(device, "memcpy_htod_async", fail)
            with pytest.raises(BackendError, match=r"inference failed on car\.engine: cuMemcpyHtoDAsync"):
                runner.infer({"images": _image(0)})
        _check(runner.infer({"images": _image(6)}), _image(6))
    assert device.depth == 0


def test_infer_timed__parts_in_milliseconds(device: FakeDriver) -> None:
    with TensorRTRunner(b"engine", "e") as runner:
        found, times = runner.infer_timed({"images": _image(7)})
        _check(found, _image(7))
        assert {name: times[name] for name in ("h2d", "compute", "d2h")} == {"h2d": 0.5, "compute": 0.5, "d2h": 0.5}
        assert times["enqueue"] >= 0


def test_close__frees_all_and_releases_the_context(device: FakeDriver) -> None:
    runner = TensorRTRunner(b"engine", "e", slots=3)
    assert len(device.memory) == 6
    runner.close()
    runner.close()
    assert (device.memory, len(device.freed), device.depth, device.released) == ({}, 6, 0, 1)
    with pytest.raises(BackendError, match="closed"):
        runner.infer({"images": _image(0)})


def test_graph__reported_with_the_reason_where_none_can_be_recorded(
    device: FakeDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(stream: int, work: Any) -> None:
        raise BackendError("cuStreamEndCapture failed: CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED (900)")

    with TensorRTRunner(b"engine", "e") as runner:
        assert runner.graph == "CUDA graph"
    with TensorRTRunner(b"engine", "e", cuda_graph=False) as runner:
        assert runner.graph == "enqueue (switched off)"
    monkeypatch.setattr(trt_slot, "CudaGraph", refuse)
    with TensorRTRunner(b"engine", "e", slots=2) as runner:
        assert runner.graph.startswith("enqueue (cuStreamEndCapture failed")
        _check(runner.infer({"images": _image(8)}), _image(8))


def test_runner__engine_of_another_version_names_tensorrts_own_words(device: FakeDriver) -> None:
    with pytest.raises(
        ArtifactError, match=r"10\.3\.0 does not take car\.engine: The engine plan file .* ptedge build"
    ):
        TensorRTRunner(b"other", "car.engine")
    assert (device.depth, device.released, device.memory) == (0, 1, {})


def test_runner__without_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    with pytest.raises(MissingExtraError, match=r"tensorrt is not installed.*ptedge\[tensorrt\]"):
        TensorRTRunner(b"engine", "e")
    driver = FakeDriver()
    monkeypatch.setitem(sys.modules, "tensorrt", fake_tensorrt(driver, TENSORS, _work))
    monkeypatch.setitem(sys.modules, "pycuda", None)
    with pytest.raises(MissingExtraError, match="pycuda is not installed"):
        TensorRTRunner(b"engine", "e")


def test_start__bindings_that_give_nothing() -> None:
    class Log:
        def text(self) -> str:
            return "CUDA initialization failure with error: 35"

    def nothing(log: Any) -> None:
        raise TypeError("pybind11::init(): factory function returned nullptr")

    with pytest.raises(BackendError, match="cannot start here: CUDA initialization failure with error: 35"):
        trt_runner.start(nothing, Log())


def test_log__keeps_the_last_errors_and_falls_back_to_warnings(device: FakeDriver) -> None:
    tensorrt = sys.modules["tensorrt"]
    log = trt_runner.make_log(tensorrt, keep=3)
    assert log.text() == "it gave no reason"
    log.log(tensorrt.ILogger.INFO, "nobody asked")
    log.log(tensorrt.ILogger.WARNING, "odd")
    assert log.text() == "odd"
    for i in range(5):
        log.log(tensorrt.ILogger.ERROR, f"bad {i}")
    assert log.text() == "bad 2; bad 3; bad 4"


def test_make_log__all_words_into_a_file_at_once(tmp_path: Path) -> None:
    module = fake_tensorrt(FakeDriver(), TENSORS, _work)
    with open(tmp_path / "words", "w+", encoding="utf-8") as file:
        log = trt_runner.make_log(module, file=file)
        log.log(module.ILogger.INFO, "a kernel was timed\n")
        log.log(module.ILogger.ERROR, "no implementation")
        lines = (tmp_path / "words").read_text().splitlines()  # though the file is still open
    assert [line.split(maxsplit=2)[1:] for line in lines] == [["3", "a kernel was timed"], ["1", "no implementation"]]
    assert log.text() == "no implementation"
