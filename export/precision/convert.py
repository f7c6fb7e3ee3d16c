"""A float32 graph in another precision: what the export command does with ``--precision``."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ptedge.artifacts.conversion import Conversion
from ptedge.errors import InputError

from ..network_inputs import Images, make_scenes, spread_frames
from ..onnx_graph import Proto
from .half import largest_values, to_float16
from .int8_choice import LIMIT, Choice, choose_layers
from .int8_weights import store_int8
from .layers import Layers, find_layers, multiplications
from .quantize import PERCENTILE, only_these, to_int8

Tell = Callable[[str], None]

FEWEST_FRAMES = 8  # fewer say little of the range that activations take
FRAMES = 64  # more change the ranges little
RANGES = {"percentile": f"percentile {PERCENTILE}", "minmax": "minmax"}  # of quantize.METHODS -> name in the manifest


def convert(
    model: bytes,
    precision: str,
    size: tuple[int, int],
    batch: int,
    calibrate: str | None = None,
    int8_error: float | None = None,
    tell: Tell = lambda line: None,
) -> tuple[bytes, Conversion]:
    """Change the precision of a graph.

    Args:
        model: folded float32 ONNX.
        precision: ``fp32``, ``fp16`` or ``int8``.
        size: (height, width) of the input.
        batch: images a call of the graph.
        calibrate: frames that show what the device will see: required for ``int8``; for ``fp16`` numbers too large for
            float16 are looked for on them as well.
        int8_error: limit of :class:`ptedge.export.precision.int8_choice.ErrorMeter`; ``None`` takes ``LIMIT``.
        tell: takes a line on each step that takes long.

    Returns:
        The graph, and what was changed.

    Raises:
        InputError: int8 without frames, or with fewer than ``FEWEST_FRAMES``.
    """
    import onnx

    check_calibration(precision, calibrate, int8_error)
    if precision == "fp32":
        return model, Conversion()
    proto = onnx.load_from_string(model)
    layers = find_layers(proto)
    frames = _calibration_frames(calibrate, size, precision)
    tensors = [name for node in proto.graph.node if node.name in layers.between for name in node.output]
    largest = largest_values(proto, tensors, _whole_batches([*make_scenes(size).values(), frames], batch))
    if precision == "fp16":
        out, half, kept = to_float16(proto, largest)
        work = multiplications(proto)
        share = sum(work[name] for name in half) / sum(work.values())
        conversion = Conversion(len(half), (*kept, *layers.predictors), share_of_multiplications=round(share, 4))
        return out.SerializeToString(), conversion
    mixed, choice = _round_layers(proto, layers, frames, batch, LIMIT if int8_error is None else int8_error, tell)
    out, half, kept = to_float16(mixed, largest)
    conversion = Conversion(
        len(choice.layers),
        (*kept, *layers.predictors),
        calibration_frames=len(frames),
        calibration_method=choice.ranges,
        kept_float16=tuple(half),
        share_of_multiplications=round(choice.share, 4),
        int8_error=round(choice.error, 4),
    )
    return store_int8(out).SerializeToString(), conversion


def _calibration_frames(calibrate: str | None, size: tuple[int, int], precision: str) -> Images:
    frames = np.empty((0, 3, *size), np.uint8) if calibrate is None else spread_frames(calibrate, size, FRAMES)
    if precision == "int8" and len(frames) < FEWEST_FRAMES:
        raise InputError(
            f"{calibrate} holds {len(frames)} frames; int8 is calibrated on at least {FEWEST_FRAMES}. "
            "Give a folder or video of what the device will see"
        )
    return frames


def _whole_batches(parts: list[Images], batch: int) -> Images:
    """All images, the last one repeated until they fill the last batch."""
    images = np.concatenate(parts)
    return np.concatenate([images, np.repeat(images[-1:], -len(images) % batch, axis=0)])


def _round_layers(
    proto: Proto, layers: Layers, frames: Images, batch: int, limit: float, tell: Tell
) -> tuple[Proto, Choice]:
    """The graph with those layers in int8 that stand it, and which these are."""
    tell(f"int8: measuring the ranges of activations on {len(frames)} frames")
    quantised = {RANGES[method]: to_int8(proto, frames, batch=batch, method=method) for method in RANGES}
    tell(f"int8: measuring what each of {len(layers.weighted)} layers changes")
    choice = choose_layers(proto, quantised, layers, frames, batch, limit)
    if choice.error > limit:
        tell(
            f"int8: even {choice.layers[0]} alone changes what the predictors give by {choice.error:.1%}, above the "
            f"{limit:.1%} that are allowed. Check it (ptedge verify --data), or export with --precision fp16"
        )
    return only_these(proto, quantised[choice.ranges], choice.layers), choice


def check_calibration(precision: str, calibrate: str | None, int8_error: float | None = None) -> None:
    """Refuse frames and a limit where they do nothing, and the absence of frames where they are needed.

    Raises:
        InputError: says what to give.
    """
    if precision == "int8" and calibrate is None:
        raise InputError(
            "int8 is calibrated on frames of what the device will see. Add --calibrate FRAMES (a folder, list or "
            f"video of at least {FEWEST_FRAMES} frames; labels are not needed)"
        )
    if precision == "fp32" and calibrate is not None:
        raise InputError("--calibrate belongs to --precision int8 or fp16; leave it out")
    if precision != "int8" and int8_error is not None:
        raise InputError("--int8-error belongs to --precision int8; leave it out")
