from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import sys
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result
from keys import key_pair
from square_finder import SIGMA, SquareFinder, write_squares
from tiny_model import tiny_bundle

from ptedge.cli import cli
from ptedge.commands.eval import format_table
from ptedge.detections import Detections
from ptedge.errors import ArtifactError, InputError, OutputError
from ptedge.figures import NO_MATPLOTLIB, can_draw


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_squares(tmp_path)


@pytest.fixture
def finder(monkeypatch: pytest.MonkeyPatch) -> SquareFinder:
    finder = SquareFinder()
    monkeypatch.setattr("ptedge.commands.eval.open_predictor", lambda path, backend, threads, trust: finder)
    return finder


def invoke(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["eval", *map(str, arguments)], catch_exceptions=False)


def test_eval__json_is_one_document(data: Path, finder: SquareFinder) -> None:
    result = invoke("model.pt", data, "--json")
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert {"images", "boxes", "AP50", "AP75", "AP", "per_class", "sigma", "model", "data"} <= set(document)
    assert document["AP50"] == 1.0
    assert document["per_class"]["person"] == {"AP50": 1.0, "AP75": 1.0, "AP": 1.0, "boxes": 1}
    assert document["sigma"]["mean_sigma"] == SIGMA
    assert {"coverage_50", "coverage_68", "coverage_90", "coverage_95"} <= set(document["sigma"])
    # one pixel of 40 to the right
    assert document["sides"]["x1"] == pytest.approx({"offset": 0.025, "spread": 0.0, "sigma": SIGMA / 40})
    assert document["sides"]["y2"] == pytest.approx({"offset": 0.0, "spread": 0.0, "sigma": SIGMA / 20})
    coverage = {f"coverage_{share}": 1.0 for share in (50, 68, 90, 95)}
    assert document["offset_removed"] == {"AP50": 1.0, "AP75": 1.0, "AP": 1.0, **coverage}
    assert document["input_size"] == [64, 96]
    assert "images" not in result.stderr, "no progress of work that takes no time"
    assert finder.closed


def test_eval__table_shows_classes_counts_and_sigma(data: Path, finder: SquareFinder) -> None:
    result = invoke("model.pt", data)
    assert result.exit_code == 0
    assert "coco: 3 images, 2 boxes" in result.stdout
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["car", "1", "1.000", "1.000", "1.000"] in lines
    assert ["all", "2", "1.000", "1.000", "1.000"] in lines
    assert "over 2 true positives" in result.stdout
    assert ["offset", "+0.025", "+0.000", "+0.025", "+0.000"] in [line[:5] for line in lines]
    assert ["offset", "removed", "1.000", "1.000", "1.000", "1.000", "1.000", "1.000", "1.000"] in lines


def test_eval__convention_is_named_and_moves_the_number(data: Path, finder: SquareFinder) -> None:
    assert json.loads(invoke("model.pt", data, "--json").stdout)["convention"] == "voc"
    document = json.loads(invoke("model.pt", data, "--json", "--convention", "voc-labelled").stdout)
    assert (document["convention"], document["images"]) == ("voc-labelled", 2)  # the third has no object
    said = invoke("model.pt", data, "--convention", "coco").stdout
    assert "AP50, AP75: COCO 101-point, images without objects included" in said
    assert invoke("model.pt", data, "--convention", "voc07").exit_code == 2


def test_eval__limit_takes_the_first_images(data: Path, finder: SquareFinder) -> None:
    document = json.loads(invoke("model.pt", data, "--json", "--limit", "1").stdout)
    assert (document["images"], document["boxes"]) == (1, 1)
    assert document["per_class"]["person"] == {"AP50": None, "AP75": None, "AP": None, "boxes": 0}


