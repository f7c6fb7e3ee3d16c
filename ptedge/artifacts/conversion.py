"""What an export changed in a graph's precision, as the manifest records it."""

from __future__ import annotations

from dataclasses import dataclass

PRECISIONS = ("fp32", "fp16", "int8")  # of a graph, and of the engines built from it


@dataclass(frozen=True)
class Conversion:
    """Layers of lower precision, and how their ranges were found. Empty for a float32 graph.

    Attributes:
        converted: convolutions and fully connected layers that compute in the graph's precision.
        kept_float32: names of those that stayed in float32; the predictors are always among them.
        calibration_frames: frames that activations were measured on.
        calibration_method: how a range follows from the activations seen.
        kept_float16: of an int8 graph, names of those in float16.
        share_of_multiplications: that the converted layers do, of those of all layers.
        int8_error: root mean square change of the predictors' outputs by int8, relative to their standard deviation, on
            the calibration frames.
    """

    converted: int = 0
    kept_float32: tuple[str, ...] = ()
    calibration_frames: int = 0
    calibration_method: str = ""
    kept_float16: tuple[str, ...] = ()
    share_of_multiplications: float = 0.0
    int8_error: float = 0.0
