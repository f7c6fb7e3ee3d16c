"""Lines of YOLO labels: which form they have, by hand, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from labelled_files import text

from ptedge.data.build import Counts
from ptedge.data.parsing.values import Box
from ptedge.data.yolo_lines import Forms, find_forms, is_label_file, read_label, relative_box
from ptedge.errors import InputError

BOX = "0 0.35 0.5 0.3 0.5"
FACE = f"{BOX} 0.36 0.4 0.38 0.4 0.37 0.5 0.36 0.6 0.38 0.6"  # five points x y inside the box
SEEN = f"{BOX} 0.3 0.4 2 0.4 0.4 1 0.4 0.6 0 0.3 0.6 2"  # four points x y v


def boxes(folder: Path, *lines: str, kpt_shape: object = None) -> tuple[list[Box], Counts]:
    counts = Counts()
    read = read_label(text(folder / "a.txt", "\n".join(lines)), counts)
    forms = find_forms(read, kpt_shape, folder)
    return [relative_box(line, forms, counts) for line in read], counts


@pytest.mark.parametrize(
    ("line", "kpt_shape", "note"),
    [
        (BOX, None, None),
        (f"{BOX} 0.91", None, "score or track id"),
        (f"{BOX} 17", None, "score or track id"),
        (f"{BOX} 0.91 17", None, "score or track id"),
        (SEEN, ["4", "3"], "keypoints"),
        (SEEN, None, "keypoints"),  # a 2 among the flags: no coordinate is that far out
        (FACE, ["5", "2"], "keypoints"),
        (f"{BOX} 0.3 0.4 1", None, "keypoints"),  # eight columns are no polygon
        (BOX, ["17", "3"], None),
    ],
)
def test_relative_box__columns_two_to_five(tmp_path: Path, line: str, kpt_shape: object, note: str | None) -> None:
    found, counts = boxes(tmp_path, line, kpt_shape=kpt_shape)
    assert found == [(0.35, 0.5, 0.3, 0.5)]
    told = +counts.notes
    assert [note in reason for reason in told] == [True] if note else not told


def test_relative_box__around_a_polygon(tmp_path: Path) -> None:
    found, counts = boxes(tmp_path, "0 0.1 0.1 0.3 0.1 0.3 0.5", "0 0.25 0.25 0.75 0.25 0.75 0.5 0.25 0.5")
    assert found[0] == pytest.approx((0.2, 0.3, 0.2, 0.4)) and found[1] == pytest.approx((0.5, 0.375, 0.5, 0.25))
    assert not +counts.notes
    # a triangle with a corner on the image's border, beside a longer polygon or another triangle
    assert len(boxes(tmp_path, "0 0.1 0.1 0.3 0.1 0.3 1", "0 0.1 0.1 0.3 0.1 0.3 0.5")[0]) == 2


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0 0.1 0.1 0.3 0.1 0.3 1"], "may be polygons of three points, or boxes with a score and a track id"),
        ([FACE], "may be polygons or boxes with keypoints"),
        ([SEEN.replace(" 2", " 1")], "may be polygons or boxes with keypoints"),
        (["0 0.1 0.1 0.3 0.1 0.3 0.4 0.5"], "odd number of columns"),
        ([f"{BOX} 3.7"], "a score .* or a track id"),
        (["0 50 50 20 20"], "in pixels"),
        (["0 10 10 300 10 300 500"], "in pixels"),
        (["0 0.1 0.1 0.3 0.1 30.5 0.5"], "in pixels"),
        (["-1 0.5 0.5 0.1 0.1"], "the class is a whole number from 0"),
        (["0.5 0.5 0.5 0.1 0.1"], "the class is a whole number from 0"),
        (["0 0.5 0.5 0.1"], "line 1 is no YOLO label: expected class cx cy w h"),
        ([BOX, "", "0 0,5 0,5 0,1 0,1"], "line 3 is no YOLO label"),
    ],
)
def test_lines__refused_where_they_fit_no_form_or_two(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        boxes(tmp_path, *lines)


def test_find_forms__a_large_outline_of_four_points_is_a_polygon(tmp_path: Path) -> None:
    # every point lies in the "box" of the first four numbers, but it is a good outline
    found, _ = boxes(tmp_path, "0 0.5 0.5 0.7 0.5 0.7 0.7 0.5 0.7")
    assert found[0] == pytest.approx((0.6, 0.6, 0.2, 0.2))


@pytest.mark.parametrize(
    ("line", "box"),
    [
        # crosses itself, but the box of its first four numbers would reach out of the image
        ("0 0.6 0.6 0.9 0.9 0.9 0.6 0.6 0.9", (0.75, 0.75, 0.3, 0.3)),
        # a dent, all of it inside the box of the first four numbers: no two sides cross
        ("0 0.5 0.5 0.8 0.6 0.8 0.7 0.6 0.6 0.3 0.7", (0.55, 0.6, 0.5, 0.2)),
        # column six is no score
        ("0 0.35 0.5 0.3 0.5 1.4 2", (0.85, 1.25, 1.1, 1.5)),
    ],
)
def test_find_forms__outlines_that_look_a_little_like_something_else(tmp_path: Path, line: str, box: Box) -> None:
    assert boxes(tmp_path, line)[0][0] == pytest.approx(box)


@pytest.mark.parametrize("kpt_shape", ["17", ["17"], ["17", "4"], ["a", "3"], ["0", "3"], {"17": "3"}, [["17"], "3"]])
def test_find_forms__a_wrong_kpt_shape(tmp_path: Path, kpt_shape: object) -> None:
    with pytest.raises(InputError, match="kpt_shape is"):
        find_forms([], kpt_shape, tmp_path)
    assert find_forms([], ["17", "3"], tmp_path) == Forms(keypoints=56)


def test_lines__other_columns_than_kpt_shape_says(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected 56 columns"):
        boxes(tmp_path, SEEN, kpt_shape=["17", "3"])


@pytest.mark.parametrize("line", ["0 nan nan nan nan", "nan 0.5 0.5 0.1 0.1", "0 0.5 0.5 inf 0.1", "0 0.5 0.5 1e300 1"])
def test_read_label__what_is_not_finite_is_counted(tmp_path: Path, line: str) -> None:
    found, counts = boxes(tmp_path, line, BOX)
    assert found == [(0.35, 0.5, 0.3, 0.5)] and counts.dropped == {"malformed box": 1}


def test_is_label_file__by_its_first_line(tmp_path: Path) -> None:
    assert is_label_file(text(tmp_path / "a.txt", f"\n{BOX}\n"))
    assert not is_label_file(text(tmp_path / "b.txt", "This data set was exported\n"))
    assert not is_label_file(text(tmp_path / "c.txt", ""))
    (tmp_path / "d.txt").write_bytes(b"\xff\xff\xff")
    assert not is_label_file(tmp_path / "d.txt")
