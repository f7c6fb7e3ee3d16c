"""TensorBoard events of a run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from made_run import TRIP
from tiny_detector import write_pictures
from training_shell import Shell, lines, summary

from ptedge.training.curves.events import tag_of
from ptedge.training.curves.terms import LOSSES, OF_THE_RUN


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


def test_event_log__a_step_logged_again_counts_once(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is not installed (extra: train)")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    from ptedge.training.curves.events import EventLog

    with EventLog(tmp_path, 0) as log:
        for line in ({"step": 1, "loss": 1.0}, {"step": 2, "loss": 9.0}, {"step": 2, "loss": 2.0}):
            log.log(line)
    accumulator = EventAccumulator(str(tmp_path / "events"))
    accumulator.Reload()
    assert [(event.step, event.value) for event in accumulator.Scalars("loss/loss")] == [(1, 1.0), (2, 2.0)]


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


def test_tag_of__under_the_heading_it_belongs_to() -> None:
    assert tag_of("target_roi_box") == "loss/target_roi_box" and tag_of("align_image_class") == "loss/align_image_class"
    assert tag_of("grad_norm") == "run/grad_norm" and tag_of("pseudo_boxes") == "monitor/pseudo_boxes"
    assert tag_of("monitor/sigma") == "monitor/sigma"


def test_terms__every_term_that_a_run_logs_is_known(
    ptedge: Shell, pretrained: Path, source_data: Path, target_frames: Path, tmp_path: Path
) -> None:
    few = write_pictures(tmp_path / "few", 3, seed=5)
    words = ("--target", target_frames, "--source", source_data, "--labels", few)
    sets = ("align.method=ccr", "align.local_stage=1")
    status, err = ptedge.adapt(pretrained, tmp_path / "run", *words, steps=1, sets=sets)
    assert status == 0, err
    (line,) = lines(tmp_path / "run")
    taught = ("model.roi_channels=4", "model.roi_hidden=8", "distill.weight=1", "distill.hidden=16")
    status, err = ptedge.train(source_data, tmp_path / "taught", steps=1, sets=taught)
    assert status == 0, err
    (trained,) = lines(tmp_path / "taught")
    assert set(line) | set(trained) >= LOSSES
    assert set(trained) <= LOSSES | OF_THE_RUN | {"step"}
    # whatever else is logged is a number of the run, or of what the teacher says
    pseudo = {"pseudo_boxes", "pseudo_foreground", "pseudo_score", "class_entropy", "box_variance"}
    weights = {"class_weight", "class_weight_max", "box_weight", "box_weight_max"}
    assert set(line) - LOSSES - OF_THE_RUN == {"step", "anchors", "monitor", *pseudo, *weights}