def test_eval__out_holds_results_detections_and_pictures(data: Path, finder: SquareFinder, tmp_path: Path) -> None:
    out = tmp_path / "made" / "here"
    result = invoke("model.pt", data, "--json", "--out", out, "--pictures", "2")
    assert json.loads((out / "results.json").read_text()) == json.loads(result.stdout)
    rows = json.loads((out / "detections.json").read_text())
    # ids are those of the user's file
    assert [(row["image_id"], row["category_id"]) for row in rows] == [(10, 3), (20, 7)]
    assert rows[0]["bbox"] == [11, 20, 40, 20]
    assert rows[0]["sigma"] == [SIGMA] * 4
    pictures = sorted((out / "pictures").iterdir())
    assert [picture.name for picture in pictures] == ["001-1.jpg", "002-2.jpg"]
    assert cv2.imread(str(pictures[0])).shape == (60, 80, 3)


def test_eval__out_holds_a_picture_of_the_sides(data: Path, finder: SquareFinder, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    out = tmp_path / "out"
    for _ in range(2):
        assert invoke("model.pt", data, "--out", out, "--pictures", "0").exit_code == 0
    assert cv2.imread(str(out / "sides.png")) is not None
    assert (out / "earlier-1" / "sides.png").is_file()  # steps aside with the rest


def test_eval__without_matplotlib_one_line_says_so(
    data: Path, finder: SquareFinder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = invoke("model.pt", data, "--out", tmp_path / "out")
    assert result.exit_code == 0 and (tmp_path / "out" / "results.json").is_file()
    assert f"no sides.png: {NO_MATPLOTLIB}" in result.stderr.splitlines()
    assert not (tmp_path / "out" / "sides.png").exists()


def test_eval__nothing_found_gives_nulls(
    data: Path, finder: SquareFinder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finder, "detect", lambda image: Detections.empty())
    result = invoke("model.pt", data, "--json", "--out", tmp_path / "out")

    def refuse(text: str) -> None:
        raise AssertionError(f"{text} is not JSON")

    document = json.loads(result.stdout, parse_constant=refuse)
    assert document["AP50"] == 0.0 and document["sides"]["x1"] == {"offset": None, "spread": None, "sigma": None}
    assert set(document["offset_removed"].values()) == {None}
    assert "sides.png" in result.stderr and not (tmp_path / "out" / "sides.png").exists()
    assert "nothing to judge" in invoke("model.pt", data).stdout


def test_eval__a_model_without_sigma(data: Path, finder: SquareFinder, monkeypatch: pytest.MonkeyPatch) -> None:
    found, none = finder.detect, np.zeros((1, 4), np.float32)
    monkeypatch.setattr(
        finder, "detect", lambda image: dataclasses.replace(d, sigma=none) if len(d := found(image)) else d
    )
    lines = [line.split() for line in invoke("model.pt", data).stdout.splitlines()]
    assert ["sigma", "-", "-", "-", "-"] in [line[:5] for line in lines]
    assert ["offset", "removed", "1.000", "1.000", "1.000", "-", "-", "-", "-"] in lines


def test_eval__detections_file_gives_pycocotools_the_same_ap(data: Path, finder: SquareFinder, tmp_path: Path) -> None:
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    invoke("model.pt", data, "--out", tmp_path / "out")
    with contextlib.redirect_stdout(io.StringIO()):
        truth = COCO(str(data))
        run = COCOeval(truth, truth.loadRes(str(tmp_path / "out" / "detections.json")), "bbox")
        run.evaluate()
        run.accumulate()
        run.summarize()
    assert run.stats[0] == pytest.approx(json.loads((tmp_path / "out" / "results.json").read_text())["AP"])


def test_eval__help_shows_an_example() -> None:
    assert "ptedge eval runs/" in invoke("--help").output


def test_format_table__nothing_found() -> None:
    document: dict[str, Any] = {
        **{"model": "m", "model_hash": "00", "input_size": [16, 16], "data": "d", "data_format": "voc"},
        **{"images": 1, "boxes": 0, "AP50": None, "AP75": None, "AP": None, "dropped": {"no area": 2}},
        **{"per_class": {"car": {"AP50": None, "AP75": None, "AP": None, "boxes": 0}}, "sigma": {"matches": 0}},
    }
    text = format_table(document)
    assert "2 boxes, no area" in text
    assert ["car", "0", "-", "-", "-"] in [line.split() for line in text.splitlines()]
    assert "nothing to judge" in text


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    """YOLO data with three images to train on and one to score on, of which one line is twice there."""
    for part, count in (("train", 3), ("val", 1)):
        for i in range(count):
            picture = tmp_path / "images" / part / f"{i}.png"
            label = tmp_path / "labels" / part / f"{i}.txt"
            for file in (picture, label):
                file.parent.mkdir(parents=True, exist_ok=True)
            assert cv2.imwrite(str(picture), np.zeros((64, 96, 3), np.uint8))
            label.write_text("0 0.5 0.5 0.25 0.25\n" * (1 if part == "train" else 2))
    path = tmp_path / "data.yaml"
    path.write_text("train: images/train\nval: images/val\nnames: [car, person]")
    return path


def test_eval__scores_val_and_says_so(parts: Path, finder: SquareFinder) -> None:
    document = json.loads(invoke("model.pt", parts, "--json").stdout)
    assert (document["images"], document["boxes"], document["split"]) == (1, 1, "val")
    assert document["dropped"] == {"duplicate box": 1}
    table = invoke("model.pt", parts).stdout
    assert "yolo, split val: 1 images, 1 boxes" in table and "left out while reading: 1 boxes, duplicate box" in table


def test_eval__split(parts: Path, finder: SquareFinder) -> None:
    assert json.loads(invoke("model.pt", parts, "--split", "train", "--json").stdout)["images"] == 3
    with pytest.raises(InputError, match="no split 'test'"):
        invoke("model.pt", parts, "--split", "test")
    parts.write_text("train: images/train\nnames: [car, person]")
    with pytest.raises(InputError, match="no split to score on"):
        invoke("model.pt", parts)


def test_eval__an_earlier_evaluation_steps_aside(data: Path, finder: SquareFinder, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "out").mkdir()
    (out / "notes.txt").write_text("mine")
    invoke("model.pt", data, "--out", out, "--pictures", "3")
    before = {path.name: path.read_bytes() for path in (out / "pictures").iterdir()}
    result = invoke("model.pt", data, "--out", out, "--pictures", "1")
    assert f"{out} held an earlier evaluation; it is in {out / 'earlier-1'} now" in result.stderr
    assert sorted(p.name for p in out.iterdir()) == [
        *("detections.json", "earlier-1", "notes.txt", "pictures", "results.json"),
        *(["sides.png"] if can_draw() else []),
    ]
    assert len(list((out / "pictures").iterdir())) == 1  # not those of both
    assert {path.name: path.read_bytes() for path in (out / "earlier-1" / "pictures").iterdir()} == before


@pytest.mark.parametrize(("name", "text"), [("results.json", '{"mine": 1}'), ("detections.json", "[]")])
def test_eval__what_is_of_no_evaluation_is_not_written_over(
    data: Path, finder: SquareFinder, tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / name).write_text(text)
    with pytest.raises(OutputError, match=rf"{name} is there already"):
        invoke("model.pt", data, "--out", tmp_path / "out")
    assert [(p.name, p.read_text()) for p in (tmp_path / "out").iterdir()] == [(name, text)]


def test_eval__signature_is_told_and_checked_with_trust(data: Path, tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "b", class_names=("car", "person")).path
    assert "signature: none: its hashes show that it is whole" in invoke(bundle, data, "--backend", "cpu").stderr
    _, public = key_pair(tmp_path)
    with pytest.raises(ArtifactError, match="nobody vouches"):
        invoke(bundle, data, "--backend", "cpu", "--trust", public)
