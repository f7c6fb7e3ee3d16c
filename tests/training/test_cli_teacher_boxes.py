"""``ptedge adapt --teacher-boxes`` end to end on a handful of tiny pictures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tiny_detector import write_pictures
from training_shell import ADAPT_FILES, Shell, assert_equal, comparable, fails, lines, summary

from ptedge.artifacts.checkpoint import load_checkpoint


@pytest.fixture
def found(tmp_path: Path, target_frames: Path) -> Path:
    """What a perfect detector would find in the target's frames, as a results list."""
    document = json.loads((target_frames.parent / "data.json").read_text("utf-8"))
    names = {image["id"]: image["file_name"] for image in document["images"]}
    rows = [
        {"image_id": names[a["image_id"]], "category_id": a["category_id"], "bbox": a["bbox"], "score": 0.9}
        for a in document["annotations"]
    ]
    path = tmp_path / "found.json"
    path.write_text(json.dumps([*rows, rows[0] | {"image_id": "elsewhere.png"}]), "utf-8")
    return path


def test_adapt__with_teacher_boxes(
    ptedge: Shell, pretrained: Path, target_frames: Path, found: Path, tmp_path: Path
) -> None:
    words, run = ["--target", target_frames, "--source-free"], tmp_path / "run"
    assert ptedge.adapt(pretrained, tmp_path / "plain", *words)[0] == 0
    status, err = ptedge.adapt(pretrained, run, *words, "--teacher-boxes", found, sets=("teacher_boxes.sigma=0.0",))
    assert status == 0, err
    assert f"boxes of another detector {found}: 4 in 4 of 5 frames; 1 of its images are no frame of the target" in err
    assert "sides of the other detector: sigma 0.05, as " in err  # a model of one step finds no ten of them
    assert {path.name for path in run.iterdir()} == ADAPT_FILES
    assert lines(run)[0]["pseudo_score"] != lines(tmp_path / "plain")[0]["pseudo_score"]
    assert lines(run)[0]["monitor"] != {} and summary(run)["foreign_boxes"] == 4
    assert load_checkpoint(run / "model.pt").lineage.data == (str(target_frames), str(found))


def test_adapt__resume_with_teacher_boxes_equals_a_straight_run(
    ptedge: Shell, pretrained: Path, target_frames: Path, found: Path, tmp_path: Path
) -> None:
    few = write_pictures(tmp_path / "few", 3, seed=5)
    straight, parts = tmp_path / "straight", tmp_path / "parts"
    words: list[Any] = ["--target", target_frames, "--source-free", "--labels", few, "--teacher-boxes", found]
    assert ptedge.adapt(pretrained, straight, *words, steps=4)[0] == 0
    assert ptedge.adapt(pretrained, parts, *words, steps=2)[0] == 0
    status, err = ptedge("adapt", pretrained, *words, "--out", parts, "--resume", sets=["optim.steps=4"])
    assert status == 0, err
    assert_equal(straight, parts)
    assert comparable(straight) == comparable(parts)
    resumed = ptedge("adapt", pretrained, *words[:-2], "--out", parts, "--resume", sets=["optim.steps=5"])
    fails(resumed, "what --teacher-boxes names is not what it was begun with")


def test_adapt__bad_teacher_boxes_are_one_sentence(
    ptedge: Shell, pretrained: Path, target_frames: Path, found: Path, tmp_path: Path
) -> None:
    words = ["--target", target_frames, "--source-free", "--teacher-boxes", found]
    whole = found.read_text("utf-8")
    for old, new, part in (
        ("0.9", "90", "has the score 90; it must be a number from 0 to 1"),
        ("0.9", "NaN", "has the score nan"),
        ('"category_id": ', '"category_id": 7', "holds no box of car, person"),
        (".png", ".x", "none of its 5 images is a frame of"),
    ):
        found.write_text(whole.replace(old, new), "utf-8")
        fails(ptedge.adapt(pretrained, tmp_path / "run", *words), part)
    found.unlink()
    fails(ptedge.adapt(pretrained, tmp_path / "run", *words), "found.json cannot be read")
    assert not (tmp_path / "run").exists()
