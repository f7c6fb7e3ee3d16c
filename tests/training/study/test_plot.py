"""Plots of a study: what stands where is what rows declare, whatever they are called."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from made_study import DATA_TOML, ROWS_TOML, load_text, made_result, swept

from ptedge.figures import COLOURS
from ptedge.training.study.plot import NO_SWEEP, curves_of, plot_study, plot_study_safely
from ptedge.training.study.result import Best, Result, Scores, renewed


def made_results() -> list[Result]:
    """Two seeds of a study over a threshold and over tau, with a row that adapts from elsewhere."""
    results = []
    for seed in (0, 1):
        results.append(made_result("source only", seed, 0.7 + seed / 100, kind="train", roles=("source",)))
        results.append(made_result("PT", seed, 0.85, kind="adapt", sweep=swept("tau", 0.5), roles=("beside",)))
        for t in (0.5, 0.7, 0.9):
            ap = 1 - abs(t - 0.7) - seed / 10
            results.append(made_result(f"mean teacher {t}", seed, ap, sweep=swept("score threshold", t)))
            results.append(made_result(f"PT, tau {t}", seed, 0.84, sweep=swept("tau", t)))
        results.append(made_result("mean teacher 0.7 from a weak source model", seed, 0.2))
    return results


def is_picture(path: Path) -> bool:
    picture = cv2.imread(str(path))
    return picture is not None and min(picture.shape[:2]) > 200 and len(np.unique(picture)) > 20


def test_curves_of__a_point_has_the_seeds_of_one_row() -> None:
    curves = curves_of(made_results())
    # two rows are called "mean teacher 0.7": only the one that declares the point stands on it, with a seed each
    thresholds = curves["score threshold"]["source_free"]
    assert list(thresholds) == [0.5, 0.7, 0.9]
    assert thresholds[0.7] == pytest.approx([100.0, 90.0]) and thresholds[0.5] == pytest.approx([80.0, 70.0])
    # the default stands in the sweep though no number is in its name, and another kind is another curve
    assert curves["tau"]["adapt"] == {0.5: [85.0, 85.0]} and set(curves["tau"]["source_free"]) == {0.5, 0.7, 0.9}
    assert set(curves) == {"score threshold", "tau"}


def test_curves_of__the_last_checkpoint_counts() -> None:
    result = made_result("PT", 0, 0.5, chosen=Scores(0.7, 0.2, 0.3), best=Best("last", 0.9, 3), sweep=swept("tau", 1))
    assert curves_of([result]) == {"tau": {"source_free": {1: [50.0]}}}


def test_curves_of__names_mean_nothing() -> None:
    assert curves_of([made_result("mean teacher 0.7", 0, 0.5), made_result("tau 0.3", 0, 0.5)]) == {}
    odd = [made_result("blue", seed, 0.5 + seed, sweep=swept("tau", 0.3)) for seed in (0, 1)]
    assert curves_of(odd) == {"tau": {"source_free": {0.3: [50.0, 150.0]}}}


def test_plot_study__variants_and_sweeps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    files = plot_study(made_results(), tmp_path)
    assert [file.name for file in files] == ["study.png", "sweeps.png"] and all(map(is_picture, files))
    assert plot_study([], tmp_path) == [] and capsys.readouterr().err == ""


def test_plot_study__a_study_without_sweeps_says_what_to_add(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    study = load_text(tmp_path, DATA_TOML + ROWS_TOML)  # as before rows had sweeps
    results = [renewed(made_result(row.name, 0, 0.5), study) for row in study.row]
    assert plot_study_safely(results, tmp_path / "one") == [tmp_path / "one" / "study.png"]
    assert capsys.readouterr().err == f"{NO_SWEEP}\n" and 'sweep = {axis = "tau", value = 0.25}' in NO_SWEEP


def test_plot_study__rings_where_model_pt_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    dots: dict[str, list[float]] = {}

    def keep(figure: object, path: Path) -> Path:
        for line in figure.axes[0].lines:  # type: ignore[attr-defined]
            dots.setdefault(f"{line.get_marker()} {line.get_markerfacecolor()}", []).extend(line.get_xdata())
        return path

    monkeypatch.setattr("ptedge.training.study.plot.save", keep)
    other = made_result("b", 0, 0.5, chosen=Scores(0.75, 0.2, 0.3), best=Best("step_000004", 0.875, 3))
    plot_study([made_result("a", 0, 0.25), other], tmp_path)
    assert dots[f"o {COLOURS[0]}"] == [25.0, 50.0] and dots["o white"] == [75.0] and dots[f"x {COLOURS[3]}"] == [87.5]


def test_plot_study__references_by_role_and_sweeps_by_axis(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    labels: dict[str, list[str]] = {}

    def keep(figure: object, path: Path) -> Path:
        axes = figure.axes  # type: ignore[attr-defined]
        labels[path.name] = [ax.get_xlabel() for ax in axes]
        labels[f"legend of {path.name}"] = [
            t.get_text() for ax in axes if ax.get_legend() for t in ax.get_legend().texts
        ]
        return path

    monkeypatch.setattr("ptedge.training.study.plot.save", keep)
    plot_study([*made_results(), made_result("labels", 0, 0.9, kind="oracle", roles=("oracle",))], tmp_path)
    assert labels["study.png"] == ["AP50 (%); dashed: median of source only (grey) and labels (green)"]
    assert labels["sweeps.png"] == ["tau", "score threshold"]
    assert labels["legend of sweeps.png"] == [
        "PT",
        "with source",  # one point has no spread
        "source-free: spread 0.0",
        "PT",
        "source-free: spread 20.0",
    ]
