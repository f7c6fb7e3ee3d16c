from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from tiny_detector import use_tiny_detector

from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.cli import cli
from ptedge.config import load_config
from ptedge.data import open_dataset
from ptedge.errors import TrainingError
from ptedge.frames.source import open_frames
from ptedge.samples.demo import start_afresh
from ptedge.samples.scenes import CLASS_NAMES, DOMAINS
from ptedge.samples.steps import Steps
from ptedge.samples.walk import SETTINGS, SHIPPED, SOURCE, SOURCE_SEED, TARGET, Plan, Walk
from ptedge.training.config import AdaptConfig, TrainConfig

TINY = Plan(
    source_images=2,
    target_frames=3,
    second_frames=3,
    val_images=2,
    pictures=1,
    train_images=4,
)
SAMPLES = Path(__file__).parents[2] / "samples"


class Recorder(Steps):
    """Checks each call against the real command's options, and answers without running it."""

    def ptedge(self, name: str, *arguments: str | Path) -> str:
        words = [str(argument) for argument in arguments]
        command = cli.get_command(click.Context(cli), words[0])
        assert command is not None
        command.make_context(words[0], list(words[1:]))
        self.seconds[name] = 0.0
        self.calls = [*getattr(self, "calls", []), words]
        return json.dumps({"images": 1, "AP50": 0.5})


class InProcess(Steps):
    """Runs the commands, all in this process, so that what a test put in place of something holds in them."""

    def ptedge(self, name: str, *arguments: str | Path) -> str:
        words = [str(argument) for argument in arguments]
        self.seconds[name] = 0.0
        if words[0] == "verify":  # a model of two steps scores all alike, and equal scores have no order to compare
            return ""
        if words[0] in ("train", "adapt"):
            words += ["--set", "optim.steps=2", "--set", "optim.batch=2", "--set", "workers=0"]
        result = CliRunner().invoke(cli, words)
        if result.exit_code:
            raise TrainingError(f"{name}: {result.output} {result.exception!r}")
        return result.stdout


@pytest.fixture
def tiny_detector(monkeypatch: pytest.MonkeyPatch) -> None:
    use_tiny_detector(monkeypatch)


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.samples.before_after.draw_before_and_after", lambda *_: [])


def walk(folder: Path, plan: Plan = TINY, *, from_scratch: bool = False) -> tuple[list[str], list[list[str]]]:
    start_afresh(folder)
    steps = Recorder(folder / "logs", lambda _: None)
    rows = Walk(plan, folder, 0, steps, from_scratch=from_scratch).rows()
    return [row.name for row in rows], steps.calls


@pytest.mark.usefixtures("no_pictures")
def test_rows__every_command_is_one_the_command_line_takes(tmp_path: Path) -> None:
    rows, calls = walk(tmp_path)
    assert rows == ["source only", "source-free", "adapted", "second round"]
    names = [words[0] for words in calls]
    assert names == [*("eval", "adapt", "eval", "adapt"), *("export", "verify", "run"), *("eval",) * 2, "adapt", "eval"]
    again = [words for words in calls if words[0] == "adapt"][-1]
    assert again[1] == str(tmp_path / "adapted" / "model.pt")
    assert "--source-free" in again
    assert str(tmp_path / "field") in again  # what the run collected


@pytest.mark.usefixtures("no_pictures")
def test_rows__quick_adapts_source_free_and_deploys_that(tmp_path: Path) -> None:
    rows, calls = walk(tmp_path, replace(TINY, with_source=False))
    assert rows == ["source only", "source-free"]
    assert [words[0] for words in calls] == ["eval", "adapt", "eval", "export", "verify", "run"]
    assert str(tmp_path / "source_free" / "model.pt") in calls[3]


@pytest.mark.usefixtures("no_pictures")
def test_rows__labels_of_the_target_reach_the_scores_only(tmp_path: Path) -> None:
    _, calls = walk(tmp_path)
    assert not (tmp_path / "data" / "target" / "annotations.json").exists()
    val = str(tmp_path / "data" / "val" / "annotations.json")
    assert {words[0] for words in calls if val in words} == {"eval"}


@pytest.mark.usefixtures("no_pictures")
def test_rows__from_scratch_trains_what_is_adapted(tmp_path: Path) -> None:
    _, calls = walk(tmp_path, replace(TINY, with_source=False), from_scratch=True)
    assert calls[0][0] == "train"
    assert len(open_dataset(tmp_path / "data" / "source" / "annotations.json")) == 4


def test_draw__gives_labelled_sets_and_frames_of_other_streets(tmp_path: Path) -> None:
    Walk(TINY, tmp_path, 0, Steps(tmp_path, lambda _: None)).draw()
    source = open_dataset(tmp_path / "data" / "source" / "annotations.json")
    val = open_dataset(tmp_path / "data" / "val" / "annotations.json")
    assert (len(source), len(val)) == (2, 2)
    assert source.class_names == val.class_names == CLASS_NAMES
    frames = [list(open_frames(str(tmp_path / "data" / name))) for name in ("target/images", "drive")]
    assert [len(found) for found in frames] == [3, 3]
    assert (frames[0][0].image != frames[1][0].image).any()
    assert {SOURCE, TARGET} <= set(DOMAINS)
    assert SOURCE_SEED % 4 == 0  # a demo's own seeds are 4 n + 1, 2, 3


@pytest.mark.usefixtures("tiny_detector")
def test_walk__goes_the_whole_way_with_a_tiny_detector(tmp_path: Path) -> None:
    start_afresh(tmp_path)
    settings = tmp_path / "settings" / "demo_train.toml"
    settings.write_text(settings.read_text().replace("[model]", '[model]\nweights = "none"'), "utf-8")
    steps = InProcess(tmp_path / "logs", lambda _: None)
    rows = Walk(TINY, tmp_path, 0, steps, from_scratch=True).rows()
    assert [row.checkpoint["images"] for row in rows] == [2] * 4
    assert rows[2].bundle is not None
    assert rows[2].bundle["AP50"] == pytest.approx(rows[2].checkpoint["AP50"], abs=0.02)
    kinds = [load_checkpoint(tmp_path / name / "model.pt").lineage.kind for name in ("source", "adapted")]
    assert kinds == ["source", "adapted"]
    second = load_checkpoint(tmp_path / "second_round" / "model.pt").lineage
    assert second.kind == "source_free"
    assert len(second.parents) == 2  # the source model and the first round
    assert (tmp_path / "before_after.jpg").is_file()
    assert len(list((tmp_path / "pictures").iterdir())) == 1
    assert len(list((tmp_path / "field" / "images").iterdir())) == 3


def test_settings__are_read_by_the_commands_they_are_for() -> None:
    assert load_config(TrainConfig, SAMPLES / "demo_train.toml").model.input_size == (192, 320)
    for name in SETTINGS[1:]:
        assert load_config(AdaptConfig, SAMPLES / name).teacher.ema < 1


def test_shipped__model_is_small_and_what_the_settings_make() -> None:
    path = SAMPLES / SHIPPED
    assert path.stat().st_size < 10_000_000
    checkpoint = load_checkpoint(path)
    settings = load_config(TrainConfig, SAMPLES / "demo_train.toml")
    assert checkpoint.config == settings.model
    assert checkpoint.class_names == CLASS_NAMES
    assert checkpoint.lineage.step == settings.optim.steps
    assert not [name for name in checkpoint.lineage.data if name.startswith("/")]
