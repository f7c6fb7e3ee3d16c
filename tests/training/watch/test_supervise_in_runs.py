"""Guards and choice in whole runs of ``ptedge adapt`` on tiny pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_detector import write_pictures
from torch import Tensor
from training_shell import Shell, comparable, lines, summary

from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.training import mutual as mutual_module

ABSURD = ("optim.lr=50.0", "optim.clip=1000.0", "teacher.ema=0.5", "guard.max_rollbacks=2", "teacher.adabn=true")


@pytest.fixture
def taught(ptedge: Shell, source_data: Path, tmp_path: Path) -> Path:
    """A model.pt that finds something."""
    status, err = ptedge.train(source_data, tmp_path / "taught", steps=12, sets=("optim.lr=0.01",))
    assert status == 0, err
    return tmp_path / "taught" / "model.pt"


def same_weights(first: Path, second: Path) -> bool:
    a, b = load_checkpoint(first).state, load_checkpoint(second).state
    return all(torch.equal(tensor, b[name]) for name, tensor in a.items())


def everything_equal(first: Any, second: Any) -> bool:
    if isinstance(first, Tensor):
        return torch.equal(first, second)
    if isinstance(first, dict):
        return first.keys() == second.keys() and all(everything_equal(first[key], second[key]) for key in first)
    if isinstance(first, (list, tuple)):
        return len(first) == len(second) and all(map(everything_equal, first, second))
    return bool(first == second)


def resume_state(run: Path) -> dict[str, Any]:
    state: dict[str, Any] = torch.load(run / "last.pt", weights_only=True)
    for name in ("step_seconds", "data_wait", "images_per_second"):
        state["last"].pop(name, None)
    return state


def test_adapt__absurd_learning_rate_ends_no_worse_than_it_began(
    ptedge: Shell, taught: Path, target_frames: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    status, err = ptedge.adapt(taught, run, "--target", target_frames, "--source-free", steps=30, sets=ABSURD)
    assert status == 0, err
    report = summary(run)
    trips = report["guards"]
    assert [trip["action"] for trip in trips] == ["rollback", "rollback", "stop"]
    assert [trip["lr_factor"] for trip in trips] == pytest.approx([0.2, 0.04, 0.04])
    assert report["stopped_by_guard"] is True and report["steps"] == trips[-1]["step"] < 30
    assert report["interrupted"] is False
    record = load_checkpoint(run / "model.pt").adaptation
    assert record is not None and record.stopped and record.steps == report["steps"]
    assert record.chosen == report["chosen"]["step"] and record.found_again == record.found_again_before > 0
    assert record.trips == tuple(trip["name"] for trip in trips)
    for trip in trips:
        assert f"guard at step {trip['step']}" in err
    told = [line["guard"] for line in lines(run) if "guard" in line]
    assert told == trips
    # nothing good ever came of it: what is deployed, and what the run stands at, is what it began with
    assert trips[-1]["back_to"] == 0
    began = run / "checkpoints" / "step_000000.pt"
    assert not same_weights(began, taught)  # AdaBN came first
    assert same_weights(run / "model.pt", began)
    assert same_weights(run / "last_model.pt", began)
    # an ended run stays ended
    words = ["--target", target_frames, "--source-free", "--resume"]
    before = (run / "summary.json").read_text("utf-8")
    status, err = ptedge("adapt", taught, *words, "--out", run, sets=[])
    assert status == 0 and "nothing is left to do: guard at step" in err
    assert json.loads(before) == summary(run)


def test_adapt__rollback_lowers_the_learning_rate_and_goes_on(
    ptedge: Shell, taught: Path, target_frames: Path, tmp_path: Path
) -> None:
    run, words = tmp_path / "run", ["--target", target_frames, "--source-free"]
    sets = (*ABSURD, "batch_norm=frozen", "guard.lr_factor=0.000001", "log_every=2")
    status, err = ptedge.adapt(taught, run, *words, steps=12, sets=sets)
    assert status == 0, err
    (trip,) = summary(run)["guards"]
    assert trip["action"] == "rollback" and summary(run)["steps"] == 12
    assert lines(run)[-1]["lr"] == pytest.approx(50.0e-6)
    assert "learning rate from here x 1e-06" in err


def test_adapt__without_guards_the_same_run_ends_in_an_error_or_a_wreck(
    ptedge: Shell, taught: Path, target_frames: Path, tmp_path: Path
) -> None:
    run, words = tmp_path / "run", ["--target", target_frames, "--source-free"]
    status, err = ptedge.adapt(taught, run, *words, steps=10, sets=(*ABSURD, "guard.enabled=false"))
    if status == 0:  # the choice alone still saves what is deployed
        assert summary(run)["guards"] == []
        assert not same_weights(run / "last_model.pt", taught)
        assert summary(run)["chosen"]["sound"] is True
    else:
        assert "not finite" in err and "Traceback" not in err


def _explode_at(monkeypatch: pytest.MonkeyPatch, bad_step: int) -> None:
    """Make the loss of one step not finite."""
    losses = mutual_module.MutualLearning.losses

    def exploding(self: Any, step: int, *arguments: Any) -> Any:
        terms, numbers = losses(self, step, *arguments)
        if step == bad_step:
            terms = {name: term * float("nan") for name, term in terms.items()}
        return terms, numbers

    monkeypatch.setattr(mutual_module.MutualLearning, "losses", exploding)


def test_adapt__a_loss_that_is_not_finite_rolls_back(
    ptedge: Shell, taught: Path, target_frames: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _explode_at(monkeypatch, 4)
    run, words = tmp_path / "run", ["--target", target_frames, "--source-free"]
    status, err = ptedge.adapt(taught, run, *words, steps=6, sets=("optim.lr=0.0001",))
    assert status == 0, err
    (trip,) = summary(run)["guards"]
    assert (trip["name"], trip["step"], trip["action"], trip["back_to"]) == ("finite", 5, "rollback", 4)
    assert [line["step"] for line in lines(run)] == [1, 2, 3, 4, 5, 6]
    assert "loss" not in lines(run)[4]
    for name, tensor in resume_state(run)["student"].items():
        assert torch.isfinite(tensor.float()).all(), name
    # and with guards off it is an error, as before
    off = ("optim.lr=0.0001", "guard.enabled=false")
    status, err = ptedge.adapt(taught, tmp_path / "off", *words, steps=6, sets=off)
    assert status == 1 and "not finite at step 4" in err


@pytest.mark.parametrize("broken_off_at", [2, 4, 5])
def test_adapt__resume_across_a_rollback_is_bit_exact(
    ptedge: Shell,
    taught: Path,
    target_frames: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    broken_off_at: int,
) -> None:
    _explode_at(monkeypatch, 3)  # after it: back to step 2 (readings fall on even steps), a fifth of the learning rate
    straight, parts = tmp_path / "straight", tmp_path / "parts"
    words = ["--target", target_frames, "--source-free"]
    sets = ("monitor.every=2", "choice.every=2", "teacher.adabn=true", "teacher.ema=0.9", "optim.anchor_lr=0.001")
    assert ptedge.adapt(taught, straight, *words, steps=8, sets=sets)[0] == 0
    assert summary(straight)["guards"][0]["back_to"] == 2
    assert ptedge.adapt(taught, parts, *words, steps=broken_off_at, sets=sets)[0] == 0
    status, err = ptedge("adapt", taught, *words, "--out", parts, "--resume", sets=["optim.steps=8"])
    assert status == 0, err
    assert everything_equal(resume_state(straight), resume_state(parts))
    assert comparable(straight) == comparable(parts)
    files = [sorted(path.name for path in (run / "checkpoints").iterdir()) for run in (straight, parts)]
    assert files[0] == files[1] and "step_000000.pt" in files[0]
    for name in ("model.pt", "last_model.pt", *(f"checkpoints/{file}" for file in files[0])):
        assert (straight / name).read_bytes() == (parts / name).read_bytes(), name
    for key in ("guards", "chosen", "start"):
        assert summary(straight)[key] == summary(parts)[key]


def test_adapt__val_never_changes_the_choice(
    ptedge: Shell, taught: Path, target_frames: Path, source_data: Path, tmp_path: Path
) -> None:
    # labels of quite other places, and no labels on pictures full of objects: as misleading as val can be
    hostile = write_pictures(tmp_path / "hostile", 6, seed=9)
    document = json.loads(hostile.read_text("utf-8"))
    for annotation in document["annotations"]:
        annotation["bbox"], annotation["category_id"] = [0, 0, 3, 3], 3 - annotation["category_id"]
    hostile.write_text(json.dumps(document), "utf-8")
    sets = ("optim.lr=0.02", "teacher.ema=0.5", "choice.every=1", "choice.keep=2")
    words = ["--target", target_frames, "--source-free"]
    runs = {"none": [], "kind": ["--val", source_data], "hostile": ["--val", hostile]}
    for name, val in runs.items():
        status, err = ptedge.adapt(taught, tmp_path / name, *words, *val, steps=6, sets=sets)
        assert status == 0, err
    reports = {name: summary(tmp_path / name) for name in runs}
    for name in ("kind", "hostile"):
        for file in ("model.pt", "last_model.pt"):
            assert (tmp_path / name / file).read_bytes() == (tmp_path / "none" / file).read_bytes()
        for key in ("chosen", "last"):
            told = reports[name][key]
            assert {"AP50", "AP75", "AP"} <= set(told)
            assert (told["step"], told["score"]) == (reports["none"][key]["step"], reports["none"][key]["score"])
        assert reports[name]["val"]["AP50"] == reports[name]["chosen"]["AP50"]
    assert "AP50" not in reports["none"]["chosen"] and "val" not in reports["none"]
    assert len(list((tmp_path / "none" / "checkpoints").iterdir())) <= 3 * 2  # two and the start; once more for last.pt


def test_adapt__starvation_is_said_and_survived(
    ptedge: Shell, taught: Path, target_frames: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptedge.training.watch.supervise.STARVING", 3)
    run, words = tmp_path / "run", ["--target", target_frames, "--source-free"]
    sets = ("pseudo.score_threshold=1.0", "optim.weight_decay=0.0")
    status, err = ptedge.adapt(taught, run, *words, steps=4, sets=sets)
    assert status == 0, err
    assert "no pseudo box in the last 3 steps" in err
    assert summary(run)["steps_without_pseudo_boxes"] == 4
    assert summary(run)["guards"] == []


def test_adapt__choice_switched_off_deploys_the_last(
    ptedge: Shell, taught: Path, target_frames: Path, tmp_path: Path
) -> None:
    run, words = tmp_path / "run", ["--target", target_frames, "--source-free"]
    sets = (*ABSURD, "guard.enabled=false", "choice.enabled=false", "optim.lr=0.5")
    assert ptedge.adapt(taught, run, *words, steps=3, sets=sets)[0] == 0
    assert (run / "model.pt").read_bytes() == (run / "last_model.pt").read_bytes()
    assert not same_weights(run / "model.pt", taught)
    assert summary(run)["chosen"]["step"] == 3


def test_adapt__source_run_is_watched_too(
    ptedge: Shell, taught: Path, source_data: Path, target_frames: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    words = ["--target", target_frames, "--source", source_data]
    status, err = ptedge.adapt(taught, run, *words, steps=2, sets=("optim.lr=0.0001",))
    assert status == 0, err
    signals = lines(run)[-1]["monitor"]
    assert {"boxes", "objects", "source_agreement", "student_agreement", "consistency"} <= set(signals)
    assert "agrees with source" in err and summary(run)["last"]["signals"] == signals
