"""One CUDA device through pycuda, on the context that everyone else in the process shares, and CUDA graphs by ctypes.

``pycuda.autoinit`` would make a second context beside the one torch and ONNX Runtime use; pointers and streams of one
are invalid in the other. Here the device's *primary* context is retained instead, made current only while a thread
works with it, and released at the end. pycuda has no graphs, so those few calls go to the driver library itself.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterator
from typing import Any

from ptedge.artifacts.engine_file import Platform
from ptedge.errors import BackendError, missing_extra
from ptedge.machine.driver import load_driver

CAPTURE_THREAD_LOCAL = 1  # CU_STREAM_CAPTURE_MODE_THREAD_LOCAL: other threads may use CUDA meanwhile


class CudaDevice:
    """A GPU whose primary context is retained until :meth:`close`.

    Attributes:
        driver: the module ``pycuda.driver``.
        name: of the device.
        compute_capability: for example ``8.7``.
        integrated: memory is shared with the CPU (Jetson), so nothing needs copying.
    """

    def __init__(self, index: int = 0) -> None:
        """Open a device.

        Args:
            index: which.

        Raises:
            MissingExtraError: no pycuda.
            BackendError: no device answers.
        """
        try:
            from pycuda import driver
        except ImportError as error:
            if getattr(error, "name", None) in ("pycuda", "pycuda.driver"):
                raise missing_extra("pycuda", "tensorrt") from None
            raise BackendError(f"pycuda cannot be loaded: {error}. See ptedge doctor") from None
        self.driver: Any = driver
        try:
            driver.init()
            device = driver.Device(index)
            self.name = str(device.name())
            self.compute_capability = ".".join(str(part) for part in device.compute_capability())
            self.integrated = bool(device.get_attribute(driver.device_attribute.INTEGRATED))
            self._context: Any = device.retain_primary_context()
        except driver.Error as error:
            raise BackendError(f"no CUDA device {index} answers: {error}. See ptedge doctor") from None

    @property
    def cuda(self) -> str:
        """Newest CUDA version the installed driver supports, for example ``12.6``."""
        version = int(self.driver.get_driver_version())
        return f"{version // 1000}.{version % 1000 // 10}"

    def platform(self, tensorrt: str) -> Platform:
        """What an engine built here is bound to.

        Args:
            tensorrt: version of TensorRT.
        """
        return Platform(tensorrt, self.cuda, self.name, self.compute_capability)

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """Inside, the context is current in this thread; what was current before is so again afterwards."""
        if self._context is None:
            raise BackendError("the CUDA device is closed; open it again")
        self._context.push()
        try:
            yield
        finally:
            self.driver.Context.pop()

    def free_memory(self) -> tuple[int, int]:
        """Bytes of device memory: free and in all."""
        with self.active():
            free, total = self.driver.mem_get_info()
        return int(free), int(total)

    def close(self) -> None:
        """Release the context; a second call does nothing."""
        if self._context is not None:
            self._context.detach()
            self._context = None


class CudaGraph:
    """Work recorded from a stream, launched again with one call.

    Recording needs a stream on which the same work ran once before, so that nothing is set up lazily any more. All
    calls need the device's context current.
    """

    def __init__(self, stream: int, work: Callable[[], None]) -> None:
        """Record what ``work`` puts on a stream.

        Args:
            stream: handle of the stream.
            work: enqueues on it; must neither synchronise nor allocate.

        Raises:
            BackendError: the driver refused to record or to instantiate.
        """
        try:
            self._driver = load_driver()
        except OSError as error:
            raise BackendError(f"the CUDA driver cannot be loaded: {error}") from None
        self._stream = ctypes.c_void_p(stream)
        self._executable = ctypes.c_void_p()
        graph = ctypes.c_void_p()
        self._call("cuStreamBeginCapture_v2", self._stream, ctypes.c_int(CAPTURE_THREAD_LOCAL))
        problem: Exception | None = None
        try:
            work()
        except Exception as error:  # the capture must end whatever happened
            problem = error
        try:
            self._call("cuStreamEndCapture", self._stream, ctypes.byref(graph))
        except BackendError as error:
            raise BackendError(f"{error}" if problem is None else f"{problem}") from None
        try:
            if problem is not None:
                raise BackendError(f"the work cannot be recorded: {problem}")
            self._instantiate(graph)
        finally:
            self._driver.cuGraphDestroy(graph)

    def launch(self) -> None:
        """Put the recorded work on the stream once more.

        Raises:
            BackendError: the driver refused.
        """
        self._call("cuGraphLaunch", self._executable, self._stream)

    def close(self) -> None:
        """Free it; a second call does nothing."""
        if self._executable:
            self._driver.cuGraphExecDestroy(self._executable)
            self._executable = ctypes.c_void_p()

    def _instantiate(self, graph: ctypes.c_void_p) -> None:
        name = "cuGraphInstantiateWithFlags"  # since CUDA 11.4, in all later drivers
        self._call(name, ctypes.byref(self._executable), graph, ctypes.c_ulonglong(0))

    def _call(self, name: str, *arguments: Any) -> None:
        status = int(getattr(self._driver, name)(*arguments))
        if status != 0:
            text = ctypes.c_char_p()
            self._driver.cuGetErrorName(ctypes.c_int(status), ctypes.byref(text))
            raise BackendError(f"{name} failed: {(text.value or b'error').decode()} ({status})")
