"""The ways of the pages to begin with, walked as they are written: each block in order, on tiny data."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import cv2
import numpy as np
import pytest
from places import ROOT
from shell_blocks import Line, blocks

pytest.importorskip("torch", reason="trains")

from tiny_detector import use_tiny_detector, write_pictures

from ptedge import cli
from ptedge.signals import unwatch
from ptedge.training.recipes.recipe import SCHEDULES, Schedule

FEW = Schedule(passes=1.0, fewest=2, most=(2, 2), warm_part=2)  # instead of hundreds of steps
# lines that are not run, and why
NOT_HERE = {"pip": "would install into the environment of the tests"}
# commands that judge a model, and may find one of two steps bad: its scores are all but equal
JUDGES = {"verify"}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the pages name: a YOLO data set and videos; a detector and a schedule that take seconds."""
    use_tiny_detector(monkeypatch)
    monkeypatch.setattr("ptedge.training.pretrain.load_imagenet", lambda *_: "random weights, as this is a test")
    monkeypatch.setattr("ptedge.training.data.worker_count", lambda *_: 0)
    for kind in SCHEDULES:
        monkeypatch.setitem(SCHEDULES, kind, FEW)
    monkeypatch.chdir(tmp_path)
    write_pictures(tmp_path / "made", 6)
    convert = ("ptedge", "data", "convert", "made/data.json", "--to", "yolo", "--out", "labelled")
    walk(Line("made", convert), monkeypatch)
    shutil.copytree(tmp_path / "labelled", tmp_path, dirs_exist_ok=True)
    (tmp_path / "videos").mkdir()
    for path in (tmp_path / "videos" / "drive.mp4", tmp_path / "video.mp4"):
        writer = cv2.VideoWriter(str(path), cv2.VideoWriter.fourcc(*"mp4v"), 10, (96, 64))
        for number in range(6):
            frame = np.full((64, 96, 3), 100, np.uint8)
            frame[20:40, 10 + 8 * number : 34 + 8 * number] = (200, 40, 40)
            writer.write(frame)
        writer.release()
    return tmp_path


def walk(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run one line as the shell would."""
    if line.program in NOT_HERE:
        return
    assert line.program == "ptedge", line
    monkeypatch.setattr(sys, "argv", list(line.words))
    status: object = 0
    try:
        cli.main()
    except SystemExit as stop:
        status = stop.code
    unwatch()
    assert not status or (status == 1 and line.words[1] in JUDGES), line


@pytest.mark.parametrize("page", ["README.md", "docs/begin_videos.md"])
def test_pages__can_be_walked(page: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [line for block in blocks(ROOT / page) for line in block if line.words[:2] != ("ptedge", "demo")]
    assert len(lines) > 3
    for line in lines:
        walk(line, monkeypatch)
    assert (place / "runs" / "adapted" / "report.html").is_file()
