"""The device on simulated memory, and graphs on a driver that only writes down what it is asked."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from fake_tensorrt import FakeDriver, install

from ptedge.backends import cuda
from ptedge.backends.cuda import CudaDevice, CudaGraph
from ptedge.errors import BackendError


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    return install(monkeypatch, FakeDriver(), {"images": ((1,), "UINT8", True)}, lambda images: {"x": np.zeros(1)})


class FakeLibrary:
    """``libcuda.so.1``: every function succeeds but those named."""

    def __init__(self, failing: dict[str, int]) -> None:
        self.calls: list[str] = []
        self._failing = failing

    def __getattr__(self, name: str) -> Callable[..., int]:
        def function(*arguments: Any) -> int:
            self.calls.append(name)
            return self._failing.get(name, 0)

        return function

    def cuGraphInstantiateWithFlags(self, executable: Any, *arguments: Any) -> int:  # noqa: N802
        self.calls.append("cuGraphInstantiateWithFlags")
        executable._obj.value = 7  # else the graph has nothing to launch and to free
        return self._failing.get("cuGraphInstantiateWithFlags", 0)

    def cuGetErrorName(self, status: ctypes.c_int, text: Any) -> int:  # noqa: N802
        text._obj.value = b"CUDA_ERROR_UNKNOWN"
        return 0


Library = Callable[..., FakeLibrary]


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    def put(**failing: int) -> FakeLibrary:
        fake = FakeLibrary(failing)
        monkeypatch.setattr(cuda, "load_driver", lambda: fake)
        return fake

    return put


def test_cuda_device__what_it_tells(device: FakeDriver) -> None:
    opened = CudaDevice()
    assert (opened.name, opened.compute_capability, opened.cuda, opened.integrated) == ("Orin", "8.7", "12.6", False)
    assert opened.free_memory() == (6 << 30, 8 << 30)
    opened.close()
    with pytest.raises(BackendError, match="closed"), opened.active():
        pass
    with pytest.raises(BackendError, match="no CUDA device 1 answers: invalid device ordinal"):
        CudaDevice(1)


def test_cuda_graph__records_launches_and_frees_once(library: Library) -> None:
    fake = library()
    graph = CudaGraph(1, lambda: fake.calls.append("work"))
    graph.launch()
    graph.close()
    graph.close()
    assert fake.calls == [
        "cuStreamBeginCapture_v2",
        "work",
        "cuStreamEndCapture",
        "cuGraphInstantiateWithFlags",
        "cuGraphDestroy",
        "cuGraphLaunch",
        "cuGraphExecDestroy",
    ]


def test_cuda_graph__work_that_fails_ends_the_recording(library: Library) -> None:
    fake = library()

    def work() -> None:
        raise RuntimeError("synchronised")

    with pytest.raises(BackendError, match="the work cannot be recorded: synchronised"):
        CudaGraph(1, work)
    assert fake.calls == ["cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphDestroy"]


def test_cuda_graph__what_the_driver_refuses_has_a_name(library: Library) -> None:
    library(cuGraphInstantiateWithFlags=999)
    with pytest.raises(BackendError, match=r"cuGraphInstantiateWithFlags failed: CUDA_ERROR_UNKNOWN \(999\)"):
        CudaGraph(1, lambda: None)


def test_cuda_graph__no_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> ctypes.CDLL:
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(cuda, "load_driver", absent)
    with pytest.raises(BackendError, match="the CUDA driver cannot be loaded: libcuda"):
        CudaGraph(1, lambda: None)
