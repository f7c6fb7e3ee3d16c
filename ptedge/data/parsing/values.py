"""Single values of annotations: a number, a flag, an id, a name; what does not fit is ``None``, never a guess."""

from __future__ import annotations

import math
import re

# no image is a million pixels wide, so such a number is an accident; float32 keeps a 16th of a pixel below it
LARGEST = 1e6

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_NO = frozenset({"", "0", "false", "no", "none", "unspecified"})
_YES = frozenset({"1", "true", "yes"})

Box = tuple[float, float, float, float]


def number(value: object) -> float | None:
    """A finite number of at most :data:`LARGEST`, given as one or as text in the usual notation."""
    if isinstance(value, str):
        text = value.strip()
        value = float(text) if len(text) < 64 and _NUMBER.fullmatch(text) else None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if -LARGEST <= value <= LARGEST else None  # false for NaN, too


def is_number_text(text: str) -> bool:
    """Whether a column of a text file is a number; ``nan`` and ``inf``, which broken programs write, count as one."""
    return bool(_NUMBER.fullmatch(text)) or text.lstrip("+-").lower() in {"nan", "inf", "infinity"}


def number_box(values: object) -> Box | None:
    """Four numbers, each as :func:`number` has them."""
    if not isinstance(values, (list, tuple)) or len(values) != 4:
        return None
    a, b, c, d = (number(value) for value in values)
    return None if a is None or b is None or c is None or d is None else (a, b, c, d)


def outline_box(points: object) -> Box | None:
    """The box x1, y1, x2, y2 around the vertices [x, y] of a polygon."""
    if not isinstance(points, (list, tuple)) or not points:
        return None
    xs, ys = [], []
    for point in points:
        # BDD100k's vertices may have a third value
        if not isinstance(point, (list, tuple)) or len(point) < 2:
            return None
        x, y = number(point[0]), number(point[1])
        if x is None or y is None:
            return None
        xs.append(x)
        ys.append(y)
    return min(xs), min(ys), max(xs), max(ys)


def flag(value: object) -> bool | None:
    """A yes or no: 0, 1, a boolean, either as text or alone in a list; nothing at all is no."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None:
        return False
    if isinstance(value, str):
        text = value.strip().lower()
        return False if text in _NO else True if text in _YES else None
    if isinstance(value, (bool, int, float)) and value in (0, 1):
        return bool(value)
    return None


def pixels(value: object) -> int | None:
    """A width or height in pixels; 0 where there is none."""
    if value is None or value == "":
        return 0
    length = number(value)
    if length is None or length < 0 or not math.isclose(length, round(length), abs_tol=1e-6):
        return None
    return round(length)


def entry_id(value: object) -> int | str | None:
    """An id by which entries find each other: 7, 7.0 and "7" are one id."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, int):
        return value
    if isinstance(value, str):
        text = value.strip()
        return int(text) if _WHOLE.fullmatch(text) else text or None
    return None


def name_text(value: object) -> str | None:
    """A class or file name: text that is not empty, or a whole number; halves of characters become U+FFFD."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        return None
    return value.strip().encode("utf-8", "replace").decode("utf-8")


def shown(value: object, most: int = 80) -> str:
    """A value of an annotation for a message: short, and without what a terminal cannot print."""
    try:
        return repr(value[:most] if isinstance(value, str) else value)[: most + 2]
    except RecursionError:
        return f"a {type(value).__name__}, nested deep"
