"""PNG files of runs that say something."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from made_run import is_picture, write_run

from ptedge.figures import NO_MATPLOTLIB
from ptedge.training.curves.drawing import Panel
from ptedge.training.curves.plots import plot_losses, plot_run_safely, plot_runs
from ptedge.training.curves.quality import QualityPairs
from ptedge.training.curves.read import Curves

NAMES = {"losses.png", "pseudo_boxes.png", "entropy.png", "agreement.png", "anchors.png", "run.png", "quality.png"}


def test_plot_runs__two_of_one_name(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    rng = np.random.default_rng(0)
    run, long = write_run(tmp_path / "a" / "run"), write_run(tmp_path / "b" / "run", 70)
    iou = rng.uniform(0.1, 1, 40)
    QualityPairs(iou, iou**2, 0.2 - 0.1 * iou, 3).write(run / "val_boxes.json")
    found = plot_runs([run, long], tmp_path / "out")
    assert {path.name for path in found} == NAMES and all(map(is_picture, found))


def test_plot_run_safely__says_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plot_run_safely(tmp_path) == []
    assert capsys.readouterr().err.startswith(f"no plots in {tmp_path / 'plots'}: ")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert plot_run_safely(write_run(tmp_path / "run")) == []
    assert capsys.readouterr().err == f"{NO_MATPLOTLIB}\n"


def test_plot_losses__one_panel_a_term_that_was_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Panel] = []
    keep: Callable[..., None] = lambda runs, panels, *rest, **more: drawn.extend(panels)  # noqa: E731
    monkeypatch.setattr("ptedge.training.curves.plots.draw_panels", keep)
    line = {"loss": 1.0, "rpn_cls": 1.0, "target_rpn_cls": 1.0, "target_roi_box": 1.0, "align_image_class": 1.0}
    line["labelled_roi_cls"] = line["roi_cls"] = 1.0
    plot_losses([Curves("run", [{"step": 1, **line}])], tmp_path / "losses.png")
    shown = {panel.title: (panel.unit, [line.key for line in panel.lines]) for panel in drawn}
    assert shown["RPN objectness"] == ("cross-entropy (nats)", ["rpn_cls", "target_rpn_cls"])
    assert shown["ROI classes"][1] == ["roi_cls", "labelled_roi_cls"]
    assert shown["ROI boxes, target"] == ("neg. log-likelihood (nats)", ["target_roi_box"])
    assert shown["Classes in the picture"] == ("loss", ["align_image_class"])
    assert shown["RPN boxes"] == ("neg. log-likelihood (nats)", [])  # draw_panels leaves it out
