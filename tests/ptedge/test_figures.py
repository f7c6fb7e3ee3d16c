"""What all plots share."""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import pytest

from ptedge.figures import can_draw, new_figure, save


def test_can_draw__not_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert not can_draw()


def test_new_figure__is_saved_at_its_size(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    with new_figure(4, 3, "Title", "below it") as figure:
        path = save(figure, tmp_path / "plots" / "a.png")
    assert can_draw() and cv2.imread(str(path)).shape == (330, 440, 3)
    assert [text.get_text() for text in figure.texts] == ["Title\n", "below it"]
