"""Data sets written as another format and read again."""

from __future__ import annotations

import itertools
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from labelled_files import image

from ptedge.data import Dataset, Sample, open_dataset, require_images
from ptedge.data.report import with_sizes
from ptedge.data.writing import Format, convert_dataset, images_folder
from ptedge.errors import InputError, OutputError

FORMATS: tuple[Format, ...] = ("coco", "voc", "yolo", "kitti")
Row = tuple[tuple[float, float, float, float], int, bool]


def dataset(
    folder: Path,
    images: dict[str, Sequence[Row]],
    classes: tuple[str, ...] = ("car", "bus"),
    size: tuple[int, int] = (100, 80),
    split: str | None = None,
) -> Dataset:
    samples = [
        Sample(
            image(folder / name, *size),
            *size,
            np.array([row[0] for row in rows], np.float32).reshape(-1, 4),
            np.array([row[1] for row in rows], np.int64),
            np.array([row[2] for row in rows], np.bool_),
            name,
        )
        for name, rows in images.items()
    ]
    return Dataset(folder, "made", classes, tuple(samples), split=split)


def opened(folder: Path, kind: Format) -> Dataset:
    place = {"coco": folder / "annotations.json", "yolo": folder / "data.yaml"}.get(kind, folder)
    found = with_sizes(open_dataset(place))
    assert found.format == kind and not found.dropped and not found.passed_over
    require_images(found)
    return found


def by_image(data: Dataset, ignored: bool) -> dict[str, np.ndarray]:
    """Boxes [N, 5], the label first, by the name of their image; of ignore regions the label is left out."""
    found = {}
    for sample in data.samples:
        rows = sample.ignore == ignored
        names = [sorted(data.class_names).index(data.class_names[i]) if not ignored else 0 for i in sample.labels[rows]]
        boxes = np.concatenate((np.array(names).reshape(-1, 1), sample.boxes[rows]), axis=1)
        found[sample.path.stem] = np.unique(boxes, axis=0) if ignored else boxes
    return found


def assert_equal(found: Dataset, expected: Dataset, with_ignored: bool) -> None:
    for ignored in (False, True) if with_ignored else (False,):
        ours, theirs = by_image(found, ignored), by_image(expected, ignored)
        assert ours.keys() == theirs.keys()
        for name, boxes in theirs.items():
            assert ours[name].shape == boxes.shape
            np.testing.assert_allclose(ours[name], boxes, rtol=0, atol=0.01)


@st.composite
def rows_in(draw: st.DrawFn, width: int, height: int) -> list[Row]:
    """Boxes anywhere in an image, an ordinary one of each class among them."""

    def part(side: int) -> st.SearchStrategy[tuple[float, float]]:
        start = st.floats(0, side - 0.1)
        return st.tuples(start, st.floats(0.05, 1)).map(lambda p: (p[0], p[0] + max(0.05, p[1] * (side - p[0]))))

    count = draw(st.integers(2, 5))
    rows: list[Row] = []
    for i in range(count):
        (x1, x2), (y1, y2) = draw(part(width)), draw(part(height))
        box = tuple(np.array([x1, y1, min(x2, width), min(y2, height)], np.float32).tolist())
        rows.append((box, i % 2, i > 1 and draw(st.booleans())))  # type: ignore[arg-type]
    return rows


@pytest.mark.parametrize(("first", "second"), list(itertools.product(FORMATS, FORMATS)))
@given(size=st.sampled_from([(100, 80), (1919, 7), (2048, 1024)]), data=st.data())
@settings(max_examples=5, deadline=None)
def test_convert__boxes_go_through_every_pair_of_formats(
    first: Format, second: Format, size: tuple[int, int], data: st.DataObject
) -> None:
    rows = {name: data.draw(rows_in(*size)) for name in ("a.png", "b.png")}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = dataset(folder / "made", rows, size=size)
        convert_dataset(made, first, folder / "first", "link")
        between = opened(folder / "first", first)
        lost = convert_dataset(between, second, folder / "second", "link")
        found = opened(folder / "second", second)
        assert set(found.class_names) == set(made.class_names)
        assert_equal(found, made, "yolo" not in (first, second))
        assert not [reason for reason in lost if "given another name" in reason]


CAR: Row = ((10.25, 20.5, 30.0, 40.0), 0, False)
BUS: Row = ((1.0, 2.0, 3.5, 4.0), 1, False)
ODD: Row = ((0.1, 1e-6, 99.99, 80.0), 1, False)
NAMES = ("a b.png", "left/a b.png", "left/1 -1.jpg", "right/車 ü%20#.png", "images/x.png", "labels/x.png", "A B.jpg")


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("way", ["copy", "link"])
def test_convert__names_with_spaces_accents_and_folders(tmp_path: Path, kind: Format, way: str) -> None:
    boxes: list[Row] = [((10.0 + i, 20, 30, 40), i % 2, False) for i in range(len(NAMES))]
    made = dataset(tmp_path / "made", {name: [box] for name, box in zip(NAMES, boxes, strict=True)}, split="val")
    lost = convert_dataset(made, kind, tmp_path / "out", way)  # type: ignore[arg-type]
    assert sum(count for reason, count in lost.items() if "given another name" in reason) >= 1  # A B and a b
    found = opened(tmp_path / "out", kind)
    assert len(found) == len(NAMES)
    assert sorted(s.boxes[0, 0] for s in found.samples) == [10 + i for i in range(len(NAMES))]
    sources = {sample.boxes[0, 0]: sample.path for sample in made.samples}
    for sample in found.samples:
        assert sample.path.is_symlink() is (way == "link")
        assert sample.path.read_bytes() == sources[sample.boxes[0, 0]].read_bytes()
    if kind in ("voc", "kitti"):
        assert open_dataset(tmp_path / "out", split="val").split == "val"


