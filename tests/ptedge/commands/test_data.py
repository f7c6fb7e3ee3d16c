"""``ptedge data``: what it prints, what it writes, exit status."""

from __future__ import annotations

import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner

from ptedge.commands.data import data
from ptedge.data import open_dataset
from ptedge.data.report import statistics, suggest_anchor_sizes, with_sizes
from ptedge.errors import InputError


def make(folder: Path, boxes: list[list[int]], width: int = 100, height: int = 50) -> Path:
    """Two images of 100 x 50, the first with all boxes (x, y, width, height), and a class without boxes."""
    images = [{"id": i, "file_name": f"{i}.png", "width": width, "height": height} for i in (1, 2)]
    annotations = [{"image_id": 1, "category_id": 1, "bbox": box} for box in boxes]
    categories = [{"id": 1, "name": "car"}, {"id": 2, "name": "bus"}]
    for i in (1, 2):
        assert cv2.imwrite(str(folder / f"{i}.png"), np.zeros((50, 100, 3), np.uint8))
    path = folder / "labels.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


def test_check__sound(tmp_path: Path) -> None:
    result = CliRunner().invoke(data, ["check", str(make(tmp_path, [[0, 0, 10, 10]]))])
    assert result.exit_code == 0
    assert "2 images, 1 boxes; all sound" in result.stdout


def test_check__reports_every_kind_of_problem(tmp_path: Path) -> None:
    path = make(tmp_path, [[0, 0, 10, 10], [5, 5, 0, 0]], width=90)
    (tmp_path / "2.png").write_bytes(b"broken")
    result = CliRunner().invoke(data, ["check", str(path), "--json"])
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert [(Path(p["file"]).name, p["kind"]) for p in document["problems"]] == [
        ("1.png", "size"),
        ("2.png", "corrupt"),
    ]
    assert document["dropped"] == {"no area": 1} and document["ok"] is False
    (tmp_path / "2.png").unlink()
    result = CliRunner().invoke(data, ["check", str(path)])
    assert result.exit_code == 1
    assert "missing" in result.stdout and "100 x 50, its annotation says 90 x 50" in result.stdout


def test_check__twelve_bits_in_sixteen(tmp_path: Path) -> None:
    path = make(tmp_path, [[0, 0, 10, 10]])
    assert cv2.imwrite(str(tmp_path / "2.png"), np.full((50, 100), 3520, np.uint16))
    result = CliRunner().invoke(data, ["check", str(path)])
    assert result.exit_code == 1
    assert "2.png has 16 bits and no value above 3520" in result.stdout and "at most 13 of 255" in result.stdout
    assert cv2.imwrite(str(tmp_path / "2.png"), np.full((50, 100), 35200, np.uint16))
    assert CliRunner().invoke(data, ["check", str(path)]).exit_code == 0


def test_check__classes_left_out_on_purpose_are_no_fault(tmp_path: Path) -> None:
    make(tmp_path, [[0, 0, 10, 10]])
    toml = tmp_path / "d.toml"
    toml.write_text('format = "coco"\nannotations = "labels.json"\nclasses = ["bus"]')
    result = CliRunner().invoke(data, ["check", str(toml)])
    assert result.exit_code == 0
    assert "dropped  1 boxes: class not listed: car" in result.stdout


def test_check__what_was_never_read_is_a_fault_and_a_note_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "yolo"
    (folder / "images").mkdir(parents=True)
    (folder / "labels").mkdir()
    assert cv2.imwrite(str(folder / "images" / "a.png"), np.zeros((50, 100, 3), np.uint8))
    assert cv2.imwrite(str(folder / "images" / "b.png"), np.zeros((50, 100, 3), np.uint8))
    (folder / "labels" / "a.txt").write_text("0 0.5 0.5 0.2 0.2 0.9")
    (folder / "data.yaml").write_text("train: images\nnames: [car]")
    result = CliRunner().invoke(data, ["check", str(folder)])
    assert result.exit_code == 0
    assert "note     1: image without a label file" in result.stdout and "split train" in result.stdout
    assert "note     1: label line with a score or track id" in result.stdout
    (folder / "labels" / "c.txt").write_text("0 0.5 0.5 0.2 0.2")
    result = CliRunner().invoke(data, ["check", str(folder)])
    assert result.exit_code == 1
    assert "passed   1: label file without an image" in result.stdout and "1 passed over" in result.stdout
    document = json.loads(CliRunner().invoke(data, ["check", str(folder), "--json"]).stdout)
    assert document["passed_over"] == {"label file without an image": 1} and document["split"] == "train"
    assert CliRunner().invoke(data, ["check", str(folder), "--split", "val"]).exception is not None


def test_convert__what_was_there_keeps_its_content(tmp_path: Path) -> None:
    out = tmp_path / "train.json"
    for _ in range(2):
        arguments = ["convert", str(make(tmp_path, [[0, 0, 10, 10]])), "--out", str(out)]
        assert CliRunner().invoke(data, arguments).exit_code == 0
    assert (tmp_path / "train.json.earlier-1").read_bytes() == out.read_bytes()


def test_stats__by_hand(tmp_path: Path) -> None:
    path = make(tmp_path, [[0, 0, 10, 10], [0, 0, 20, 20], [0, 0, 40, 10]])
    result = CliRunner().invoke(data, ["stats", str(path), "--size", "100x400", "--json"])
    assert result.exit_code == 0
    document = json.loads(result.stdout)
    assert (document["images"], document["empty_images"], document["boxes"], document["ignored"]) == (2, 1, 3, 0)
    assert document["per_class"] == {"car": 3, "bus": 0}
    assert document["size"]["0.5"] == 20 and document["aspect"]["0.5"] == 1
    # 100 x 50 into 400 x 100 is a scale of 2: sizes 20, 40, 40; two of the means stand on the same
    assert document["anchor_sizes"] == pytest.approx([20, 40, 40])
    table = CliRunner().invoke(data, ["stats", str(path), "--size", "100x400"]).stdout
    assert "without objects 1" in table and "for an input of 100 x 400" in table


