"""``ptedge adapt`` end to end on a handful of tiny pictures."""

from __future__ import annotations

import dataclasses
import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from made_field import collect
from servers.buckets import address
from tiny_detector import write_pictures
from training_shell import ADAPT_FILES, Shell, assert_equal, comparable, fails, lines, summary

from ptedge.artifacts.checkpoint import load_checkpoint, save_checkpoint
from ptedge.calibration import SideCalibration
from ptedge.config import load_config
from ptedge.files import sha256_file
from ptedge.runtime.transfer.push import push
from ptedge.stores.opening import open_store
from ptedge.training import mutual as mutual_module
from ptedge.training.config import AdaptConfig


@pytest.mark.parametrize("source_free", [True, False])
@pytest.mark.parametrize("adabn", [True, False])
def test_adapt__writes_a_run(
    ptedge: Shell,
    pretrained: Path,
    source_data: Path,
    target_frames: Path,
    tmp_path: Path,
    source_free: bool,
    adabn: bool,
) -> None:
    run = tmp_path / "run"
    mode = ["--source-free"] if source_free else ["--source", source_data]
    sets = (f"teacher.adabn={str(adabn).lower()}", "teacher.ema=0.5", "batch_norm=frozen")
    status, err = ptedge.adapt(pretrained, run, "--target", target_frames, *mode, sets=sets)
    assert status == 0, err
    assert {path.name for path in run.iterdir()} == ADAPT_FILES
    last = lines(run)[-1]
    terms = {name for name in last if name.endswith(("_cls", "_box")) and not name.startswith("pseudo")}
    target = {"target_rpn_cls", "target_rpn_box", "target_roi_cls", "target_roi_box"}
    assert target <= terms and ({"rpn_cls", "roi_box"} <= terms) == (not source_free)
    assert {"pseudo_boxes", "class_entropy", "box_variance", "anchors", "monitor"} <= set(last)
    assert last["pseudo_boxes"] > 0
    lineage = load_checkpoint(run / "last_model.pt").lineage
    assert (lineage.kind, lineage.role) == ("source_free" if source_free else "adapted", "teacher")
    assert lineage.parents == (sha256_file(pretrained),) and lineage.step == 2
    report = summary(run)
    assert (report["command"], report["kind"], report["target_frames"]) == ("adapt", lineage.kind, 5)
    assert report["source_images"] == (0 if source_free else 6)
    # what is deployed is the teacher: the average, not the student
    state = torch.load(run / "last.pt", weights_only=True)
    deployed = load_checkpoint(run / "last_model.pt").state
    for name, tensor in state["teacher"].items():
        torch.testing.assert_close(deployed[name], tensor, rtol=0, atol=0)
    assert not torch.equal(state["teacher"]["roi_head.fc1.weight"], state["student"]["roi_head.fc1.weight"])
    mean = "backbone.body.features.1.running_mean"
    assert torch.equal(deployed[mean], load_checkpoint(pretrained).state[mean]) == (not adabn)
    torch.testing.assert_close(deployed[mean], state["student"][mean], rtol=0, atol=0)


def test_adapt__starts_from_the_detector_without_its_calibration(
    ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path
) -> None:
    calibrated, words = tmp_path / "calibrated.pt", ["--target", target_frames, "--source-free"]
    given = SideCalibration((0.2, 0.0, -0.2, 0.0), (2.0, 2.0, 2.0, 2.0))
    save_checkpoint(calibrated, dataclasses.replace(load_checkpoint(pretrained), calibration=given))
    status, err = ptedge.adapt(calibrated, tmp_path / "run", *words)
    assert status == 0, err
    assert "adaptation starts from the detector without" in err
    assert load_checkpoint(tmp_path / "run" / "model.pt").calibration is None
    assert ptedge.adapt(pretrained, tmp_path / "plain", *words)[0] == 0
    one, two = (load_checkpoint(tmp_path / run / "last_model.pt").state for run in ("run", "plain"))
    assert all(torch.equal(one[name], two[name]) for name in one)  # pseudo boxes were not moved


def test_adapt__batch_statistics_come_from_target_and_the_teacher_follows(
    ptedge: Shell, pretrained: Path, source_data: Path, target_frames: Path, tmp_path: Path
) -> None:
    words = ["--target", target_frames, "--source", source_data]
    status, err = ptedge.adapt(pretrained, tmp_path / "run", *words, sets=("teacher.ema=0.5", "batch_norm=batch"))
    assert status == 0, err
    state = torch.load(tmp_path / "run" / "last.pt", weights_only=True)
    mean = "backbone.body.features.1.running_mean"
    start = load_checkpoint(pretrained).state[mean]
    assert not torch.equal(state["student"][mean], start)
    assert not torch.equal(state["teacher"][mean], start)
    assert not torch.equal(state["teacher"][mean], state["student"][mean])


