"""One image finder: every spelling that leads to one file, and those that lead to none or several."""

from __future__ import annotations

from pathlib import Path

import pytest
from labelled_files import image, text

from ptedge.data import locate, open_dataset, require_images
from ptedge.data.build import Counts
from ptedge.data.locate import AMBIGUOUS, ELSEWHERE, ImageFinder, files_below, is_picture
from ptedge.errors import InputError


@pytest.fixture(autouse=True, params=[100, 0], ids=["asked", "listed"])
def _ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each folder asked for a name, and listed as where many names are looked for: the answers are the same."""
    monkeypatch.setattr(locate, "_MOST_ASKED", request.param)


def touch(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()
    return path


@pytest.mark.parametrize(
    "name",
    [
        *("images/a b#1 ü.jpg", "./images/a b#1 ü.jpg", "images\\a b#1 ü.jpg", "images/a%20b%231%20%C3%BC.jpg"),
        *("data/images/a b#1 ü.jpg", "/home/someone/set/images/a b#1 ü.jpg", "C:\\set\\images\\a b#1 ü.jpg"),
        *("..\\..\\media\\upload\\4\\a b#1 ü.jpg", "images\\1/a b#1 ü.jpg", "a b#1 ü.png", "a b#1 ü", "A B#1 Ü.JPG"),
        *("a b#1 u\u0308.jpg", "https://host/bucket/a%20b%231%20%C3%BC.jpg?sig=1"),
        "/data/local-files/?d=images/a%20b%231%20%C3%BC.jpg",
    ],
)
def test_find__spellings_of_the_only_file(tmp_path: Path, name: str) -> None:
    file = touch(tmp_path / "images" / "a b#1 ü.jpg")
    counts = Counts()
    assert ImageFinder([tmp_path, tmp_path / "images"], counts).find(name).resolve() == file
    assert not +counts.passed_over and not +counts.notes


def test_find__anywhere_below_if_it_is_the_only_one(tmp_path: Path) -> None:
    file = touch(tmp_path / "x" / "y" / "a.jpg")
    touch(tmp_path / ".cache" / "a.jpg")
    assert ImageFinder([tmp_path], Counts()).find("a.png") == file
    touch(tmp_path / "z" / "a.jpg")
    counts = Counts()
    assert ImageFinder([tmp_path], counts).find("a.jpg") == tmp_path / "a.jpg"  # where it was expected
    assert counts.passed_over == {AMBIGUOUS: 1}


def test_find__the_name_itself_goes_before_another_suffix(tmp_path: Path) -> None:
    for name in ("a.jpg", "a.png"):
        touch(tmp_path / name)
    counts = Counts()
    finder = ImageFinder([tmp_path], counts)
    assert finder.find("a.png") == tmp_path / "a.png" and not +counts.passed_over
    assert finder.find("a.bmp") == tmp_path / "a.bmp"  # either could be meant
    assert counts.passed_over == {AMBIGUOUS: 1}


def test_find__of_two_folders_the_first_with_a_note(tmp_path: Path) -> None:
    first, second = touch(tmp_path / "one" / "a.jpg"), touch(tmp_path / "two" / "a.jpg")
    counts = Counts()
    assert ImageFinder([first.parent, second.parent], counts).find("a.jpg") == first
    assert counts.notes == {ELSEWHERE: 1}
    same = Counts()
    (tmp_path / "link").symlink_to(first.parent)
    assert ImageFinder([first.parent, tmp_path / "link"], same).find("a.jpg") == first and not +same.notes


def test_find_all__two_names_never_share_a_file_by_guess(tmp_path: Path) -> None:
    file = touch(tmp_path / "7.jpg")
    counts = Counts()
    names = [("cam1/7.jpg",), ("cam2/7.jpg",)]
    assert ImageFinder([tmp_path], counts).find_all(names) == [tmp_path / "cam1/7.jpg", tmp_path / "cam2/7.jpg"]
    assert counts.passed_over == {AMBIGUOUS: 2}
    # one of them has that very name: the other is missing
    counts = Counts()
    assert ImageFinder([tmp_path], counts).find_all([("7.jpg",), ("7.png",)]) == [file, tmp_path / "7.png"]
    assert counts.passed_over == {AMBIGUOUS: 1}
    # a second name is a guess, too: all annotations say the same out-of-date one
    counts = Counts()
    names2 = [("1.jpg", "7.jpg"), ("2.jpg", "7.jpg")]
    assert ImageFinder([tmp_path], counts).find_all(names2) == [tmp_path / "1.jpg", tmp_path / "2.jpg"]


@pytest.mark.parametrize(
    "name", ["a\0b.jpg", "x" * 5000, "\ud800.jpg", "/", ".", "..", "%", "%zz.jpg", "%ff.jpg", "a/"]
)
def test_find__names_that_no_file_has(tmp_path: Path, name: str) -> None:
    assert not ImageFinder([tmp_path], Counts()).find(name).is_file() if len(name) < 300 else True
    assert str(ImageFinder([tmp_path], Counts()).find(name)).encode("utf-8")


def test_is_picture__other_names_of_jpeg() -> None:
    assert all(map(is_picture, ("a.jpg", "a.JPEG", "a.jfif", "a.jpe", "a.webp", "a.gif")))
    assert not any(map(is_picture, ("a.heic", "a.dng", "a.txt", ".a.jpg", "a", "jpg")))


def test_files_below__not_the_whole_file_system(tmp_path: Path) -> None:
    touch(tmp_path / "b" / "x.txt")
    touch(tmp_path / ".hidden" / "y.txt")
    assert files_below(tmp_path) == [tmp_path / "b" / "x.txt"]
    with pytest.raises(InputError, match="whole file system"):
        files_below(Path("/"))


def test_require_images__of_another_size_than_labelled(tmp_path: Path) -> None:
    size = "<size><width>200</width><height>120</height></size>"
    box = "<bndbox><xmin>41</xmin><ymin>31</ymin><xmax>100</xmax><ymax>90</ymax></bndbox>"
    xml = f"<annotation>{size}<object><name>car</name>{box}</object></annotation>"
    text(tmp_path / "Annotations" / "a.xml", xml)
    image(tmp_path / "images" / "a.jpg", 100, 60)
    with pytest.raises(InputError, match=r"1 of 1 images .*a\.jpg is 100 x 60, but its labels are for 200 x 120"):
        require_images(open_dataset(tmp_path))
    image(tmp_path / "images" / "a.jpg", 200, 120)
    require_images(open_dataset(tmp_path))
    (tmp_path / "images" / "a.jpg").unlink()
    text(tmp_path / "Annotations" / "a.xml", xml.replace(size, ""))
    unknown = open_dataset(tmp_path)
    file = image(unknown.samples[0].path, 200, 120)
    assert unknown.samples[0].width == 0
    require_images(unknown)  # of no size that could be another
    text(tmp_path / "Annotations" / "a.xml", xml)
    file.write_bytes(b"broken")  # left to whoever decodes it
    require_images(open_dataset(tmp_path))