def test_stats__quantiles_in_their_order(tmp_path: Path) -> None:
    # 21 boxes of 1, 4, 9, ... square pixels in an image of their own size: quantile 5 % is the second smallest
    boxes = [[0, 0, side, 2 * side] for side in range(1, 22)]
    document = statistics(open_dataset(make(tmp_path, boxes)), (50, 100))
    assert document["size"] == {
        f"{q:g}": pytest.approx((1 + 20 * q) * 2**0.5, abs=1e-3) for q in (0.05, 0.25, 0.5, 0.75, 0.95)
    }
    assert set(document["aspect"].values()) == {2.0}
    # k-means: sides of 1 to 7, 8 to 14 and 15 to 21
    assert document["anchor_sizes"] == pytest.approx([4 * 2**0.5, 11 * 2**0.5, 18 * 2**0.5], abs=0.05)


def test_stats__without_boxes(tmp_path: Path) -> None:
    document = statistics(open_dataset(make(tmp_path, [])), (64, 64))
    assert document["size"] is None and document["anchor_sizes"] is None


def test_stats__wrong_size(tmp_path: Path) -> None:
    result = CliRunner().invoke(data, ["stats", str(make(tmp_path, [])), "--size", "100"])
    assert result.exit_code == 2 and "384x640" in result.stderr


def kitti(folder: Path) -> Path:
    for name in ("image_2", "label_2"):
        (folder / name).mkdir(parents=True)
    assert cv2.imwrite(str(folder / "image_2" / "1.png"), np.zeros((50, 100, 3), np.uint8))
    line = "0 0 0 {} 0 0 0 0 0 0 0"
    boxes = ("Car", "10 5 120 20"), ("Car", "110 5 120 20")
    (folder / "label_2" / "1.txt").write_text("\n".join(f"{name} {line.format(box)}" for name, box in boxes))
    return folder


def test_convert__reads_sizes_and_clips(tmp_path: Path) -> None:
    out = tmp_path / "out" / "new.json"
    arguments = ["convert", str(kitti(tmp_path / "kitti")), "--out", str(out), "--licence", "MIT"]
    result = CliRunner().invoke(data, arguments)
    assert result.exit_code == 0 and result.stdout == ""
    assert "1 boxes: outside the image" in result.stderr
    document = json.loads(out.read_text())
    assert document["licenses"][0]["name"] == "MIT" and "kitti" in document["info"]["description"]
    assert [(image["width"], image["height"]) for image in document["images"]] == [(100, 50)]
    assert [entry["bbox"] for entry in document["annotations"]] == [[10, 5, 90, 15]]
    assert [file.name for file in out.parent.iterdir()] == ["new.json"]


def test_with_sizes__missing_image(tmp_path: Path) -> None:
    kitti(tmp_path / "kitti")
    (tmp_path / "kitti" / "image_2" / "1.png").unlink()
    dataset = open_dataset(tmp_path / "kitti")
    with pytest.raises(InputError, match="does not exist"):
        with_sizes(dataset)
    assert suggest_anchor_sizes(dataset, (64, 64)) is None


@pytest.mark.parametrize("command", [[], ["check"], ["stats"], ["convert"]])
def test_help__shows_an_example(command: list[str]) -> None:
    result = CliRunner().invoke(data, [*command, "--help"])
    assert result.exit_code == 0 and "Example:" in result.stdout


def test_convert__draws_images_by_seed(tmp_path: Path) -> None:
    path, out = make(tmp_path, [[0, 0, 10, 10]]), tmp_path / "few.json"

    def draw(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(data, ["convert", str(path), "--out", str(out), *words])
        return result.exit_code, "" if result.exception is None else str(result.exception)

    drawn = set()
    for seed in range(6):
        assert draw("--draw", "1", "--seed", str(seed))[0] == 0
        (sample,) = open_dataset(out).samples
        drawn.add(sample.path.name)
    assert drawn == {"1.png", "2.png"}
    assert f"1 images drawn with seed {seed}" in json.loads(out.read_text("utf-8"))["info"]["description"]
    assert "has 2 images; 3 cannot be drawn" in draw("--draw", "3")[1]


@pytest.mark.parametrize("kind", ["coco", "voc", "yolo", "kitti"])
def test_convert__to_a_folder(tmp_path: Path, kind: str) -> None:
    path = make(tmp_path, [[0, 0, 10, 10], [5, 5, 20.5, 10]])  # type: ignore[list-item]
    out = tmp_path / "out"
    done = CliRunner().invoke(data, ["convert", str(path), "--to", kind, "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert f"wrote {out}: 2 images, 2 boxes" in done.stderr
    assert ("class bus, which has no box" in done.stderr) is (kind in ("voc", "kitti"))
    found = open_dataset(out / "data.yaml" if kind == "yolo" else out)
    assert found.num_boxes == 2 and all(sample.path.is_relative_to(out) for sample in found.samples)
    left = CliRunner().invoke(data, ["convert", str(path), "--to", kind, "--out", f"{out}2", "--images", "none"])
    assert ("put the images into" in left.stderr) is (kind != "coco")
