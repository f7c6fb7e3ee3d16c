"""``ptedge jitter`` on pictures and a bundle."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result
from made_answers import found
from numpy.typing import NDArray
from tiny_model import HEIGHT, WIDTH, tiny_bundle

from ptedge.cli import cli
from ptedge.commands.jitter import detect_in_order
from ptedge.detections import Detections
from ptedge.errors import InputError
from ptedge.frames.source import open_frames


class Counting:
    """A model whose box is as far right as it was asked before."""

    class_names, input_size, model_hash = ("car",), (HEIGHT, WIDTH), "0" * 64

    def __init__(self) -> None:
        self.asked = 0

    def detect(self, image: NDArray[np.uint8]) -> Detections:
        self.asked += 1
        return found((0.9, 0, [self.asked, 5, self.asked + 20, 25]))

    def close(self) -> None:
        """Nothing."""


def write_frames(folder: Path, sizes: Iterable[tuple[int, int]]) -> Path:
    folder.mkdir()
    for i, (height, width) in enumerate(sizes):
        cv2.imwrite(str(folder / f"{i:04d}.png"), np.full((height, width, 3), i, np.uint8))
    return folder


def run(*words: object) -> Result:
    return CliRunner().invoke(cli, ["jitter", *map(str, words)])


def test_jitter__constant_answers_do_not_tremble(tmp_path: Path) -> None:
    bundle, frames = tiny_bundle(tmp_path / "bundle").path, write_frames(tmp_path / "frames", [(HEIGHT, WIDTH)] * 25)
    document: dict[str, Any] = json.loads(run(bundle, frames, "--json").stdout)
    assert (document["frames"], document["tracks"], document["windows"]) == (25, 2, 46)
    assert document["sides"]["x1"] == {"jitter": 0.0, "sigma": pytest.approx(0.02185, abs=1e-4)} | {
        "least_scale": 0.0,
        "error": 0.0,
    }
    text = run(bundle, frames).stdout
    assert "2 tracks, 46 times three frames in a row" in text
    assert text.strip().endswith("nothing against sigma; it may be too small all the same")


def test_jitter__too_few_frames_are_told(tmp_path: Path) -> None:
    bundle, frames = tiny_bundle(tmp_path / "bundle").path, write_frames(tmp_path / "frames", [(HEIGHT, WIDTH)] * 25)
    assert "too few to say anything: 20 are needed" in run(bundle, frames, "--limit", 9).stdout
    assert "0 tracks" in run(bundle, frames, "--min-score", 0.95).stdout


def test_detect_in_order__what_cannot_be_read_keeps_its_place(tmp_path: Path) -> None:
    frames = write_frames(tmp_path / "frames", [(HEIGHT, WIDTH)] * 7)
    (frames / "0002.png").write_bytes(b"no picture")
    source = open_frames(frames, live=False)
    detections, size = detect_in_order(Counting(), source)
    assert [len(one) for one in detections] == [1, 1, 0, 1, 1, 1, 1]
    assert size == (WIDTH, HEIGHT) and len(source.skipped) == 1


def test_detect_in_order__every_second_frame_has_no_gaps(tmp_path: Path) -> None:
    frames = write_frames(tmp_path / "frames", [(HEIGHT, WIDTH)] * 7)
    detections, _ = detect_in_order(Counting(), open_frames(frames, stride=2, live=False))
    assert [one.boxes[0, 0] for one in detections] == [1, 2, 3, 4]


def test_detect_in_order__frames_of_two_sizes_are_no_video(tmp_path: Path) -> None:
    frames = write_frames(tmp_path / "frames", [(HEIGHT, WIDTH), (HEIGHT, WIDTH + 2)])
    with pytest.raises(InputError, match="has frames of 96 x 64 and of 98 x 64 pixels"):
        detect_in_order(Counting(), open_frames(frames, live=False))
