"""What runs a graph, arrays in and arrays out, whatever the backend; and the names of the backends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BACKENDS = ("auto", "tensorrt", "cuda", "cpu")  # what a user may ask for
ORT_TENSORRT = "ort-tensorrt"  # TensorRT through ONNX Runtime: to measure beside the others, not for use


class Runner(Protocol):
    """A graph that is loaded and ready.

    Attributes:
        backend: ``tensorrt``, ``cuda``, ``cpu`` or ``ort-tensorrt``.
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