def test_convert__what_a_format_cannot_hold_is_counted(tmp_path: Path) -> None:
    crowd: Row = ((50, 50, 60, 60), 0, True)
    region: Row = ((70, 50, 80, 60), -1, True)
    made = dataset(tmp_path / "made", {"a.png": [CAR, crowd, region], "b.png": []}, ("car", "traffic light", "7"))
    lost = {kind: convert_dataset(made, kind, tmp_path / kind) for kind in FORMATS}
    each = {"ignore region of every class, written once for each class": 1}
    assert lost["coco"] == each
    assert lost["yolo"] == {"ignore region, which YOLO cannot hold": 2}
    assert lost["voc"] == each  # the region names every class
    assert lost["kitti"] == {
        "ignore region of one class, written as DontCare, which stands for every class": 1,
        "class traffic light written as traffic_light": 1,
        "class 7 written as class_7": 1,
        "class traffic light, which has no box; KITTI has no list of classes": 1,
        "class 7, which has no box; KITTI has no list of classes": 1,
    }
    empty = convert_dataset(dataset(tmp_path / "made2", {"a.png": [CAR]}), "kitti", tmp_path / "kitti2")
    assert empty == {"class bus, which has no box; KITTI has no list of classes": 1}
    assert opened(tmp_path / "yolo", "yolo").class_names == made.class_names
    assert [len(sample.boxes) for sample in opened(tmp_path / "voc", "voc").samples] == [5, 0]


def test_convert__files_by_hand(tmp_path: Path) -> None:
    made = dataset(tmp_path / "made", {"a.png": [CAR, (BUS[0], 1, True)]}, split="val")
    for kind in FORMATS:
        convert_dataset(made, kind, tmp_path / kind)
    assert (tmp_path / "yolo" / "data.yaml").read_text() == 'path: .\nval: images\nnames:\n  0: "car"\n  1: "bus"\n'
    line = "0 0.2012500000 0.3781250000 0.1975000000 0.2437500000\n"
    assert (tmp_path / "yolo" / "labels" / "a.txt").read_text() == line
    assert (tmp_path / "kitti" / "training" / "label_2" / "a.txt").read_text() == (
        "car -1 3 -10 10.25 20.5 30 40 -1 -1 -1 -1000 -1000 -1000 -10\n"
        "DontCare -1 -1 -10 1 2 3.5 4 -1 -1 -1 -1000 -1000 -1000 -10\n"
    )
    voc = (tmp_path / "voc" / "Annotations" / "a.xml").read_text()
    assert "<xmin>11.25</xmin>" in voc and "<ymin>21.5</ymin>" in voc and "<xmax>30</xmax>" in voc
    assert voc.count("<difficult>1</difficult>") == 1 == voc.count("<width>100</width>")
    assert (tmp_path / "voc" / "ImageSets" / "Main" / "val.txt").read_text() == "a\n"


def test_convert__as_few_digits_as_needed(tmp_path: Path) -> None:
    made = dataset(tmp_path / "made", {"a.png": [ODD]})
    for kind in ("voc", "kitti"):
        convert_dataset(made, kind, tmp_path / kind)
    assert " 0.1 0.000001 99.99 80 " in (tmp_path / "kitti" / "training" / "label_2" / "a.txt").read_text()
    voc = (tmp_path / "voc" / "Annotations" / "a.xml").read_text()
    for corner in ("<xmin>1.1<", "<ymin>1.000001<", "<xmax>99.99<", "<ymax>80<"):
        assert corner in voc
    np.testing.assert_array_equal(opened(tmp_path / "kitti", "kitti").samples[0].boxes, made.samples[0].boxes)


def test_convert__pycocotools_reads_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    coco = pytest.importorskip("pycocotools.coco")
    convert_dataset(dataset(tmp_path / "made", {"a.png": [CAR, BUS]}), "coco", tmp_path / "out")
    read = coco.COCO(str(tmp_path / "out" / "annotations.json"))
    assert [entry["bbox"] for entry in read.loadAnns(read.getAnnIds())] == [[10.25, 20.5, 19.75, 19.5], [1, 2, 2.5, 2]]
    assert [entry["name"] for entry in read.loadCats(read.getCatIds())] == ["car", "bus"]
    assert read.loadImgs(1)[0]["file_name"] == "images/a.png"


@pytest.mark.parametrize("kind", FORMATS)
def test_convert__nothing_is_written_over(tmp_path: Path, kind: Format) -> None:
    made = dataset(tmp_path / "made", {"a.png": [CAR]})
    convert_dataset(made, kind, tmp_path / "out")
    before = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    with pytest.raises(OutputError, match="is there already"):
        convert_dataset(made, kind, tmp_path / "out")
    assert {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("kind", FORMATS)
def test_convert__images_left_where_they_are(tmp_path: Path, kind: Format) -> None:
    made = dataset(tmp_path / "made", {"x/a.png": [CAR, BUS], "x/b.png": [BUS]})
    convert_dataset(made, kind, tmp_path / "out", "none")
    assert not images_folder(kind, tmp_path / "out").exists()
    if kind != "coco":
        os.symlink(tmp_path / "made" / "x", images_folder(kind, tmp_path / "out"))
    assert_equal(opened(tmp_path / "out", kind), made, True)


def test_convert__images_that_no_reader_would_find(tmp_path: Path) -> None:
    made = dataset(tmp_path / "made", {"a.png": [CAR]})
    made.samples[0].path.unlink()
    with pytest.raises(InputError, match="1 of 1 image files are missing"):
        convert_dataset(made, "voc", tmp_path / "out")
    assert not (tmp_path / "out").exists()
