"""Which layers may be int8: those that do most of the arithmetic for the least error, measured on frames.

What int8 saves and what it costs lie in different layers. In a small network on a 240 x 416 image the two fully
connected layers do four fifths of all multiplications and can be rounded without anyone noticing; the first blocks of
the backbone do a tenth, and cause nearly all of the error. So every layer is rounded alone and its error measured where
a detection's numbers come from, at the predictors; then layers are taken by error per multiplication, as long as the
errors together stay below a limit.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .intermediate import decisions, graph_with_outputs
from .layers import Layers, Proto, multiplications
from .quantize import only_these

LIMIT = 0.02  # of the error at the predictors; docs/precision.md compares
FRAMES = 6  # thousands of places each; more change the errors little


@dataclass(frozen=True)
class Choice:
    """Layers for int8.

    Attributes:
        layers: their names, in the graph's order.
        errors: layer -> error that it causes alone.
        error: of all chosen together.
    """

    layers: tuple[str, ...]
    errors: dict[str, float]
    error: float


def choose_layers(
    proto: Proto, quantised: Proto, layers: Layers, frames: NDArray[np.uint8], batch: int, limit: float = LIMIT
) -> Choice:
    """Find the layers that do most of the arithmetic while their rounding stays unnoticed.

    Args:
        proto: the float32 graph.
        quantised: the same with every layer in int8.
        layers: of ``proto``.
        frames: [N, 3, H, W] uint8 network inputs.
        batch: images a call of the graph.
        limit: of the error, see :class:`ErrorMeter`.
    """
    meter = ErrorMeter(proto, quantised, layers, frames, batch)
    work = multiplications(proto)
    errors = {name: meter.error([name]) for name in layers.weighted}
    chosen: list[str] = []
    for name in sorted(errors, key=lambda name: errors[name] ** 2 / work[name]):  # independent roundings add in squares
        if sum(errors[other] ** 2 for other in (*chosen, name)) <= limit**2:
            chosen.append(name)
    while chosen and (error := meter.error(chosen)) > limit:  # they were not as independent as that
        chosen.pop()
    return Choice(tuple(name for name in layers.weighted if name in chosen), errors, error if chosen else 0.0)


class ErrorMeter:
    """What int8 layers do to the numbers that detections are made of.

    The error is the root mean square change of what the predictors give (objectness, deltas, class logits, variances),
    relative to its standard deviation, and averaged in squares over the predictors. Selections between the layers
    (TopK, suppression) are those of the float32 graph, so that values stand at the same places in both.

    Args:
        proto: the float32 graph.
        quantised: the same with every layer in int8.
        layers: of ``proto``.
        frames: [N, 3, H, W] uint8 network inputs; about ``FRAMES`` of them are used, at equal distances.
        batch: images a call of the graph.
    """

    def __init__(self, proto: Proto, quantised: Proto, layers: Layers, frames: NDArray[np.uint8], batch: int) -> None:
        self._proto, self._quantised = proto, quantised
        self._outputs = [node.output[0] for node in proto.graph.node if node.name in layers.predictors]
        rows = np.linspace(0, len(frames) - 1, -(-FRAMES // batch) * batch).round().astype(int)
        self._feeds = [{"images": frames[rows[i : i + batch]]} for i in range(0, len(rows), batch)]
        model = proto.SerializeToString()
        handed = decisions(model)
        answers = _run(model, [*handed, *self._outputs], {}, self._feeds)
        for feeds, answer in zip(self._feeds, answers, strict=True):
            feeds.update(zip(handed, answer, strict=False))
        self._handed = {name: self._feeds[0][name] for name in handed}
        self._wanted = [answer[len(handed) :] for answer in answers]
        self._variance = np.mean([[np.var(value) for value in answer] for answer in self._wanted], axis=0)

    def error(self, names: Collection[str]) -> float:
        """The error while these layers are in int8 and all others in float32."""
        model = only_these(self._proto, self._quantised, names).SerializeToString()
        answers = _run(model, self._outputs, self._handed, self._feeds)
        squares = [
            [np.mean(np.square(a - b, dtype=np.float64)) for a, b in zip(answer, wanted, strict=True)]
            for answer, wanted in zip(answers, self._wanted, strict=True)
        ]
        return float(np.sqrt(np.mean(np.mean(squares, axis=0) / (self._variance + 1e-12))))  # 0 where all is constant


def _run(
    model: bytes, outputs: Sequence[str], handed: dict[str, NDArray[Any]], feeds: Sequence[dict[str, NDArray[Any]]]
) -> list[list[NDArray[Any]]]:
    """Outputs of a graph, one list for each of ``feeds``; ``handed`` become inputs."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.add_session_config_entry("session.disable_quant_qdq", "1")
    session = onnxruntime.InferenceSession(
        graph_with_outputs(model, outputs, handed), options, providers=["CPUExecutionProvider"]
    )
    takes = {value.name for value in session.get_inputs()}
    return [session.run(list(outputs), {k: v for k, v in feed.items() if k in takes}) for feed in feeds]
