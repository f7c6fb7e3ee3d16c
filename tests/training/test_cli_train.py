"""``ptedge train`` end to end on a handful of tiny pictures."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_detector import CLASS_NAMES, write_pictures
from training_shell import FILES, Shell, assert_equal, comparable, fails, lines, summary

from ptedge.artifacts.checkpoint import load_checkpoint
from ptedge.config import load_config
from ptedge.training.config import TrainConfig


def test_train__writes_a_run(ptedge: Shell, source_data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    status, err = ptedge.train(source_data, run, "--val", source_data, steps=3)
    assert status == 0, err
    assert {path.name for path in run.iterdir()} == FILES
    assert [line["step"] for line in lines(run)] == [1, 2, 3]
    last = lines(run)[-1]
    assert {"rpn_cls", "rpn_box", "roi_cls", "roi_box", "loss", "grad_norm", "lr", "step_seconds"} <= set(last)
    assert last["loss"] == pytest.approx(sum(last[k] for k in ("rpn_cls", "rpn_box", "roi_cls", "roi_box")), abs=1e-4)
    checkpoint = load_checkpoint(run / "model.pt")
    assert checkpoint.class_names == CLASS_NAMES
    lineage = checkpoint.lineage
    assert (lineage.kind, lineage.role, lineage.step, lineage.parents) == ("source", "student", 3, ())
    written = load_config(TrainConfig, run / "config.toml")
    assert written.optim.steps == 3 and written.model == checkpoint.config
    report = summary(run)
    assert (report["command"], report["steps"], report["images"], report["boxes"]) == ("train", 3, 6, 5)
    assert report["classes"] == list(CLASS_NAMES) and report["interrupted"] is False
    assert last.items() <= report["last"].items()
    assert report["chosen"]["AP50"] == report["last"]["AP50"] == report["val"]["AP50"]
    assert 0 <= report["val"]["AP50"] <= 1 and report["val"]["images"] == 6
    assert "6 images (1 without objects), 5 boxes of car, person" in err
    assert f"done after 3 steps: {run / 'model.pt'}" in err


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_train__resume_equals_a_straight_run(ptedge: Shell, source_data: Path, tmp_path: Path, optimizer: str) -> None:
    straight, parts, sets = tmp_path / "straight", tmp_path / "parts", (f"optim.optimizer={optimizer}",)
    assert ptedge.train(source_data, straight, steps=4, sets=sets)[0] == 0
    assert ptedge.train(source_data, parts, steps=2, sets=sets)[0] == 0
    status, err = ptedge.train(source_data, parts, "--resume", steps=4, sets=sets)
    assert status == 0, err
    assert_equal(straight, parts)
    assert comparable(straight) == comparable(parts)


def test_train__a_corrupt_image_is_reported_and_passed_over(ptedge: Shell, tmp_path: Path) -> None:
    data = write_pictures(tmp_path / "data", 3)
    (tmp_path / "data" / "images" / "001.png").write_bytes(b"no image")
    status, err = ptedge.train(data, tmp_path / "run", steps=3)
    assert status == 0, err
    assert "001.png" in err
    skipped = summary(tmp_path / "run")["skipped_images"]
    assert [Path(name).name for name in skipped] == ["001.png"]


def test_train__unknown_key(ptedge: Shell, source_data: Path, tmp_path: Path) -> None:
    fails(ptedge.train(source_data, tmp_path / "run", sets=("optim.stepz=3",)), "'stepz'", "did you mean 'steps'?")
    assert not (tmp_path / "run").exists()


def test_train__folder_holds_a_run(ptedge: Shell, pretrained: Path, source_data: Path) -> None:
    fails(ptedge.train(source_data, pretrained.parent), "already holds a run")


def test_train__no_such_data(ptedge: Shell, tmp_path: Path) -> None:
    fails(ptedge.train(tmp_path / "none.json", tmp_path / "run"), "none.json does not exist")


def test_train__data_without_boxes(ptedge: Shell, tmp_path: Path) -> None:
    data = write_pictures(tmp_path / "data", 1)
    fails(ptedge.train(data, tmp_path / "run"), "1 images but no box to learn from")


def test_train__resume_of_an_adapt_run_is_refused(
    ptedge: Shell, pretrained: Path, source_data: Path, target_frames: Path, tmp_path: Path
) -> None:
    run, settings = tmp_path / "run", tmp_path / "settings.toml"
    settings.write_text("seed = 0\n")
    assert ptedge.adapt(pretrained, run, "--target", target_frames, "--source-free", steps=1)[0] == 0
    fails(ptedge.train(source_data, run, "--config", settings, "--resume"))


def test_train__resume_with_another_model_is_one_sentence(ptedge: Shell, pretrained: Path, source_data: Path) -> None:
    fails(ptedge.train(source_data, pretrained.parent, "--resume", sets=("model.anchor_sizes=[24.0, 48.0]",)))


def test_train__resume_with_other_classes_is_one_sentence(ptedge: Shell, pretrained: Path, tmp_path: Path) -> None:
    data = write_pictures(tmp_path / "data", 3)
    data.write_text(data.read_text("utf-8").replace("person", "bicycle"), "utf-8")
    fails(ptedge.train(data, pretrained.parent, "--resume"))


def test_train__resume_of_a_finished_run_changes_nothing(ptedge: Shell, pretrained: Path, source_data: Path) -> None:
    run = pretrained.parent
    before, numbers = load_checkpoint(pretrained).state, lines(run)
    status, err = ptedge.train(source_data, run, "--resume", steps=1)
    assert status == 0, err
    for name, tensor in load_checkpoint(pretrained).state.items():
        torch.testing.assert_close(tensor, before[name], rtol=0, atol=0)
    assert lines(run) == numbers
    assert summary(run)["steps"] == 1


def test_train__val_is_scored_by_the_convention_of_the_settings(
    ptedge: Shell, source_data: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    ptedge.train(source_data, run, "--val", source_data, "--set", "convention=voc-labelled", steps=1)
    val = summary(run)["val"]
    assert (val["convention"], val["images"]) == ("voc-labelled", 5)  # the last picture has no object


def test_train__val_without_its_images_fails_before_the_first_step(
    ptedge: Shell, source_data: Path, tmp_path: Path
) -> None:
    val = write_pictures(tmp_path / "val", 3)
    for path in (tmp_path / "val" / "images").iterdir():
        path.unlink()
    fails(ptedge.train(source_data, tmp_path / "run", "--val", val))


def test_train__a_run_of_a_time_before_clusters_goes_on_without(
    ptedge: Shell, pretrained: Path, source_data: Path
) -> None:
    run = pretrained.parent
    assert load_checkpoint(pretrained).config.sigma_rule == "cluster"
    settings = (run / "config.toml").read_text("utf-8")
    (run / "config.toml").write_text(settings.replace('sigma_rule = "cluster"\n', ""), "utf-8")
    status, err = ptedge("train", source_data, "--out", run, "--resume", sets=["optim.steps=2"])
    assert status == 0, err
    assert load_checkpoint(pretrained).config.sigma_rule == "own"


def test_train__the_rule_of_sigma_may_change_at_a_resume(ptedge: Shell, pretrained: Path, source_data: Path) -> None:
    words = ["train", source_data, "--out", pretrained.parent, "--resume"]
    status, err = ptedge(*words, sets=["optim.steps=2", "model.sigma_rule=own"])
    assert status == 0, err
    assert load_checkpoint(pretrained).config.sigma_rule == "own"


LIGHT = ("model.roi_channels=4", "model.roi_hidden=8", "distill.weight=1.0", "distill.hidden=16")


def test_train__a_wide_head_teaches_and_is_left_out(ptedge: Shell, source_data: Path, tmp_path: Path) -> None:
    straight, parts = tmp_path / "straight", tmp_path / "parts"
    assert ptedge.train(source_data, straight, steps=4, sets=LIGHT)[0] == 0
    last = lines(straight)[-1]
    taught = {"full_roi_cls", "full_roi_box", "distill_cls", "distill_box"}
    terms = {"rpn_cls", "rpn_box", "roi_cls", "roi_box", *taught}
    assert last["loss"] == pytest.approx(sum(last[name] for name in terms), abs=1e-4)
    checkpoint = load_checkpoint(straight / "model.pt")
    assert checkpoint.state["roi_head.fc1.weight"].shape == (8, 4 * 49)
    assert not [name for name in checkpoint.state if "full" in name]
    checkpoint.build()
    # the wide head goes on where it was
    assert ptedge.train(source_data, parts, steps=2, sets=LIGHT)[0] == 0
    assert ptedge.train(source_data, parts, "--resume", steps=4, sets=LIGHT)[0] == 0
    assert_equal(straight, parts)
    assert comparable(straight) == comparable(parts)
    resumed = ptedge.train(source_data, parts, "--resume", steps=6, sets=(*LIGHT, "distill.weight=0"))
    fails(resumed, "distill is False, but the run has True")


def test_train__both_heads_make_the_features(ptedge: Shell, source_data: Path, tmp_path: Path) -> None:
    runs = []
    for weight in ("1.0", "3.0"):
        runs.append(tmp_path / weight)
        assert ptedge.train(source_data, runs[-1], steps=2, sets=(*LIGHT, f"distill.weight={weight}"))[0] == 0
    one, three = (load_checkpoint(run / "model.pt").state for run in runs)
    weights = [name for name in one if name.startswith("backbone.") and name.endswith("weight")]
    assert not all(torch.equal(one[name], three[name]) for name in weights)


def test_train__a_wide_head_must_be_wider(ptedge: Shell, source_data: Path, tmp_path: Path) -> None:
    refused = ptedge.train(source_data, tmp_path / "run", sets=("distill.weight=1",))
    fails(refused, "distill.hidden=1024 is no wider than model.roi_hidden=1024")
