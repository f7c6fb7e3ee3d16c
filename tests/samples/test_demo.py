from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click
import pytest

from ptedge.cli import cli
from ptedge.config import load_config
from ptedge.data import open_dataset
from ptedge.errors import OutputError
from ptedge.frames.source import open_frames
from ptedge.samples import demo as module
from ptedge.samples.demo import MARKER, Plan, Row, _draw, _print_table, _start_afresh, _Walk
from ptedge.samples.steps import Steps
from ptedge.training.config import AdaptConfig, TrainConfig

TINY = Plan(2, 2, 1, 3, 7, 5, 3, every_bundle=True)


class Recorder(Steps):
    """Checks each call against the real command's options, and answers without running it."""

    def ptedge(self, name: str, *arguments: str | Path) -> str:
        words = [str(argument) for argument in arguments]
        command = cli.get_command(click.Context(cli), words[0])
        assert command is not None
        command.make_context(words[0], list(words[1:]))
        self.seconds[name] = 0.0
        self.calls = [*getattr(self, "calls", []), words]
        if words[0] in ("train", "adapt"):
            (Path(words[words.index("--out") + 1])).mkdir()
            (Path(words[words.index("--out") + 1]) / "model.pt").touch()
        if words[0] == "export":
            Path(words[words.index("--out") + 1]).mkdir(parents=True)
        return json.dumps({"images": 1, "AP50": 0.5})


def test_walk__every_command_is_one_the_command_line_takes(tmp_path: Path) -> None:
    _start_afresh(tmp_path)
    steps = Recorder(tmp_path / "logs", lambda _: None)
    rows = _Walk(TINY, tmp_path, 0, steps).rows()
    assert [row.name for row in rows] == ["source only", "adapted", "source-free", "second round", "oracle"]
    names = [words[0] for words in steps.calls]
    assert names[:4] == ["train", "adapt", "adapt", "train"]
    assert names.count("eval") == 10  # each model as checkpoint and as bundle
    assert names.index("verify") < names.index("run")
    again = [words for words in steps.calls if words[0] == "adapt"][-1]
    assert "--source-free" in again
    assert str(tmp_path / "field") in again  # what the run collected
    assert "--set" in again
    assert "optim.steps=3" in again


def test_walk__target_labels_reach_the_oracle_and_the_scores_only(tmp_path: Path) -> None:
    _start_afresh(tmp_path)
    steps = Recorder(tmp_path / "logs", lambda _: None)
    _Walk(TINY, tmp_path, 0, steps).rows()
    target, val = (str(tmp_path / "data" / name / "annotations.json") for name in ("target", "val"))
    assert [words[-1 - 6] for words in steps.calls if target in words] == [str(tmp_path / "oracle")]
    assert {words[0] for words in steps.calls if val in words} == {"eval"}


def test_draw__gives_labelled_sets_and_a_video(tmp_path: Path) -> None:
    _draw(TINY, tmp_path, 0)
    source = open_dataset(tmp_path / "source" / "annotations.json")
    target = open_dataset(tmp_path / "target" / "annotations.json")
    assert (len(source), len(target)) == (2, 2)
    assert source.class_names == target.class_names
    assert len(list(open_frames(str(tmp_path / "video.mp4")))) == 3
    assert len(list(open_frames(str(tmp_path / "target" / "images")))) == 2


def test_settings__are_read_by_the_commands_they_are_for(tmp_path: Path) -> None:
    _start_afresh(tmp_path)
    assert load_config(TrainConfig, tmp_path / "settings" / "demo_train.toml").model.input_size == (192, 320)
    for name in ("demo_adapt.toml", "demo_source_free.toml"):
        assert load_config(AdaptConfig, tmp_path / "settings" / name).teacher.ema < 1


def test_start_afresh__takes_an_earlier_demo_but_no_other_folder(tmp_path: Path) -> None:
    _start_afresh(tmp_path / "demo")
    (tmp_path / "demo" / "old.txt").touch()
    _start_afresh(tmp_path / "demo")
    assert not (tmp_path / "demo" / "old.txt").exists()
    assert (tmp_path / "demo" / "earlier-1" / "old.txt").exists()
    _start_afresh(tmp_path / "demo")
    kept = ["demo.json", "earlier-1", "earlier-2", "settings"]  # side by side, not one in the other
    assert sorted(p.name for p in (tmp_path / "demo").iterdir()) == kept
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").touch()
    with pytest.raises(OutputError, match="not empty and not from an earlier demo"):
        _start_afresh(tmp_path / "mine")
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_print_table__a_line_a_model_in_percent(capsys: pytest.CaptureFixture[str]) -> None:
    _print_table([Row("adapted", "frames", {"images": 60, "AP50": 0.4567}, {"AP50": 0.4561})])
    out = capsys.readouterr().out
    assert "On 60 labelled target scenes" in out
    assert "45.7" in out
    assert "45.6" in out


def test_judge__short_demo_exports_what_goes_to_the_device_only(tmp_path: Path) -> None:
    _start_afresh(tmp_path)
    steps = Recorder(tmp_path / "logs", lambda _: None)
    rows = _Walk(replace(TINY, every_bundle=False), tmp_path, 0, steps).rows()
    assert [row.name for row in rows if row.bundle] == ["adapted", "second round"]
    assert sum(words[0] == "export" for words in steps.calls) == 2


def test_marker__is_what_a_finished_demo_writes() -> None:
    assert MARKER == "demo.json"
    assert module.FULL.train_steps > module.QUICK.train_steps
