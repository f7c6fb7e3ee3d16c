"""Run a TensorRT engine: tensor addresses, pinned or mapped memory, own streams, a CUDA graph where one can be made.

Only what TensorRT 8.5, 10 and 11 have in common is used, and TensorRT-RTX has it too. An engine has one or more
*slots*; each is an execution context with its memory and stream, so as many calls can be under way at once, from any
threads.
"""

from __future__ import annotations

import contextlib
import importlib
import queue
import time
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from numpy.typing import NDArray

from ptedge.artifacts.engine_file import PRODUCTS, RTX, build_command
from ptedge.backends.cuda import CudaDevice
from ptedge.backends.rtx import KernelCache
from ptedge.backends.trt_slot import Slot, engine_tensors
from ptedge.errors import ArtifactError, BackendError, missing_extra

if TYPE_CHECKING:
    import tensorrt as trt

# the bindings of TensorRT-RTX come with a package of their own as well, under another name
MODULES = {"tensorrt": ("tensorrt",), RTX: ("tensorrt_rtx", "tensorrt_rtx_bindings")}


class TensorRTRunner:
    """An engine that is loaded and ready: a :class:`ptedge.backends.runner.Runner` and a context manager.

    Attributes:
        backend: ``tensorrt`` or ``tensorrt-rtx``.
        reason: why, in words.
        inputs: name -> (shape, dtype).
        output_names: in the engine's order.
        graph: how calls are launched: ``CUDA graph``, or ``enqueue`` and why.
        memory: ``pinned`` (copied to the device) or ``mapped`` (integrated GPU: nothing is copied).
    """

    def __init__(
        self,
        engine: bytes,
        name: str,
        *,
        device: CudaDevice | None = None,
        slots: int = 1,
        cuda_graph: bool = True,
        reason: str = "asked for",
        backend: str = "tensorrt",
    ) -> None:
        """Load an engine.

        Args:
            engine: serialised engine.
            name: what to call it in messages.
            device: opened device, closed with the runner; ``None`` opens the first.
            slots: calls that can be under way at once.
            cuda_graph: record the work of a call once and launch that.
            reason: for :attr:`reason`.
            backend: ``tensorrt`` or ``tensorrt-rtx``, which built the engine.

        Raises:
            MissingExtraError: no TensorRT or no pycuda.
            ArtifactError: TensorRT does not take the engine; its own words are in the message.
            BackendError: no device, or not enough memory.
        """
        tensorrt = load_tensorrt(backend)
        self.backend, self.reason, self.name = backend, reason, name
        self._kernels = KernelCache.of(engine) if backend == RTX else None
        self.device = device if device is not None else CudaDevice()
        self._free: queue.SimpleQueue[Slot] = queue.SimpleQueue()
        self._slots: list[Slot] = []
        self._closed = False
        try:
            with self.device.active():
                self._log = make_log(tensorrt)
                self._runtime: trt.Runtime | None = start(tensorrt.Runtime, self._log)
                self._engine: trt.ICudaEngine | None = self._runtime.deserialize_cuda_engine(engine)
                if self._engine is None:
                    raise ArtifactError(
                        f"{PRODUCTS[backend]} {tensorrt.__version__} does not take {name}: {self._log.text()}. "
                        f"Build it again on this machine: {build_command('BUNDLE', backend)}"
                    )
                tensors = engine_tensors(tensorrt, self._engine)
                for _ in range(slots):
                    self._slots.append(Slot(self.device, self._engine, tensors, self._log, self._new_context))
                problem = "switched off"
                if cuda_graph:
                    problem = self._record()
                self.graph = "CUDA graph" if not problem else f"enqueue ({problem})"
                if self._kernels is not None:  # a device that loses its power closes nothing
                    self._kernels.save()
        except BaseException:
            self.close()
            raise
        self.memory = "mapped" if self.device.integrated else "pinned"
        self.inputs = {t.name: (t.shape, t.dtype) for t in tensors if t.is_input}
        self.output_names = tuple(t.name for t in tensors if not t.is_input)
        for slot in self._slots:
            self._free.put(slot)

    def infer(self, feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run the engine once; may be called from several threads.

        Args:
            feeds: input name -> array of exactly the engine's shape and dtype, contiguous or not.

        Returns:
            Output name -> array of the caller's own.

        Raises:
            BackendError: wrong names, shape or dtype, a closed runner, or a failure on the device.
        """
        return self._run(feeds, None)

    def infer_timed(self, feeds: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], dict[str, float]]:
        """As :meth:`infer`, with the device's own times.

        Returns:
            Outputs; ``h2d``, ``compute`` and ``d2h`` by events on the stream and ``enqueue`` by the host clock, in ms.

        Raises:
            BackendError: as :meth:`infer`.
        """
        times: dict[str, float] = {}
        return self._run(feeds, times), times

    def time_launches(self, calls: int) -> float:
        """Seconds that ``calls`` launches of the engine alone take, one behind the other, nothing copied.

        Args:
            calls: how many.
        """
        with self._slot() as slot:
            slot.launch()
            slot.stream.synchronize()
            start = time.perf_counter()
            for _ in range(calls):
                slot.launch()
            slot.stream.synchronize()
            return time.perf_counter() - start

    def close(self) -> None:
        """Free engine, memory and context; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        with self.device.active():
            for slot in self._slots:
                slot.close()
            self._slots.clear()
            if self._kernels is not None:
                self._kernels.save()
                self._kernels.close()
            self._engine = None
            self._runtime = None
        self.device.close()

    def __enter__(self) -> TensorRTRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, feeds: Mapping[str, NDArray[Any]], times: dict[str, float] | None) -> dict[str, NDArray[Any]]:
        if set(feeds) != set(self.inputs):
            raise BackendError(f"the engine takes the inputs {sorted(self.inputs)}, got {sorted(feeds)}")
        for name, array in feeds.items():
            shape, dtype = self.inputs[name]
            if array.dtype != dtype or tuple(array.shape) != shape:
                raise BackendError(
                    f"input {name!r} must be {dtype} {list(shape)}, got {array.dtype} {list(array.shape)}"
                )
        with self._slot() as slot:
            try:
                return slot.run(feeds, times)
            except self.device.driver.Error as error:
                raise BackendError(f"inference failed on {self.name}: {error}") from error

    @contextlib.contextmanager
    def _slot(self) -> Iterator[Slot]:
        if self._closed:
            raise BackendError("the runner is closed; open it again")
        slot = self._free.get()
        try:
            with self.device.active():
                yield slot
        finally:
            self._free.put(slot)

    def _new_context(self, engine: trt.ICudaEngine) -> trt.IExecutionContext | None:
        if self._kernels is not None:
            context: trt.IExecutionContext | None = self._kernels.new_context(engine)
            return context
        return engine.create_execution_context()

    def _record(self) -> str:
        """Record every slot's graph; why not, where the driver or an engine with host-side work refuses."""
        for slot in self._slots:
            try:
                slot.record()
            except BackendError as error:
                for other in self._slots:
                    other.forget_graph()
                return str(error)
        return ""


