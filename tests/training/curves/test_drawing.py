"""How plots of training are drawn."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptedge.training.curves.drawing import Line, Panel, draw_panels, draw_safely, relative
from ptedge.training.curves.read import Curves, TripMark


def test_relative__to_the_first_in_per_cent() -> None:
    assert relative(np.array([4.0, 5.0, 2.0])).tolist() == [0.0, 25.0, -50.0]


def test_draw_safely__names_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    assert draw_safely(lambda folder: [folder / "a.png"], tmp_path) == [tmp_path / "a.png"]
    assert draw_safely(lambda folder: [folder / str(1 / 0)], tmp_path) == []
    assert capsys.readouterr().err == f"no plots in {tmp_path}: ZeroDivisionError: division by zero\n"


def test_draw_panels__those_with_data_and_each_trip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    figures: list[Any] = []
    monkeypatch.setattr("ptedge.training.curves.drawing.save", lambda figure, path: figures.append(figure) or path)
    lines = [{"step": step, "loss": 2.0 * step} for step in (1, 2, 3)]
    run = Curves("run", lines, [TripMark(2, "max boxes ratio: back to 0"), TripMark(3, "finite: stop")])
    panels = [Panel("Loss", "nats", (Line("loss"), Line("none"))), Panel("Nothing", "", (Line("none"),))]
    draw_panels([run], panels, "Title", "", tmp_path / "x.png")
    (ax,) = figures[0].axes
    series, *trips = (line.get_xydata().tolist() for line in ax.lines)
    assert ax.get_title(loc="left") == "Loss" and series == [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]
    assert [trip[0][0] for trip in trips] == [2.0, 3.0]
    told = [text.get_text() for text in figures[0].legends[0].texts]
    assert told == ["guard 1: step 2, max boxes ratio: back to 0", "guard 2: step 3, finite: stop"]
    assert draw_panels([run], panels[1:], "Title", "", tmp_path / "x.png") is None
