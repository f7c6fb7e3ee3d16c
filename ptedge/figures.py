"""How every plot of ptedge looks, and the one place that says what is missing where matplotlib is not installed."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ptedge.files import atomic_write

NO_MATPLOTLIB = 'matplotlib is not installed, so no plots are drawn. Install it with: pip install "ptedge[train]"'
# Okabe and Ito's palette: told apart by the colour-blind; yellow, too pale for lines, is left out
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
GREY = "#6b6b6b"
DPI = 110
STYLE: dict[Any, Any] = {
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e3e3e3",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 9,
}


def can_draw() -> bool:
    """Whether matplotlib is installed; it comes with the extra ``train`` and is not needed on a device."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return False
    return True


@contextmanager
def new_figure(width: float, height: float, title: str, subtitle: str = "") -> Iterator[Any]:
    """A figure in the house style, without pyplot and its global state.

    Args:
        width: inches.
        height: inches.
        title: above all.
        subtitle: a lighter line below it.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), dpi=DPI, layout="constrained")
        FigureCanvasAgg(figure)
        text = textwrap.fill(title, int(width * 11))
        figure.suptitle(f"{text}\n" if subtitle else text, x=0.01, ha="left", fontsize=12.5, fontweight="bold")
        if subtitle:
            lines = 1 + text.count("\n")
            below = 0.995 - (lines * 12.5 * 1.45) / 72 / height
            figure.text(0.01, below, subtitle, ha="left", va="top", fontsize=9.5, color=GREY)
        yield figure


def save(figure: Any, path: Path) -> Path:
    """Write a figure as PNG, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        figure.savefig(file, format="png")
    return path
