"""What runs a graph, arrays in and arrays out, whatever the backend; and the names of the backends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BACKENDS = ("auto", "tensorrt", "tensorrt-rtx", "cuda", "cpu")  # what a user may ask for
ORT_TENSORRT = "ort-tensorrt"  # TensorRT through ONNX Runtime: to measure beside the others, not for use


class Runner(Protocol):
    """A graph that is loaded and ready.

    Attributes:
        backend: ``tensorrt``, ``tensorrt-rtx``, ``cuda``, ``cpu`` or ``ort-tensorrt``.
        reason: why this one, in words.
        inputs: name -> (shape, dtype); a dimension that is not fixed is a name.
        output_names: in the graph's order.
    """

    backend: str
    reason: str
    inputs: dict[str, tuple[tuple[Any, ...], np.dtype[Any]]]
    output_names: tuple[str, ...]

    def infer(self, feeds: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        """Run once.

        Args:
            feeds: input name -> array of exactly the graph's shape and dtype.

        Returns:
            Output name -> array of the caller's own.

        Raises:
            BackendError: wrong names, shape or dtype, a closed runner, or a failure of the backend.
        """
        ...

    def close(self) -> None:
        """Free the model; a second call does nothing."""
        ...


@runtime_checkable
class TimedRunner(Runner, Protocol):
    """A runner that knows the device's own times, as TensorRT's does."""

    def infer_timed(self, feeds: Mapping[str, NDArray[Any]]) -> tuple[dict[str, NDArray[Any]], dict[str, float]]:
        """As :meth:`infer`, with the times of its parts.

        Returns:
            Outputs; ``h2d``, ``compute`` and ``d2h`` on the device and ``enqueue`` on the host, in ms.
        """
        ...

    def time_launches(self, calls: int) -> float:
        """Seconds that ``calls`` launches of the graph alone take, one behind the other, nothing copied."""
        ...
