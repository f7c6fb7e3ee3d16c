"""``ptedge.train`` and ``ptedge.adapt``: the commands' way into a run; the runs themselves are tested beside these."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

import ptedge
from ptedge.errors import ConfigError, OutputError
from ptedge.training import api
from ptedge.training.api import RunInterruptedError
from ptedge.training.loop import LoopResult

FEW = {"optim.steps": 1, "optim.batch": 2, "workers": 0, "curves": False}
MODEL = {"model.weights": "none", "model.input_size": [64, 96]}


def test_train_and_adapt__give_runs(
    source_data: Path, target_frames: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = ptedge.train(source_data, out=tmp_path / "source", val=source_data, settings={**FEW, **MODEL}, quiet=True)
    assert capsys.readouterr() == ("", "")
    assert (first.model, first.steps, first.summary["command"]) == (tmp_path / "source" / "model.pt", 1, "train")
    assert "AP50" in first.summary["val"]
    strings = [f"{key}={value}".lower() for key, value in FEW.items()]
    run = ptedge.adapt(first.model, str(target_frames), source_free=True, out=str(tmp_path / "free"), settings=strings)
    assert (run.out, run.summary["kind"]) == (tmp_path / "free", "source_free")
    assert "done after 1 steps" in capsys.readouterr().err
    with pytest.raises(OutputError, match="already holds a run"):
        ptedge.train(source_data, out=tmp_path / "source", settings={**FEW, **MODEL}, quiet=True)


def test_adapt__needs_one_of_both_ways(tmp_path: Path) -> None:
    for both in ({}, {"source": "a", "source_free": True}):
        with pytest.raises(ConfigError, match="either source=DATA or source_free=True"):
            ptedge.adapt("model.pt", "frames", out=tmp_path, **both)  # type: ignore[arg-type]


def test_train__unknown_setting_names_the_nearest(source_data: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="did you mean 'steps'"):
        ptedge.train(source_data, out=tmp_path / "run", settings={"optim.step": 1})


def test_train__a_signal_is_raised_after_the_files_are_written(
    source_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = LoopResult(7, interrupted=True, signal=signal.SIGTERM)
    monkeypatch.setattr("ptedge.training.pretrain.pretrain", lambda *_, **__: stopped)
    with pytest.raises(RunInterruptedError, match="SIGTERM ended the run after step 7; its files are whole") as caught:
        ptedge.train(source_data, out=tmp_path / "run", settings=FEW)
    assert isinstance(caught.value, KeyboardInterrupt) and caught.value.signal == signal.SIGTERM
    assert api.RunInterruptedError is RunInterruptedError
