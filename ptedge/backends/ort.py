"""Run an ONNX model with ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ptedge.artifacts.engine_file import PRODUCTS
from ptedge.backends.providers import CPU, CUDA, TENSORRT, first_line, open_gpu_session, open_session
from ptedge.backends.runner import BACKENDS, ORT_TENSORRT
from ptedge.errors import ArtifactError, BackendError
from ptedge.machine.driver import cuda_device_count

DTYPES = {
    "tensor(uint8)": np.uint8,
    "tensor(int32)": np.int32,
    "tensor(int64)": np.int64,
    "tensor(float16)": np.float16,
    "tensor(float)": np.float32,
}


class OrtRunner:
    """An ONNX model that is loaded and ready: a :class:`ptedge.backends.runner.Runner` and a context manager.

    Attributes:
        backend: ``cuda``, ``cpu`` or ``ort-tensorrt``, what runs the model.
        reason: why, in words.
        inputs: name -> (shape, dtype); a dimension that is not fixed is a name.
        output_names: in the graph's order.
    """

    def __init__(
        self,
        model: Path,
        backend: str = "auto",
        threads: int | None = None,
        *,
        precision: str = "fp32",
        content: bytes | None = None,
    ) -> None:
        """Load a model.

        Args:
            model: ONNX file.
            backend: ``auto`` takes the GPU when it answers, else the CPU; ``ort-tensorrt`` has ONNX Runtime build a
                TensorRT engine of its own, anew each time, which takes minutes.
            threads: CPU threads; ``None`` leaves ONNX Runtime's default, one a core.
            precision: of the bundle; ``ort-tensorrt`` alone has to be told.
            content: of the file, where it was read and checked already; ``model`` is then its name only.

        Raises:
            ArtifactError: not a model that ONNX Runtime can load.
            BackendError: the backend asked for is not there.
        """
        if backend not in (*BACKENDS, ORT_TENSORRT):
            raise BackendError(f"backend is {backend!r}; it must be one of {', '.join(BACKENDS)}")
        if backend in PRODUCTS:
            raise BackendError(
                f"{model} is an ONNX file; {PRODUCTS[backend]} runs the engines of a bundle: ptedge build BUNDLE"
            )
        self.backend, self.reason = "cpu", "asked for"
        self._session: Any = None
        if backend != "cpu":
            self._open_gpu(model, backend, threads, precision, content)
        if self._session is None:
            self._session = open_session(model, [CPU], threads, content=content)
        self.inputs = {i.name: (tuple(i.shape), np.dtype(_dtype(i.type, model))) for i in self._session.get_inputs()}
        self.output_names = tuple(o.name for o in self._session.get_outputs())

    def infer(self, feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run the model once.

        Args:
            feeds: input name -> array of exactly the graph's shape and dtype; one that is not contiguous is copied.

        Returns:
            Output name -> array.

        Raises:
            BackendError: wrong names, shape or dtype, a closed runner, or a failure inside ONNX Runtime.
        """
        if self._session is None:
            raise BackendError("the runner is closed; open it again")
        if set(feeds) != set(self.inputs):
            raise BackendError(f"the model takes the inputs {sorted(self.inputs)}, got {sorted(feeds)}")
        ready = {name: self._check(name, array) for name, array in feeds.items()}
        try:
            values = self._session.run(None, ready)
        except Exception as error:  # ONNX Runtime's exceptions have no common base
            raise BackendError(f"inference failed on {self.backend}: {first_line(error)}") from error
        return dict(zip(self.output_names, values, strict=True))

    def close(self) -> None:
        """Free the model; a second call does nothing."""
        self._session = None

    def __enter__(self) -> OrtRunner:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _open_gpu(self, model: Path, backend: str, threads: int | None, precision: str, content: bytes | None) -> None:
        """Set session, backend and reason; without a GPU the reason alone, or an error when one was asked for."""
        provider = TENSORRT if backend == ORT_TENSORRT else CUDA
        self._session, problem = open_gpu_session(
            model, provider, threads, cuda_device_count(), precision=precision, content=content
        )
        if self._session is not None:
            self.backend = "cuda" if backend == "auto" else backend
            self.reason = "a CUDA GPU answers" if backend == "auto" else "asked for"
        elif backend == "auto":
            self.reason = problem
        else:
            name = "CUDA" if backend == "cuda" else "TensorRT through ONNX Runtime"
            raise BackendError(f"cannot run on {name}: {problem}. Choose --backend cpu, or see ptedge doctor")

    def _check(self, name: str, array: NDArray[Any]) -> NDArray[Any]:
        shape, dtype = self.inputs[name]
        if array.dtype != dtype:
            raise BackendError(f"input {name!r} must be {dtype}, got {array.dtype}")
        fits = len(array.shape) == len(shape) and all(
            not isinstance(want, int) or want == got for want, got in zip(shape, array.shape, strict=True)
        )
        if not fits:
            raise BackendError(f"input {name!r} must have shape {list(shape)}, got {list(array.shape)}")
        return np.ascontiguousarray(array)


def _dtype(name: str, model: Path) -> Any:
    if name not in DTYPES:
        raise ArtifactError(f"{model} takes {name}, which ptedge does not feed")
    return DTYPES[name]
