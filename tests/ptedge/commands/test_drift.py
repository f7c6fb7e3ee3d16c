from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner
from tiny_model import tiny_bundle

from ptedge.artifacts.bundle import open_bundle
from ptedge.cli import cli
from ptedge.errors import InputError


def pictures(folder: Path, brightness: int, count: int = 40) -> Path:
    folder.mkdir()
    rng = np.random.default_rng(brightness)
    for i in range(count):
        image = rng.integers(brightness, brightness + 60, (64, 96, 3), np.uint8)
        cv2.imwrite(str(folder / f"{i:03d}.png"), image)
    return folder


def call(*words: object) -> dict[str, object]:
    result = CliRunner().invoke(cli, ["drift", *map(str, words), "--json"], catch_exceptions=False)
    document: dict[str, object] = json.loads(result.stdout)
    return document


def test_drift__learns_and_tells(tmp_path: Path) -> None:
    bundle = tmp_path / "b"
    tiny_bundle(bundle)
    day, night = pictures(tmp_path / "day", 120), pictures(tmp_path / "night", 10)
    with pytest.raises(InputError, match="--learn"):
        call(bundle, day)
    assert call(bundle, day, "--learn")["learned"] is True
    kept = open_bundle(bundle).manifest.reference
    assert kept is not None and (kept.frames, kept.origin) == (40, "given")
    assert call(bundle, day)["found"] is False
    told = call(bundle, night)
    assert told["found"] is True and "darker" in json.dumps(told["moved"]) and "lens" in str(told["advice"])
    text = CliRunner().invoke(cli, ["drift", str(bundle), str(night)], catch_exceptions=False).stdout
    assert "40 frames, against 40 frames (given)" in text and "pictures are darker" in text


def test_drift__takes_evenly_spaced_frames(tmp_path: Path) -> None:
    tiny_bundle(tmp_path / "b")
    assert call(tmp_path / "b", pictures(tmp_path / "day", 120), "--learn", "--limit", "25")["frames"] == 25


def test_drift__refuses_before_the_work(tmp_path: Path) -> None:
    bundle = tmp_path / "b"
    tiny_bundle(bundle)
    frames = pictures(tmp_path / "few", 10, 5)
    for words, text in (
        ((bundle, frames, "--learn", "--out", tmp_path / "c"), "leave out --out"),
        ((bundle / "model.onnx", frames, "--learn"), "Give the folder"),
        ((tmp_path / "model.pt", frames, "--learn"), "give --out"),
        ((bundle, frames, "--learn"), "5 frames are too few"),
    ):
        with pytest.raises(InputError, match=text):
            call(*words)
