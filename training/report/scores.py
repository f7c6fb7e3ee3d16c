"""What labels say: average precision before and after, signed errors of the sides, truth of sigma."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .charts import HEIGHT, WIDTH, Trace, chart, figure, key, svg
from .gather import table_of
from .markup import Markup, element, number, table

SIDES = ("x1", "y1", "x2", "y2")
SIDE_NAMES = {"x1": "left", "y1": "top", "x2": "right", "y2": "bottom"}
LEVELS = (50, 68, 90, 95)  # per cent of a Gaussian whose intervals are checked
Scores = Mapping[str, Any]


def score_table(scores: Mapping[str, Scores]) -> Markup:
    """Average precision of each model.

    Args:
        scores: by the model's title, as ``ptedge eval --json`` prints them.
    """
    rows = []
    for title, values in scores.items():
        shares = [
            number(100 * values[name], 1) if _is_number(values.get(name)) else "-" for name in ("AP50", "AP75", "AP")
        ]
        rows.append((title, *shares, number(values.get("boxes")), number(values.get("images"))))
    rules = dict.fromkeys(str(values["convention"]) for values in scores.values() if values.get("convention"))
    caption = "Average precision on labelled frames, in %" + (f"; convention: {', '.join(rules)}" if rules else "")
    return table(("model", "AP50", "AP75", "AP", "boxes", "images"), rows, caption)


def side_table(scores: Mapping[str, Scores]) -> Markup | None:
    """Offset, spread and sigma of each side; ``None`` where no model has them."""
    rows = []
    for title, values in scores.items():
        for side in SIDES:
            of = table_of(table_of(values, "sides"), side)
            if _is_number(of.get("offset")):
                shares = (
                    f"{100 * of['offset']:+.1f}",
                    number(_percent(of, "spread"), 1),
                    number(_percent(of, "sigma"), 1),
                )
                rows.append((f"{SIDE_NAMES[side]} ({side}), {title}", *shares))
    heads = ("side", "offset", "spread", "sigma")
    return table(heads, rows, "Signed errors of box sides, % of the box's width or height") if rows else None


def side_drawing(title: str, tone: str, values: Scores) -> Markup | None:
    """A typical box: the labelled one, and where its sides are found, with their spread and sigma.

    Args:
        title: of the model.
        tone: its colour.
        values: its scores.
    """
    sides = {side: table_of(table_of(values, "sides"), side) for side in SIDES}
    if not all(_is_number(of.get(name)) for of in sides.values() for name in ("offset", "spread", "sigma")):
        return None
    left, top, wide, high = 100.0, 45.0, 160.0, 120.0  # the labelled box, in pixels of the drawing
    parts = [element("rect", x=left, y=top, width=wide, height=high, class_="truth")]
    at = {"x1": left, "y1": top, "x2": left + wide, "y2": top + high}
    place = {side: at[side] + float(of["offset"]) * (wide if side[0] == "x" else high) for side, of in sides.items()}
    for side, of in sides.items():
        across = side[0] == "x"
        long = wide if across else high
        for share, style in ((float(of["sigma"]), "sigma"), (float(of["spread"]), "spread")):
            half = 0 if not np.isfinite(share) else min(share * long, 90.0)
            if style == "sigma":
                parts.append(_band(across, place[side], half, (left, top, wide, high), f"band t-{tone}"))
            else:
                parts.append(_whisker(across, place[side], half, (left, top, wide, high)))
    corners = f"{place['x1']:.1f},{place['y1']:.1f} {place['x2']:.1f},{place['y1']:.1f} "
    corners += f"{place['x2']:.1f},{place['y2']:.1f} {place['x1']:.1f},{place['y2']:.1f}"
    parts.append(element("polygon", points=corners, class_=f"line t-{tone}"))
    alt = f"Typical box of {title}, offsets of its sides: "
    alt += ", ".join(f"{SIDE_NAMES[side]} {100 * float(of['offset']):+.1f} %" for side, of in sides.items())
    legend = [key("labelled box", "quiet"), key(f"found by: {title}", tone)]
    legend += [key("band: sigma", f"{tone} faint"), key("bar: spread of the errors", "ink")]
    return figure(f"Where the sides are found: {title}", "", svg(parts, alt), legend)


def coverage_chart(scores: Mapping[str, tuple[str, Scores]]) -> Markup | None:
    """How many sides lie within the intervals that sigma promises.

    Args:
        scores: tone and scores by the model's title.
    """
    straight = np.array([50.0, 95.0])
    traces = [Trace("if sigma is true", straight, straight, "quiet", dashed=True)]
    for title, (tone, values) in scores.items():
        sigma = table_of(values, "sigma")
        points = [
            (level, 100 * sigma[f"coverage_{level}"]) for level in LEVELS if _is_number(sigma.get(f"coverage_{level}"))
        ]
        if points:
            x, y = np.array(points, np.float64).T
            traces.append(Trace(title, x, y, tone, dots=True))
    if len(traces) == 1:
        return None
    return chart(
        "Is sigma true?", "% of sides found within", traces, across="% promised", span=(50, 100), low=0, high=100
    )


def sigma_sentence(title: str, values: Scores) -> str:
    """What the coverage says, in words."""
    share = table_of(values, "sigma").get("coverage_68")
    if not isinstance(share, (int, float)):
        return f"{title.capitalize()}: no sigma was measured."
    if share < 0.63:
        verdict = "sigma is too small, boxes are less sure than it says"
    else:
        verdict = "sigma is too large, boxes are surer than it says" if share > 0.73 else "sigma is about true"
    return f"{title.capitalize()}: {100 * share:.0f} % of the sides lie within one sigma, where 68 % should: {verdict}."


def _band(across: bool, at: float, half: float, box: tuple[float, float, float, float], style: str) -> Markup:
    left, top, wide, high = box
    if across:
        return element("rect", x=at - half, y=top, width=2 * half, height=high, class_=style)
    return element("rect", x=left, y=at - half, width=wide, height=2 * half, class_=style)


def _whisker(across: bool, at: float, half: float, box: tuple[float, float, float, float]) -> Markup:
    left, top, wide, high = box
    x, y = left + wide / 2, top + high / 2
    if across:
        return element("line", x1=at - half, x2=at + half, y1=y, y2=y, class_="whisker")
    return element("line", x1=x, x2=x, y1=at - half, y2=at + half, class_="whisker")


def _percent(of: Mapping[str, Any], name: str) -> float | None:
    return 100 * float(of[name]) if _is_number(of.get(name)) else None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


__all__ = ["HEIGHT", "WIDTH", "coverage_chart", "score_table", "side_drawing", "side_table", "sigma_sentence"]