def test_adapt__resume_equals_a_straight_run(
    ptedge: Shell, pretrained: Path, source_data: Path, target_frames: Path, tmp_path: Path
) -> None:
    straight, parts = tmp_path / "straight", tmp_path / "parts"
    words = ["--target", target_frames, "--source", source_data]
    sets = ("teacher.adabn=true", "teacher.ema=0.9", "optim.anchor_lr=0.001")
    assert ptedge.adapt(pretrained, straight, *words, steps=4, sets=sets)[0] == 0
    assert ptedge.adapt(pretrained, parts, *words, steps=2, sets=sets)[0] == 0
    # the settings of the run are taken from its config.toml; only the steps change
    status, err = ptedge("adapt", pretrained, *words, "--out", parts, "--resume", sets=["optim.steps=4"])
    assert status == 0, err
    assert_equal(straight, parts)
    assert comparable(straight) == comparable(parts)
    anchors = "anchors.log_wh"
    assert not torch.equal(
        load_checkpoint(parts / "model.pt").state[anchors], load_checkpoint(pretrained).state[anchors]
    )


def test_adapt__without_target_loss_nothing_of_the_anchors_moves(
    ptedge: Shell, pretrained: Path, source_data: Path, target_frames: Path, tmp_path: Path
) -> None:
    sets = ("lambda_target=0", "optim.anchor_lr=1.0")
    words = ["--target", target_frames, "--source", source_data]
    status, err = ptedge.adapt(pretrained, tmp_path / "run", *words, sets=sets)
    assert status == 0, err
    state, start = torch.load(tmp_path / "run" / "last.pt", weights_only=True), load_checkpoint(pretrained).state
    for role in ("student", "teacher"):
        assert torch.equal(state[role]["anchors.log_wh"], start["anchors.log_wh"])
    assert not torch.equal(state["student"]["roi_head.fc1.weight"], start["roi_head.fc1.weight"])


def test_adapt__no_pseudo_boxes_at_all(ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path) -> None:
    words = ["--target", target_frames, "--source-free"]
    sets = ("pseudo.score_threshold=1.0", "optim.anchor_lr=1.0", "optim.weight_decay=0.0")
    status, err = ptedge.adapt(pretrained, tmp_path / "run", *words, sets=sets)
    assert status == 0, err
    assert lines(tmp_path / "run")[-1]["loss"] == 0.0
    deployed, start = load_checkpoint(tmp_path / "run" / "model.pt").state, load_checkpoint(pretrained).state
    assert torch.equal(deployed["anchors.log_wh"], start["anchors.log_wh"])
    torch.testing.assert_close(deployed["roi_head.fc1.weight"], start["roi_head.fc1.weight"], rtol=0, atol=1e-7)


@pytest.mark.parametrize(("number", "exits"), [(signal.SIGINT, 130), (signal.SIGHUP, 129)], ids=str)
def test_adapt__interrupted_and_continued(
    ptedge: Shell,
    pretrained: Path,
    target_frames: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    exits: int,
) -> None:
    run, words = tmp_path / "run", ["--target", target_frames, "--source-free"]
    follow = mutual_module.update_teacher

    def follow_and_interrupt(*arguments: Any, **options: Any) -> None:
        follow(*arguments, **options)
        signal.raise_signal(number)

    with monkeypatch.context() as patch:
        patch.setattr(mutual_module, "update_teacher", follow_and_interrupt)
        status, err = ptedge.adapt(pretrained, run, *words, steps=3)
    assert status == exits and "--resume" in err
    assert summary(run)["interrupted"] is True and summary(run)["steps"] == 1
    assert {path.name for path in run.iterdir()} == ADAPT_FILES
    assert ptedge.adapt(pretrained, run, *words, "--resume", steps=3)[0] == 0
    assert summary(run)["interrupted"] is False and summary(run)["steps"] == 3


@pytest.mark.parametrize("words", [[], ["--source", "data.json", "--source-free"]])
def test_adapt__source_or_source_free(ptedge: Shell, tmp_path: Path, words: list[str]) -> None:
    status, err = ptedge.adapt(tmp_path / "m.pt", tmp_path / "run", "--target", tmp_path, *words)
    assert status == 2
    assert "either --source DATA or --source-free" in err
    assert not (tmp_path / "run").exists()


def test_adapt__other_classes_shows_both_lists(
    ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path
) -> None:
    data = write_pictures(tmp_path / "data", 3)
    data.write_text(data.read_text("utf-8").replace("person", "bicycle"), "utf-8")
    words = ["--target", target_frames, "--source", data]
    fails(ptedge.adapt(pretrained, tmp_path / "run", *words), "['car', 'bicycle']", "['car', 'person']", str(data))


