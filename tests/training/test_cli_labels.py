"""``ptedge adapt --labels`` end to end on a handful of tiny pictures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from tiny_detector import write_pictures
from training_shell import ADAPT_FILES, Shell, assert_equal, comparable, fails, lines, summary

from ptedge.artifacts.checkpoint import load_checkpoint

TERMS = {f"labelled_{name}" for name in ("rpn_cls", "rpn_box", "roi_cls", "roi_box")}


@pytest.fixture
def few(tmp_path: Path, target_frames: Path) -> Path:
    """Three labelled pictures; the last one, without a box, is also the first of the target's frames."""
    path = write_pictures(tmp_path / "few", 3, seed=5)
    shutil.copyfile(target_frames / "000.png", tmp_path / "few" / "images" / "002.png")
    return path


@pytest.mark.parametrize("source_free", [True, False])
def test_adapt__with_labels(
    ptedge: Shell,
    pretrained: Path,
    source_data: Path,
    target_frames: Path,
    few: Path,
    tmp_path: Path,
    source_free: bool,
) -> None:
    run = tmp_path / "run"
    mode = ["--source-free"] if source_free else ["--source", source_data]
    status, err = ptedge.adapt(pretrained, run, "--target", target_frames, *mode, "--labels", few)
    assert status == 0, err
    assert f"target {target_frames}: 4 frames, unlabelled" in err
    assert f"{few}: 3 images (1 without objects), 2 boxes of car, person; 1 of them were among" in err
    assert {path.name for path in run.iterdir()} == ADAPT_FILES
    last = lines(run)[-1]
    assert set(last) > TERMS and ("roi_box" in last) == (not source_free) and "monitor" in last
    lineage = load_checkpoint(run / "model.pt").lineage
    assert lineage.kind == "few_labels"
    assert lineage.data == (str(target_frames), *([] if source_free else [str(source_data)]), str(few))
    report = summary(run)
    assert (report["kind"], report["target_frames"], report["labelled_frames"]) == ("few_labels", 4, 3)
    assert (report["labelled_boxes"], report["source_images"]) == (2, 0 if source_free else 6)


def test_adapt__with_labels_alone(
    ptedge: Shell, pretrained: Path, target_frames: Path, few: Path, tmp_path: Path
) -> None:
    words = ["--target", target_frames, "--source-free"]
    fails(ptedge.adapt(pretrained, tmp_path / "no", *words, sets=("lambda_target=0",)), "give --labels")
    status, err = ptedge.adapt(pretrained, tmp_path / "run", *words, "--labels", few, sets=("lambda_target=0",))
    assert status == 0, err
    assert set(lines(tmp_path / "run")[-1]) > TERMS and "target_roi_cls" not in lines(tmp_path / "run")[-1]


def test_adapt__labelled_frames_that_only_tell_the_offset(
    ptedge: Shell, pretrained: Path, target_frames: Path, few: Path, tmp_path: Path
) -> None:
    words = ["--target", target_frames, "--source-free", "--labels", few]
    status, err = ptedge.adapt(pretrained, tmp_path / "run", *words, sets=("labels.weight=0.0",))
    assert status == 0, err
    assert "offset of x1, y1, x2, y2 on " in err
    assert not TERMS & set(lines(tmp_path / "run")[-1])
    assert len(lines(tmp_path / "run")[-1]["monitor"]["label_offset"]) == 4
    sets = ("labels.weight=0.0", "lambda_target=0")
    fails(ptedge.adapt(pretrained, tmp_path / "no", *words, sets=sets), "leaves nothing to learn")


@pytest.mark.parametrize("calibrate", [True, False])
def test_adapt__checkpoints_are_calibrated_by_the_offset(
    ptedge: Shell, pretrained: Path, target_frames: Path, few: Path, tmp_path: Path, calibrate: bool
) -> None:
    run = tmp_path / "run"
    words = ["--target", target_frames, "--source-free", "--labels", few]
    sets = (f"labels.calibrate={str(calibrate).lower()}", "labels.move_pseudo=false", "teacher.adabn=false")
    with pytest.MonkeyPatch.context() as patch:
        errors = torch.full((4, 4), 0.1)
        patch.setattr("ptedge.training.watch.label_offset.side_errors", lambda *boxes: errors)
        assert ptedge.adapt(pretrained, run, *words, sets=sets)[0] == 0
    start = load_checkpoint(run / "checkpoints" / "step_000000.pt").calibration
    assert (start is not None) == (load_checkpoint(run / "last_model.pt").calibration is not None) == calibrate
    if start is not None:
        # three frames of four pairs: 12 / 16 of a tenth
        assert start.offset == pytest.approx((0.075,) * 4) and start.scale == (1.0,) * 4
        assert (start.origin.how, start.origin.boxes, start.origin.images) == ("labels", 12, 3)


def test_adapt__resume_with_labels_equals_a_straight_run(
    ptedge: Shell, pretrained: Path, target_frames: Path, few: Path, tmp_path: Path
) -> None:
    straight, parts = tmp_path / "straight", tmp_path / "parts"
    words = ["--target", target_frames, "--source-free", "--labels", few]
    sets = ("teacher.ema=0.9", "labels.batch=2", "labels.view=colour", "labels.offset_every=3")
    assert ptedge.adapt(pretrained, straight, *words, steps=4, sets=sets)[0] == 0
    assert ptedge.adapt(pretrained, parts, *words, steps=2, sets=sets)[0] == 0
    status, err = ptedge("adapt", pretrained, *words, "--out", parts, "--resume", sets=["optim.steps=4"])
    assert status == 0, err
    assert_equal(straight, parts)
    assert comparable(straight) == comparable(parts)
    assert len(lines(parts)[-1]["monitor"]["label_offset"]) == 4
    without = words[:-2]
    resumed = ptedge("adapt", pretrained, *without, "--out", parts, "--resume", sets=["optim.steps=5"])
    fails(resumed, "it was begun with --labels FEW")
    document = json.loads(few.read_text("utf-8"))
    document["annotations"][0]["bbox"][0] += 1
    few.write_text(json.dumps(document), "utf-8")
    resumed = ptedge("adapt", pretrained, *words, "--out", parts, "--resume", sets=["optim.steps=5"])
    fails(resumed, "what --labels names is not what it was begun with")


def test_adapt__bad_labels_are_one_sentence(
    ptedge: Shell, pretrained: Path, source_data: Path, target_frames: Path, few: Path, tmp_path: Path
) -> None:
    def adapt(labels: Path, *mode: object) -> tuple[int, str]:
        words = ["--target", target_frames, *(mode or ("--source-free",)), "--labels", labels]
        answer: tuple[int, str] = ptedge.adapt(pretrained, tmp_path / "run", *words)
        return answer

    fails(adapt(tmp_path / "none.json"), "none.json does not exist")
    fails(adapt(source_data, "--source", source_data), "6 of its 6 images are source images too")
    whole = few.read_text("utf-8")
    few.write_text(whole.replace("person", "bicycle"), "utf-8")
    fails(adapt(few), "['car', 'bicycle']", "['car', 'person']")
    few.write_text(json.dumps(json.loads(whole) | {"annotations": []}), "utf-8")
    fails(adapt(few), "has 3 images but no box to learn from")
    assert not (tmp_path / "run").exists()
