"""What one call of a TensorRT engine needs: memory for inputs and outputs, stream, execution context, CUDA graph."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ptedge.backends.cuda import CudaDevice, CudaGraph
from ptedge.errors import ArtifactError, BackendError

if TYPE_CHECKING:
    import tensorrt as trt

ALIGNMENT = 256  # bytes; device allocations start at such addresses, and so does each tensor in the shared ones
# TensorRT 8.5's own trt.nptype uses numpy names that numpy has dropped
DTYPES = {
    "FLOAT": np.float32,
    "HALF": np.float16,
    "INT8": np.int8,
    "INT32": np.int32,
    "BOOL": np.bool_,
    "UINT8": np.uint8,
    "INT64": np.int64,
}


class Tensor:
    """An input or output of an engine: name, shape, numpy dtype, and where it starts in its buffer."""

    def __init__(self, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], is_input: bool, offset: int) -> None:
        self.name, self.shape, self.dtype, self.is_input, self.offset = name, shape, dtype, is_input, offset
        self.nbytes = int(np.prod(shape)) * dtype.itemsize


def engine_tensors(tensorrt: Any, engine: trt.ICudaEngine) -> list[Tensor]:
    """Inputs and outputs of an engine, in its order, laid out in one buffer for each direction.

    Args:
        tensorrt: the module.
        engine: with fixed shapes.

    Raises:
        ArtifactError: a dimension that is not fixed, or a type that has no numpy equivalent.
    """
    found: list[Tensor] = []
    ends = {True: 0, False: 0}  # inputs lie in one buffer, outputs in another: one copy each way
    for i in range(engine.num_io_tensors):
        name = engine.get_tensor_name(i)
        dims: Any = engine.get_tensor_shape(name)  # iterable, though its stub does not say so
        shape = tuple(int(side) for side in dims)
        kind = engine.get_tensor_dtype(name).name
        if kind not in DTYPES or any(side < 0 for side in shape):
            raise ArtifactError(f"the engine's tensor {name!r} is {kind} {list(shape)}, which ptedge does not feed")
        is_input = engine.get_tensor_mode(name) == tensorrt.TensorIOMode.INPUT
        tensor = Tensor(name, shape, np.dtype(DTYPES[kind]), is_input, ends[is_input])
        ends[is_input] += -(-tensor.nbytes // ALIGNMENT) * ALIGNMENT
        found.append(tensor)
    return found


class Slot:
    """Execution context, stream, memory and, once recorded, the graph of one call. The context must be current."""

    def __init__(
        self,
        device: CudaDevice,
        engine: trt.ICudaEngine,
        tensors: list[Tensor],
        log: Any,
        new_context: Callable[[trt.ICudaEngine], trt.IExecutionContext | None],
    ) -> None:
        self._cuda, self._log, self._tensors = device.driver, log, tensors
        self._mapped = device.integrated
        self._graph: CudaGraph | None = None
        self._device_memory: list[Any] = []
        self.context: trt.IExecutionContext | None = new_context(engine)
        if self.context is None:
            raise BackendError(f"no memory for the engine's working space: {log.text()}. Close other GPU programs")
        self.stream: Any = self._cuda.Stream()
        self._events = [self._cuda.Event() for _ in range(4)]
        self._input = self._buffer([t for t in tensors if t.is_input])
        self._output = self._buffer([t for t in tensors if not t.is_input])
        self._views: dict[str, NDArray[Any]] = {}
        for tensor in tensors:
            host, address = self._input if tensor.is_input else self._output
            part = host[tensor.offset : tensor.offset + tensor.nbytes]
            self._views[tensor.name] = part.view(tensor.dtype).reshape(tensor.shape)
            if not self.context.set_tensor_address(tensor.name, address + tensor.offset):
                raise BackendError(f"TensorRT does not take the address of {tensor.name!r}: {log.text()}")

    def _buffer(self, tensors: list[Tensor]) -> tuple[NDArray[np.uint8], int]:
        """Host array of bytes and device address. On an integrated GPU both are the same memory."""
        size = max((t.offset + t.nbytes for t in tensors), default=1)
        if self._mapped:
            host = self._cuda.pagelocked_empty(size, np.uint8, mem_flags=self._cuda.host_alloc_flags.DEVICEMAP)
            return host, int(host.base.get_device_pointer())
        host = self._cuda.pagelocked_empty(size, np.uint8)
        allocation = self._cuda.mem_alloc(size)
        self._device_memory.append(allocation)
        return host, int(allocation)

    def run(self, feeds: Mapping[str, NDArray[Any]], times: dict[str, float] | None) -> dict[str, NDArray[Any]]:
        """Copy in, launch, copy out, wait."""
        for name, array in feeds.items():
            np.copyto(self._views[name], array)
        self._mark(times, 0)
        if not self._mapped:
            self._cuda.memcpy_htod_async(self._input[1], self._input[0], self.stream)
        self._mark(times, 1)
        start = time.perf_counter()
        self.launch()
        enqueued = time.perf_counter() - start
        self._mark(times, 2)
        if not self._mapped:
            self._cuda.memcpy_dtoh_async(self._output[0], self._output[1], self.stream)
        self._mark(times, 3)
        self.stream.synchronize()
        if times is not None:
            for i, name in enumerate(("h2d", "compute", "d2h")):
                times[name] = float(self._events[i].time_till(self._events[i + 1]))
            times["enqueue"] = enqueued * 1000.0
        return {t.name: self._views[t.name].copy() for t in self._tensors if not t.is_input}

    def launch(self) -> None:
        """Put one execution on the stream."""
        if self._graph is not None:
            self._graph.launch()
        else:
            self._enqueue()

    def record(self) -> None:
        """Record the execution; it must have run once before, so that TensorRT has set everything up."""
        self._enqueue()
        self.stream.synchronize()
        self._graph = CudaGraph(int(self.stream.handle), self._enqueue)
        self.launch()
        self.stream.synchronize()

    def forget_graph(self) -> None:
        """Launch by enqueue from now on."""
        if self._graph is not None:
            self._graph.close()
            self._graph = None

    def close(self) -> None:
        """Free everything; what the device still does is waited for."""
        with contextlib.suppress(self._cuda.Error):
            self.stream.synchronize()
        self.forget_graph()
        self._views.clear()
        self.context = None
        for allocation in self._device_memory:
            allocation.free()
        self._device_memory.clear()
        del self._input, self._output, self._events, self.stream

    def _enqueue(self) -> None:
        if self.context is None or not self.context.execute_async_v3(int(self.stream.handle)):
            raise BackendError(f"TensorRT could not enqueue: {self._log.text()}")

    def _mark(self, times: dict[str, float] | None, which: int) -> None:
        if times is not None:
            self._events[which].record(self.stream)