def test_adapt__resume_in_another_mode_is_refused(
    ptedge: Shell, pretrained: Path, source_data: Path, target_frames: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    assert ptedge.adapt(pretrained, run, "--target", target_frames, "--source-free", steps=1)[0] == 0
    words = ["--target", target_frames, "--source", source_data, "--resume"]
    fails(ptedge.adapt(pretrained, run, *words, steps=2))


def test_adapt__config_file_reads_back(ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ["--target", target_frames, "--source-free"]
    assert ptedge.adapt(pretrained, run, *words, steps=1, sets=("seed=5",))[0] == 0
    written = load_config(AdaptConfig, run / "config.toml")
    assert written.seed == 5 and written.optim.steps == 1


@pytest.mark.parametrize("workers", [0, 1])
def test_adapt__no_readable_frame_is_one_sentence(
    ptedge: Shell, pretrained: Path, tmp_path: Path, workers: int
) -> None:
    (tmp_path / "frames").mkdir()
    (tmp_path / "frames" / "a.png").write_bytes(b"no image")
    words = ["--target", tmp_path / "frames", "--source-free"]
    status, err = ptedge.adapt(pretrained, tmp_path / "run", *words, sets=(f"workers={workers}",))
    assert status == 1
    assert "no image can be read" in err and "a.png" in err
    assert "Traceback" not in err


def test_adapt__resume_from_another_checkpoint_is_refused(
    ptedge: Shell, pretrained: Path, source_data: Path, target_frames: Path, tmp_path: Path
) -> None:
    run, words = tmp_path / "run", ["--target", target_frames, "--source-free"]
    assert ptedge.adapt(pretrained, run, *words, steps=1)[0] == 0
    assert ptedge.train(source_data, tmp_path / "other", steps=1, sets=("seed=1",))[0] == 0
    fails(ptedge.adapt(tmp_path / "other" / "model.pt", run, *words, "--resume", steps=2))


def test_adapt__seed_below_zero_is_one_sentence(
    ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path
) -> None:
    fails(
        ptedge.adapt(pretrained, tmp_path / "run", "--target", target_frames, "--source-free", sets=("seed=-1",)),
        "seed",
    )


@pytest.mark.parametrize(("sets", "rule"), [((), "cluster"), (("model.sigma_rule=own",), "own")])
def test_adapt__sigma_of_clusters_is_for_users_and_changes_no_step(
    ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path, sets: tuple[str, ...], rule: str
) -> None:
    words = ["--target", target_frames, "--source-free"]
    for name, given in (("run", sets), ("own", ("model.sigma_rule=own",))):
        status, err = ptedge.adapt(pretrained, tmp_path / name, *words, sets=given)
        assert status == 0, err
    for file in ("model.pt", "last_model.pt"):
        assert load_checkpoint(tmp_path / "run" / file).config.sigma_rule == rule
    assert_equal(tmp_path / "run", tmp_path / "own")
    assert comparable(tmp_path / "run") == comparable(tmp_path / "own")


def test_adapt__a_run_of_a_time_before_clusters_goes_on_without(
    ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path
) -> None:
    run, words = tmp_path / "run", ["--target", target_frames, "--source-free"]
    assert ptedge.adapt(pretrained, run, *words, steps=1)[0] == 0
    settings = (run / "config.toml").read_text("utf-8")
    before = settings.replace('[model]\nsigma_rule = "cluster"\n', "")
    assert before != settings
    (run / "config.toml").write_text(before, "utf-8")
    status, err = ptedge("adapt", pretrained, *words, "--out", run, "--resume", sets=["optim.steps=2"])
    assert status == 0, err
    assert load_checkpoint(run / "last_model.pt").config.sigma_rule == "own"


@pytest.mark.parametrize("kind", ["folder", "moto"])
def test_adapt__from_the_shards_of_a_store(
    kind: str, ptedge: Shell, pretrained: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    site = str(tmp_path / "site")
    if kind != "folder":
        request.getfixturevalue("bucket_keys")
        site = address(request.getfixturevalue(f"{kind}_server"), "of-adapt")
    collect(tmp_path / "field", count=5)
    push(tmp_path / "field", open_store(site), site)
    before = sorted(tmp_path.rglob("*"))
    status, err = ptedge.adapt(pretrained, tmp_path / "run", "--target", site, "--source-free")
    assert status == 0, err
    assert summary(tmp_path / "run")["target_frames"] == 5
    assert [path for path in sorted(tmp_path.rglob("*")) if (tmp_path / "run") not in (path, *path.parents)] == before
