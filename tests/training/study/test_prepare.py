"""Described data written as files, counted, and kept apart from others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_benchmarks import write_sim10k

from ptedge.data import open_dataset
from ptedge.errors import InputError
from ptedge.training.study.load import load_study
from ptedge.training.study.plan import Study
from ptedge.training.study.prepare import count_what_is_there, located, make_ready

TOML = """
start = "a"
[data]
root = "data"
[[row]]
name = "a"
kind = "train"
"""
PART = """
[describe.{0}]
format = "sim10k"
root = "VOC2012"
classes = ["car"]
[describe.{0}.official]
images = {1}
told_by = "us"
"""
PARTS = {"source": "a", "val": "a", "frames": "b"}


def study_of(folder: Path, images: int = 12) -> Study:
    text = TOML + "".join(PART.format(part, images) for part in ("source", "val", "oracle"))
    (folder / "s.toml").write_text(text, "utf-8")
    return located(load_study(folder / "s.toml"), folder / "out")


def test_make_ready__writes_descriptions_frames_and_counts(tmp_path: Path) -> None:
    write_sim10k(tmp_path / "data")
    study = make_ready(study_of(tmp_path), tmp_path / "out", PARTS, allow=False)
    assert [(one.part, one.images, dict(one.boxes)) for one in study.counted] == [
        (part, 12, {"car": 10 - 2}) for part in ("source", "val", "oracle")
    ]
    again = open_dataset(study.data.source)  # a file that any command takes
    assert len(again) == 12 and again.class_names == ("car",)
    frames = Path(study.data.frames).read_text("utf-8").splitlines()
    assert frames == [str(sample.path) for sample in again.samples]
    assert json.loads((tmp_path / "out" / "data" / "counts.json").read_text("utf-8"))["val"]["images"] == 12


def test_make_ready__only_what_rows_need(tmp_path: Path) -> None:
    write_sim10k(tmp_path / "data")
    study = make_ready(study_of(tmp_path), tmp_path / "out", {"source": "a", "val": "a"}, allow=False)
    assert [one.part for one in study.counted] == ["source", "val"]
    assert not (tmp_path / "out" / "data" / "frames.txt").exists()


def test_make_ready__refuses_counts_that_are_off_and_writes_nothing(tmp_path: Path) -> None:
    write_sim10k(tmp_path / "data")
    with pytest.raises(InputError, match=r"source has 12 images, not 13 \(us\).*give --allow"):
        make_ready(study_of(tmp_path, 13), tmp_path / "out", PARTS, allow=False)
    assert not (tmp_path / "out").exists()
    study = make_ready(study_of(tmp_path, 13), tmp_path / "out", PARTS, allow=True)
    assert all(one.off == ["12 images, not 13"] for one in study.counted)


def test_make_ready__refuses_a_folder_that_was_begun_with_other_data(tmp_path: Path) -> None:
    write_sim10k(tmp_path / "data")
    make_ready(study_of(tmp_path), tmp_path / "out", PARTS, allow=False)
    write_sim10k(tmp_path / "data", count=14)
    before = (tmp_path / "out" / "data" / "frames.txt").read_text("utf-8")
    with pytest.raises(InputError, match="begun with other data: source had 12 images and 8 boxes, and has 14"):
        make_ready(study_of(tmp_path, 14), tmp_path / "out", PARTS, allow=True)
    assert (tmp_path / "out" / "data" / "frames.txt").read_text("utf-8") == before


def test_make_ready__names_an_image_that_is_missing(tmp_path: Path) -> None:
    write_sim10k(tmp_path / "data")
    next((tmp_path / "data" / "VOC2012" / "JPEGImages").iterdir()).unlink()
    with pytest.raises(InputError, match=r"\.jpg"):
        make_ready(study_of(tmp_path), tmp_path / "out", PARTS, allow=False)


def test_count_what_is_there__writes_nothing(tmp_path: Path) -> None:
    counted, missing = count_what_is_there(study_of(tmp_path), tmp_path / "out", PARTS)
    assert counted == [] and len(missing) == 3 and "does not exist" in missing[0]
    write_sim10k(tmp_path / "data")
    counted, missing = count_what_is_there(study_of(tmp_path), tmp_path / "out", PARTS)
    assert [one.images for one in counted] == [12, 12, 12] and missing == []
    assert not (tmp_path / "out").exists()
