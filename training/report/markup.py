"""HTML made of parts: whatever is not markup already is escaped, so that no name can become a tag."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import TypeAlias


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child: TypeAlias = "str | int | float | None"
VOID = frozenset({"img", "meta", "line", "rect", "circle", "path", "polyline", "polygon"})


def element(name: str, /, *children: Child, **attributes: Child) -> Markup:
    """An element.

    Args:
        name: of the tag.
        children: :class:`Markup` as it is, other text escaped, ``None`` left out.
        attributes: values are escaped, ``None`` left out; ``_`` at the end of a name is dropped (``class_``), others
            become ``-`` (``aria_label``).
    """
    names = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    head = name + "".join(f' {key}="{html.escape(_text(value))}"' for key, value in names.items())
    if name in VOID:
        return Markup(f"<{head}>" if name in ("img", "meta") else f"<{head}/>")
    return Markup(f"<{head}>{join(children)}</{name}>")


def join(children: Iterable[Child]) -> Markup:
    """Parts one after the other."""
    parts = (child for child in children if child is not None)
    return Markup("".join(child if isinstance(child, Markup) else html.escape(_text(child)) for child in parts))


def table(heads: Sequence[Child], rows: Iterable[Sequence[Child]], caption: str) -> Markup:
    """A table whose first column names the rows; the others hold numbers.

    Args:
        heads: of the columns.
        rows: as many cells each.
        caption: what it shows.
    """
    head = element("tr", *(element("th", text, scope="col") for text in heads))
    body = [
        element("tr", element("th", row[0], scope="row"), *(element("td", cell) for cell in row[1:])) for row in rows
    ]
    content = element("table", element("caption", caption), element("thead", head), element("tbody", *body))
    # wide tables scroll in their own frame, which the keyboard can reach, never the page
    return element("div", content, class_="scroll", tabindex="0", role="region", aria_label=caption)


def number(value: object, digits: int = 3, unit: str = "") -> str:
    """A number for people; a dash for what is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return "-"
    text = f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"
    return f"{text} {unit}".rstrip()


def _text(value: Child) -> str:
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return str(value)
