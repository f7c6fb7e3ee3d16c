"""Every block of Python in the documents runs as it stands, in order, on small models and pictures."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import cv2
import numpy as np
import pytest
from places import ROOT
from servers.mjpeg_server import MjpegServer
from tiny_detector import use_tiny_detector, write_pictures
from tiny_model import tiny_bundle

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OTHERS = {"annotate.md"}  # calls of another tool, which open its window
WITH_PYTHON = [page for page in PAGES if BLOCK.search(page.read_text("utf-8")) and page.name not in OTHERS]
# what is replaced, to take seconds: hundreds of steps of a detector by two of a tiny one
SHORT = {'"optim.steps": 600': '"model.weights": "none", "model.input_size": [64, 96], **FEW'}
SHORT |= {'out="runs/adapted")': 'out="runs/adapted", settings=FEW)', "quiet=True)": "quiet=True, settings=FEW)"}
SHORT |= {'"/mnt/site"': '"site"'}  # a place that the test may write to
FEW = {"optim.steps": 2, "optim.batch": 2, "workers": 0, "curves": False}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with what the pages name."""
    pytest.importorskip("supervision", reason="of the extra python")
    use_tiny_detector(monkeypatch)
    tiny_bundle(tmp_path / "bundle")
    shutil.copytree(write_pictures(tmp_path / "source", 6).parent / "images", tmp_path / "frames")
    (tmp_path / "source" / "data.json").replace(tmp_path / "source" / "train.json")
    write_pictures(tmp_path / "target", 4, seed=1).replace(tmp_path / "target" / "val.json")
    shutil.copytree(tmp_path / "frames", tmp_path / "target" / "frames")
    cv2.imwrite(str(tmp_path / "street.jpg"), np.full((128, 192, 3), 90, np.uint8))
    writer = cv2.VideoWriter(str(tmp_path / "video.mp4"), cv2.VideoWriter.fourcc(*"mp4v"), 10, (192, 128))
    for _ in range(11):
        writer.write(np.zeros((128, 192, 3), np.uint8))
    writer.release()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", WITH_PYTHON, ids=lambda page: page.name)
def test_python__in_pages_runs(page: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = BLOCK.findall(page.read_text("utf-8"))
    names: dict[str, object] = {"FEW": FEW, "bundle": place / "bundle"}
    with MjpegServer() as camera:
        for block in blocks:
            text = block.replace("rtsp://camera/1", camera.url)
            for before, after in SHORT.items():
                text = text.replace(before, after)
            exec(compile(text, f"{page.name}: {block[:40]}", "exec"), names)
    assert ("car" in capsys.readouterr().out) == any("print(" in block for block in blocks)


def test_python__page_is_found() -> None:
    assert [page.name for page in WITH_PYTHON] == ["python.md", "stores.md"]
