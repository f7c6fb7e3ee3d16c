"""Curves read from metrics.jsonl, the pairs behind the quality plot, and PNG files that say something."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from training_shell import Shell, summary

from ptedge.data.dataset import Sample
from ptedge.detections import Detections
from ptedge.errors import ArtifactError, InputError
from ptedge.training.curves.plots import NOTE, plot_run_safely, plot_runs, plot_study
from ptedge.training.curves.quality import QualityPairs, quality_pairs, read_quality
from ptedge.training.curves.read import events_of, read_curves, running_median, scalars
from ptedge.training.study.plot import ap_of, sweep_of

NAMES = {"losses.png", "pseudo_boxes.png", "entropy.png", "agreement.png", "anchors.png", "run.png", "quality.png"}
TRIP = {"step": 4, "limit": "max_boxes_ratio", "value": 6.0, "allowed": 5.0, "action": "rollback", "back_to": 2}


def write_run(folder: Path, count: int = 8) -> Path:
    """A run of source-free adaptation as the loop logs it."""
    folder.mkdir(parents=True)
    lines: list[dict[str, Any]] = []
    for step in range(1, count + 1):
        line: dict[str, Any] = {"step": step, "loss": 1 / step, "target_rpn_cls": 0.1, "lr": 1e-4, "grad_norm": 5.0}
        line |= {"pseudo_boxes": 5.0, "class_entropy": 0.3, "box_variance": 0.5, "class_weight": 0.6, "box_weight": 0.4}
        line["anchors"] = [[16.0 + step, 16.0], [32.0, 30.0]]
        line["monitor"] = {"boxes": 4.0, "classes": [0.5, 0.5], "source_agreement": 0.9, "sigma": None}
        if step == 4:
            line["guard"] = TRIP
        lines.append(line)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "metrics.jsonl").write_text(text + '{"step": 9, "lo', "utf-8")  # killed while it wrote
    return folder


def test_read_curves__series_events_and_a_torn_line(tmp_path: Path) -> None:
    curves = read_curves(write_run(tmp_path / "run"))
    assert curves.name == "run" and len(curves.lines) == 8
    loss = curves.series("loss")
    assert loss.steps.tolist() == list(range(1, 9)) and loss.values[3] == 0.25
    assert curves.series("monitor/source_agreement").values.tolist() == [0.9] * 8
    assert len(curves.series("monitor/sigma")) == 0 and len(curves.series("nothing")) == 0
    assert [(event.step, event.text) for event in curves.events] == [(4, "max boxes ratio: back to 2")]
    steps, shapes = curves.anchors()
    assert steps.shape == (8,) and shapes.shape == (8, 2, 2) and shapes[-1, 0].tolist() == [24.0, 16.0]


def test_series__box_entropy_from_the_variance(tmp_path: Path) -> None:
    found = read_curves(write_run(tmp_path / "run")).series("box_entropy")
    assert found.values[0] == pytest.approx(0.5 * math.log(2 * math.pi * math.e * 0.5))


def test_series__leaves_out_what_is_not_finite(tmp_path: Path) -> None:
    text = '{"step": 1, "loss": NaN}\n{"step": 2, "loss": 3}\n[1]\n{"loss": 4}\n'
    (tmp_path / "metrics.jsonl").write_text(text, "utf-8")
    found = read_curves(tmp_path).series("loss")
    assert found.steps.tolist() == [2] and found.values.tolist() == [3]


def test_read_curves__no_run_and_no_steps(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Give the folder of a run"):
        read_curves(tmp_path / "none")
    (tmp_path / "metrics.jsonl").write_text("", "utf-8")
    with pytest.raises(ArtifactError, match="no logged step"):
        read_curves(tmp_path)


def test_scalars__plain_numbers_only() -> None:
    line = {"step": 3, "a": 1, "flag": True, "list": [1.0], "monitor": {"b": 2.0, "c": None}, "guard": TRIP}
    assert scalars(line) == {"a": 1.0, "monitor/b": 2.0}
    assert events_of({"step": 3}) == [] and events_of({"step": 3, "guard": None}) == []


def test_running_median__by_hand() -> None:
    assert running_median(np.array([1.0, 9.0, 2.0, 3.0]), 3).tolist() == [5.0, 2.0, 3.0, 2.5]
    assert running_median(np.array([4.0, 1.0]), 1).tolist() == [4.0, 1.0]


def detections(boxes: list[list[float]], labels: list[int], scores: list[float]) -> Detections:
    n = len(boxes)
    sigma = np.full((n, 4), 2.0, np.float32)
    array = np.array(boxes, np.float32).reshape(-1, 4)
    zeros = np.zeros(n, np.float32)
    return Detections(array, np.array(scores, np.float32), np.array(labels, np.int64), sigma, zeros)


def sample(boxes: list[list[float]], labels: list[int], ignore: list[bool]) -> Sample:
    array = np.array(boxes, np.float32).reshape(-1, 4)
    return Sample(Path("x.png"), 100, 100, array, np.array(labels, np.int64), np.array(ignore, bool), 1)


def test_quality_pairs__by_hand(tmp_path: Path) -> None:
    found = detections(
        [
            [0, 0, 10, 10],  # the first box itself
            [0, 0, 10, 5],  # half of it
            [0, 0, 10, 10],  # right place, other class
            [52, 52, 60, 60],  # in an ignore region
            [80, 80, 90, 90],  # nothing there
        ],
        [0, 0, 1, 0, 0],
        [0.9, 0.5, 0.8, 0.4, 0.3],
    )
    labelled = sample([[0, 0, 10, 10], [50, 50, 70, 70]], [0, 0], [False, True])
    pairs = quality_pairs([found, detections([], [], [])], [labelled, labelled])
    np.testing.assert_allclose(pairs.iou, [1.0, 0.5])
    np.testing.assert_allclose(pairs.score, [0.9, 0.5], rtol=1e-6)
    np.testing.assert_allclose(pairs.sigma, [2 / 10, 2 / math.sqrt(50)], rtol=1e-6)
    assert pairs.elsewhere == 2
    assert pairs.rank_score == pytest.approx(1.0) and pairs.rank_sigma == pytest.approx(-1.0)
    pairs.write(tmp_path / "boxes.json")
    again = read_quality(tmp_path / "boxes.json")
    np.testing.assert_allclose(again.sigma, pairs.sigma, atol=1e-6)
    assert again.elsewhere == 2 and len(again) == 2


def test_quality_pairs__nothing_found() -> None:
    pairs = quality_pairs([detections([], [], [])], [sample([], [], [])])
    assert len(pairs) == 0 and pairs.rank_score is None


def is_picture(path: Path) -> bool:
    picture = cv2.imread(str(path))
    return picture is not None and min(picture.shape[:2]) > 200 and len(np.unique(picture)) > 20


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
    assert capsys.readouterr().err == f"{NOTE}\n"


def study_rows() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for seed in range(2):
        rows.append({"variant": "source only, strong", "seed": seed, "kind": "train", "AP50": 0.7 + seed / 100})
        rows.append({"variant": "PT", "seed": seed, "kind": "adapt", "AP50": 0.85, "chosen": {"AP50": 0.86}})
        for t in (0.5, 0.7, 0.9):
            row = {"variant": f"mean teacher {t}", "seed": seed, "kind": "adapt", "AP50": 1 - abs(t - 0.7)}
            rows += [row, {"variant": f"PT, tau {t}", "seed": seed, "kind": "source_free", "AP50": 0.84}]
    return [*rows, {"variant": "broken", "seed": 0, "kind": "adapt", "AP50": None}]


def test_plot_study__table_and_sweeps(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    files = plot_study(study_rows(), tmp_path)
    assert [file.name for file in files] == ["study.png", "thresholds.png"] and all(map(is_picture, files))
    assert plot_study(study_rows()[:1], tmp_path / "one") == [tmp_path / "one" / "study.png"]
    assert plot_study([], tmp_path) == []


def test_study_plot__reads_rows_and_names() -> None:
    assert ap_of({"AP50": 0.5}) == 50 and ap_of({"AP50": None}) is None and ap_of({"AP50": 1}, "chosen") is None
    assert sweep_of("mean teacher 0.7, source-free") == ("threshold", 0.7)
    assert sweep_of("PT, tau 0.25") == ("tau", 0.25) and sweep_of("PT tau 1") == ("tau", 1.0)
    assert sweep_of("PT") is None and sweep_of("efficientnet_lite0 mean teacher") is None
    assert sweep_of("lambda 0.5") is None


def test_plot__command(ptedge: Shell, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    from click.testing import CliRunner

    from ptedge.cli import cli

    run = write_run(tmp_path / "run")
    result = CliRunner().invoke(cli, ["plot", str(run)])
    # no labelled data, no picture of quality
    assert {Path(line) for line in result.output.splitlines()} == {run / "plots" / n for n in NAMES - {"quality.png"}}
    assert all(map(is_picture, (run / "plots").iterdir()))
    (tmp_path / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in study_rows()), "utf-8")
    result = CliRunner().invoke(cli, ["plot", str(tmp_path), "--out", str(tmp_path / "study")])
    assert result.exit_code == 0 and (tmp_path / "study" / "study.png").is_file()
    assert CliRunner().invoke(cli, ["plot", str(run), str(run)]).exit_code == 2
    status, err = ptedge("plot", tmp_path / "plots", sets=[])
    assert status == 1 and "has no metrics.jsonl" in err and not (tmp_path / "plots" / "plots").exists()


def test_events__without_doubles_after_a_break(
    ptedge: Shell,
    pretrained: Path,
    target_frames: Path,
    source_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed (extra: train)")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    run, drawn = tmp_path / "run", []
    monkeypatch.setattr("ptedge.training.curves.plots.plot_run_safely", drawn.append)
    words = ("--target", target_frames, "--source-free", "--val", source_data)
    assert ptedge.adapt(pretrained, run, *words, steps=2, sets=("curves=true",))[0] == 0
    # steps that were logged after the last checkpoint, as if the run had been killed at step 4
    from ptedge.training.curves.events import EventLog

    with EventLog(run, 2) as lost:
        lost.log({"step": 3, "loss": 100.0})
    status, err = ptedge.adapt(pretrained, run, *words, "--resume", steps=3, sets=("curves=true",))
    assert status == 0, err
    accumulator = EventAccumulator(str(run / "events"))
    accumulator.Reload()
    tags = accumulator.Tags()["scalars"]
    assert {"loss/loss", "loss/target_roi_box", "run/lr", "monitor/pseudo_boxes", "anchors/0_width"} <= set(tags)
    scalar = accumulator.Scalars("loss/loss")
    assert [event.step for event in scalar] == [1, 2, 3] and scalar[-1].value < 100
    assert drawn == [run, run] and (run / "val_boxes.json").is_file()
    assert summary(run)["val"]["images"] == 6


def test_event_log__a_trip_is_text_and_steps_taken_back_are_purged(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed (extra: train)")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from ptedge.training.curves.events import EventLog

    with EventLog(tmp_path, 0) as log:
        for line in ({"step": 2, "loss": 1.0}, {"step": 4, "loss": 9.0, "guard": TRIP}, {"step": 3, "loss": 2.0}):
            log.log(line)
    accumulator = EventAccumulator(str(tmp_path / "events"))
    accumulator.Reload()
    assert [(event.step, event.value) for event in accumulator.Scalars("loss/loss")] == [(2, 1.0), (3, 2.0)]
    assert "guards/text_summary" in accumulator.Tags()["tensors"]
    assert accumulator.Tags()["scalars"] == ["loss/loss"]


def test_event_log__begun_late_catches_up(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed (extra: train)")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from ptedge.training.curves.events import EventLog

    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "loss": 5.0}\n{"step": 2, "loss": 4.0}\n', "utf-8")
    with EventLog(tmp_path, 2) as log:  # resumed on a machine that has tensorboard
        log.log({"step": 3, "loss": 3.0})
    accumulator = EventAccumulator(str(tmp_path / "events"))
    accumulator.Reload()
    assert [(event.step, event.value) for event in accumulator.Scalars("loss/loss")] == [(1, 5.0), (2, 4.0), (3, 3.0)]


def test_event_log__a_full_disk_ends_events_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed (extra: train)")
    from ptedge.training.curves.events import EventLog

    def full() -> None:
        raise OSError(28, "No space left on device")

    with EventLog(tmp_path, 0) as log:
        monkeypatch.setattr(log.writer, "flush", full)
        log.log({"step": 1, "loss": 1.0})
        log.log({"step": 2, "loss": 1.0})
        assert log.writer is None
    assert capsys.readouterr().err.count("no more events are written") == 1


def test_events__missing_package_is_one_note(
    ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("torch.utils.tensorboard", "tensorboard", "matplotlib"):
        monkeypatch.setitem(sys.modules, name, None)
    words = ("--target", target_frames, "--source-free")
    status, err = ptedge.adapt(pretrained, tmp_path / "run", *words, sets=("curves=true",))
    assert status == 0
    assert err.count("tensorboard is not installed") == 1 and err.count("matplotlib is not installed") == 1
    assert err.count('pip install "ptedge[train]"') == 2
    assert not (tmp_path / "run" / "events").exists() and not (tmp_path / "run" / "plots").exists()
