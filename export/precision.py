"""A float32 graph in another precision: what the export command does with ``--precision``."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ptedge.conversion import Conversion
from ptedge.errors import InputError
from ptedge.frames import open_frames
from ptedge.preprocess import Letterbox

from .half import to_float16
from .int8_choice import LIMIT, choose_layers
from .layers import Layers, Proto, find_layers, largest_values, multiplications
from .quantize import PERCENTILE, only_these, to_int8
from .scenes import make_scenes

Tell = Callable[[str], None]

FEWEST_FRAMES = 8  # fewer say little of the range that activations take
FRAMES = 64  # more change the ranges little
METHOD = "percentile"  # of quantize.METHODS


def convert(
    model: bytes,
    precision: str,
    size: tuple[int, int],
    batch: int,
    calibrate: str | None = None,
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
        tell: takes a line on each step that takes long.

    Returns:
        The graph, and what was changed.

    Raises:
        InputError: int8 without frames, with fewer than ``FEWEST_FRAMES``, or where no layer stands it.
    """
    import onnx

    check_calibration(precision, calibrate)
    if precision == "fp32":
        return model, Conversion()
    proto = onnx.load_from_string(model)
    layers = find_layers(proto)
    frames = np.empty((0, 3, *size), np.uint8) if calibrate is None else spread_frames(calibrate, size)
    rounded: tuple[str, ...] = ()
    out = proto
    if precision == "int8":
        out, rounded = _round_layers(proto, layers, frames, batch, str(calibrate), tell)
    images = np.concatenate([*make_scenes(size).values(), frames])
    images = np.concatenate([images, np.repeat(images[-1:], -len(images) % batch, axis=0)])
    tensors = [name for node in proto.graph.node if node.name in layers.between for name in node.output]
    out, half, kept = to_float16(out, largest_values(proto, tensors, images))
    converted, work = rounded or half, multiplications(proto)
    conversion = Conversion(
        len(converted),
        kept_float32=(*kept, *layers.predictors),
        kept_float16=tuple(half) if rounded else (),
        calibration_frames=len(frames) if rounded else 0,
        calibration_method=f"{METHOD} {PERCENTILE}" if rounded else "",
        share_of_multiplications=round(sum(work[name] for name in converted) / sum(work.values()), 4),
    )
    return out.SerializeToString(), conversion


def _round_layers(
    proto: Proto, layers: Layers, frames: NDArray[np.uint8], batch: int, calibrate: str, tell: Tell
) -> tuple[Proto, tuple[str, ...]]:
    """The graph with the layers in int8 that stand it, and their names."""
    if len(frames) < FEWEST_FRAMES:
        raise InputError(
            f"{calibrate} holds {len(frames)} frames; int8 is calibrated on at least {FEWEST_FRAMES}. "
            "Give a folder or video of what the device will see"
        )
    tell(f"int8: measuring the ranges of activations on {len(frames)} frames")
    quantised = to_int8(proto, frames, batch=batch, method=METHOD)
    tell(f"int8: measuring what each of {len(layers.weighted)} layers changes")
    rounded = choose_layers(proto, quantised, layers, frames, batch).layers
    if not rounded:
        raise InputError(
            f"no layer of this model can be rounded to int8: each alone changes what the predictors give on "
            f"{calibrate} by more than {LIMIT:.0%}. Give frames of what the device will see, or export with "
            "--precision fp16"
        )
    return only_these(proto, quantised, rounded), rounded


def check_calibration(precision: str, calibrate: str | None) -> None:
    """Refuse frames where they do nothing, and their absence where they are needed.

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


def spread_frames(spec: str, size: tuple[int, int], limit: int = FRAMES) -> NDArray[np.uint8]:
    """Frames at equal distances over a source of any length, letterboxed.

    Whenever twice as many as wanted are held, every other one is dropped, so memory does not grow with the source.

    Args:
        spec: image, folder, list, video or field folder.
        size: (height, width) of the network input.
        limit: at most this many.

    Returns:
        [N, 3, H, W] uint8.

    Raises:
        InputError: no frames there.
    """
    held: list[NDArray[np.uint8]] = []
    step = 1
    for i, frame in enumerate(itertools.islice(open_frames(spec), 1000 * limit)):  # a live source never ends
        if i % step:
            continue
        letterbox = Letterbox(frame.image.shape[1], frame.image.shape[0], *size)
        held.append(letterbox.image(frame.image).transpose(2, 0, 1))
        if len(held) == 2 * limit:
            held, step = held[::2], 2 * step
    if not held:
        raise InputError(f"{spec} holds no frames. Give an image, folder, list, video or field folder")
    rows = np.linspace(0, len(held) - 1, min(limit, len(held))).round().astype(int)
    return np.stack([held[row] for row in rows])
