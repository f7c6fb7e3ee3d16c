"""What moved, in plain words, and what to do about it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ptedge.drift.measures import split_name
from ptedge.drift.windows import Moved

PLACES = tuple(
    f"{row} {column}" for row in ("top", "middle", "bottom") for column in ("far left", "left", "right", "far right")
)
# measure -> what is said when it moved down, and up
SAID = {
    "brightness": ("pictures are darker", "pictures are brighter"),
    "contrast": ("pictures have less contrast", "pictures have more contrast"),
    "sharpness": ("pictures are less sharp", "pictures are sharper or noisier"),
    "saturation": ("colours are paler", "colours are stronger"),
    "warmth": ("colours are bluer", "colours are redder"),
    "light": ("the {} of the picture is darker beside the rest", "the {} of the picture is brighter beside the rest"),
    "detail": ("the {} of the picture shows less detail", "the {} of the picture shows more detail"),
    "boxes": ("{} is found less often", "{} is found more often"),
    "score": ("scores of {} are lower", "scores of {} are higher"),
    "size": ("boxes of {} are smaller", "boxes of {} are larger"),
    "sigma": ("sides of {} are surer", "sides of {} are less sure"),
    "entropy": ("the class of {} is surer", "the class of {} is less sure"),
}
OF_PARTS = ("light", "detail")
OF_PICTURES = ("brightness", "contrast", "sharpness", "saturation", "warmth")
CAMERA = "Look at the camera first: dirt on the lens, its direction, its focus"
PLACE = (
    "If light, weather or place are others for good: collect frames here (ptedge run --collect) and adapt the model "
    "to them"
)
WRONG = "If this is usual here: ptedge drift BUNDLE FRAMES --learn takes it for the new reference"


def describe(moved: Moved, class_names: Sequence[str]) -> str:
    """One sentence on what moved, by how much.

    Args:
        moved: what.
        class_names: by label.
    """
    kind, number = split_name(moved.name)
    said = SAID[kind][moved.side == "high"]
    if number is not None:
        said = said.format(PLACES[number] if kind in OF_PARTS else class_names[number])
    low, high = moved.usual
    return f"{said}: {moved.now:.3g} on average, usual is {low:.3g} to {high:.3g}"


def to_json(moved: Moved, class_names: Sequence[str]) -> dict[str, Any]:
    """The same as plain values: ``measure``, ``of`` (class or part of the picture), ``side``, numbers, ``text``.

    Args:
        moved: what.
        class_names: by label.
    """
    kind, number = split_name(moved.name)
    of = None if number is None else PLACES[number] if kind in OF_PARTS else class_names[number]
    return {
        "measure": kind,
        "of": of,
        "side": moved.side,
        "now": round(moved.now, 4),
        "usual": list(moved.usual),
        "share": round(moved.share, 4),
        "text": describe(moved, class_names),
    }


def advice(moved: Collection[Moved]) -> str:
    """What to do, in a sentence or two; empty where nothing moved.

    Args:
        moved: all that did.
    """
    kinds = {split_name(one.name)[0] for one in moved}
    if not kinds:
        return ""
    if kinds & {*OF_PARTS, *OF_PICTURES}:
        return f"{CAMERA}. {PLACE}. {WRONG}"
    return f"{PLACE}. {WRONG}"