def load_tensorrt(backend: str = "tensorrt") -> Any:
    """The module ``tensorrt``, or that of TensorRT-RTX.

    Args:
        backend: ``tensorrt`` or ``tensorrt-rtx``.

    Raises:
        MissingExtraError: not installed.
        BackendError: installed, but one of its libraries cannot be loaded.
    """
    for module in MODULES[backend]:
        try:
            return importlib.import_module(module)
        except ModuleNotFoundError:
            continue
        except (ImportError, OSError) as error:
            name = PRODUCTS[backend]
            raise BackendError(f"{name} is installed but cannot be loaded: {error}. See ptedge doctor") from None
    raise missing_extra(MODULES[backend][0], backend)


def start(kind: Any, log: Any, *arguments: Any) -> Any:
    """Make TensorRT's runtime or builder.

    Args:
        kind: the class.
        log: of :func:`make_log`.
        arguments: further ones.

    Raises:
        BackendError: TensorRT found no GPU it can use.
    """
    try:
        made = kind(log, *arguments)
    except TypeError:  # how the bindings report that the library gave nothing
        made = None
    if made is None:
        raise BackendError(f"TensorRT cannot start here: {log.text()}. See ptedge doctor")
    return made


def make_log(tensorrt: Any, keep: int = 8, file: TextIO | None = None) -> Any:
    """A TensorRT logger that keeps the last errors and warnings for messages and prints nothing.

    Args:
        tensorrt: the module.
        keep: how many lines.
        file: takes all that TensorRT says, with the seconds since now; each line at once, as a builder may be killed.
    """
    began = time.monotonic()

    class Log(tensorrt.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            tensorrt.ILogger.__init__(self)
            self.lines: list[tuple[bool, str]] = []

        def log(self, severity: Any, text: str) -> None:
            if file is not None:
                name = getattr(severity, "name", severity)
                print(f"{time.monotonic() - began:9.2f} {name} {text.strip()}", file=file, flush=True)
            errors = (tensorrt.ILogger.INTERNAL_ERROR, tensorrt.ILogger.ERROR)
            if severity in errors or severity == tensorrt.ILogger.WARNING:
                self.lines = [*self.lines[1 - keep :], (severity in errors, text.strip())]

        def text(self) -> str:
            """The last errors, or warnings where there is none."""
            errors = [line for is_error, line in self.lines if is_error]
            return "; ".join(errors or [line for _, line in self.lines]) or "it gave no reason"

    return Log()
