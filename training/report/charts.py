"""Curves as SVG: in the colours of the page, light or dark, with a text for those who do not see them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .markup import Markup, element

FloatArray = NDArray[np.float64]
WIDTH, HEIGHT = 360, 210
LEFT, RIGHT, TOP, BOTTOM = 46, 16, 12, 34  # pixels around the plot
MOST_POINTS = 400  # of a line: more are finer than a pixel


@dataclass(frozen=True)
class Trace:
    """A line of a chart.

    Attributes:
        label: for the legend; empty for a chart of one line.
        x, y: [N] finite.
        tone: its colour: ``1`` to ``4``, ``before``, ``after`` or ``quiet``.
        dashed: drawn so.
        dots: a dot at each value.
    """

    label: str
    x: FloatArray
    y: FloatArray
    tone: str = "1"
    dashed: bool = False
    dots: bool = False


@dataclass(frozen=True)
class Scale:
    """One axis: values to pixels.

    Attributes:
        low, high: values at its ends.
        start, end: pixels there.
    """

    low: float
    high: float
    start: float
    end: float

    def __call__(self, values: FloatArray) -> FloatArray:
        """Pixels of values."""
        share = (np.asarray(values, np.float64) - self.low) / (self.high - self.low)
        return np.asarray(self.start + share * (self.end - self.start))


def chart(
    title: str,
    unit: str,
    traces: Sequence[Trace],
    *,
    across: str = "step",
    span: tuple[float, float] | None = None,
    marks: Sequence[tuple[float, str]] = (),
    low: float | None = None,
    high: float | None = None,
) -> Markup | None:
    """A figure with a chart, its title and its legend.

    Args:
        title: of the figure.
        unit: of the values.
        traces: those without values are left out.
        across: what the horizontal axis is.
        span: its ends; ``None`` leaves them to the values.
        marks: (x, text) of vertical lines, as where a guard tripped.
        low: of the vertical axis; ``None`` leaves it to the values.
        high: likewise.

    Returns:
        Markup; ``None`` where there is no value to draw.
    """
    traces = [_thinned(trace) for trace in traces if len(trace.x)]
    if not traces:
        return None
    xs, ys = np.concatenate([t.x for t in traces]), np.concatenate([t.y for t in traces])
    x = Scale(*_widened(*(span or (float(xs.min()), float(xs.max())))), LEFT, WIDTH - RIGHT)
    bounds = (float(ys.min()) if low is None else low, float(ys.max()) if high is None else high)
    y = Scale(*_widened(*bounds), HEIGHT - BOTTOM, TOP)
    parts = [*_axes(x, y, across)]
    for at, text in marks:
        place = float(x(np.array(at)))
        mark = element("line", x1=place, x2=place, y1=TOP, y2=HEIGHT - BOTTOM, class_="mark")
        parts.append(element("g", element("title", f"step {at:g}: {text}"), mark))
    for trace in traces:
        parts += _drawn(trace, x, y)
    alt = f"{title}, {unit}: " + "; ".join(_in_words(trace) for trace in traces)
    legend = [_key(trace) for trace in traces if trace.label]
    legend += [element("span", element("i", class_="key mark"), "a guard stepped in")] if marks else []
    return figure(title, unit, svg(parts, alt), legend)


def figure(title: str, unit: str, drawing: Markup, legend: Sequence[Markup] = ()) -> Markup:
    """A drawing with its title above and its legend below."""
    heading = element("b", title)
    caption = element("figcaption", heading, " ", element("span", unit, class_="quiet") if unit else None)
    keys = element("div", *legend, class_="legend") if legend else None
    return element("figure", caption, drawing, keys, class_="chart")


def svg(parts: Sequence[Markup], alt: str, width: int = WIDTH, height: int = HEIGHT) -> Markup:
    """A drawing that takes the width it is given, with a text for those who do not see it."""
    return element("svg", *parts, viewBox=f"0 0 {width} {height}", role="img", aria_label=alt)


def key(label: str, tone: str, dashed: bool = False) -> Markup:
    """An entry of a legend."""
    return element("span", element("i", class_=f"key t-{tone}{' dashed' if dashed else ''}"), label)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers between two values, both ends included where they are round."""
    step = 10 ** math.floor(math.log10((high - low) / most))
    step *= next(factor for factor in (1, 2, 5, 10) if (high - low) / (step * factor) <= most)
    first = math.ceil(low / step - 1e-9)
    return [float(f"{(first + i) * step:.10g}") for i in range(most + 2) if (first + i) * step <= high + 1e-9 * step]


def _key(trace: Trace) -> Markup:
    return key(trace.label, trace.tone, trace.dashed)


def _widened(low: float, high: float) -> tuple[float, float]:
    """Ends of an axis: apart also where all values are one."""
    if high - low > 1e-12 * max(abs(low), abs(high), 1e-300):
        return low, high
    room = abs(low) * 0.1 or 1.0
    return low - room, low + room


def _axes(x: Scale, y: Scale, across: str) -> list[Markup]:
    parts = []
    for value in ticks(y.low, y.high):
        at = float(y(np.array(value)))
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=at, y2=at, class_="grid"))
        parts.append(element("text", f"{value:g}", x=LEFT - 6, y=at + 4, class_="end"))
    for value in ticks(x.low, x.high):
        at = float(x(np.array(value)))
        parts.append(element("text", f"{value:g}", x=at, y=HEIGHT - BOTTOM + 15, class_="middle"))
    parts.append(element("text", across, x=WIDTH - RIGHT, y=HEIGHT - 4, class_="end"))
    return parts


def _drawn(trace: Trace, x: Scale, y: Scale) -> list[Markup]:
    points = np.stack([x(trace.x), np.clip(y(trace.y), TOP, HEIGHT - BOTTOM)], axis=1)
    style = f"line t-{trace.tone}" + (" dashed" if trace.dashed else "")
    parts = [element("polyline", points=" ".join(f"{a:.1f},{b:.1f}" for a, b in points), class_=style)]
    if trace.dots or len(points) == 1:
        parts += [element("circle", cx=float(a), cy=float(b), r=3.5, class_=f"dot t-{trace.tone}") for a, b in points]
    return parts


def _thinned(trace: Trace) -> Trace:
    kept = np.unique(np.linspace(0, len(trace.x) - 1, min(len(trace.x), MOST_POINTS)).round().astype(int))
    return Trace(trace.label, trace.x[kept], trace.y[kept], trace.tone, trace.dashed, trace.dots)


def _in_words(trace: Trace) -> str:
    name = f"{trace.label} " if trace.label else ""
    return f"{name}from {trace.y[0]:.3g} at {trace.x[0]:g} to {trace.y[-1]:.3g} at {trace.x[-1]:g}"
