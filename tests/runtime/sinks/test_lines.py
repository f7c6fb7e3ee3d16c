"""Files of lines that are begun, gone on with and divided."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ptedge.errors import OutputError
from ptedge.runtime.sinks.lines import LineFile, rotated_files


def write(path: Path, lines: list[str], **options: object) -> None:
    file = LineFile(path, **options)  # type: ignore[arg-type]
    for line in lines:
        file.append(line + "\n")
    file.close()


def test_line_file__never_begins_a_file_anew(tmp_path: Path) -> None:
    write(tmp_path / "d.jsonl", ["one"])
    with pytest.raises(OutputError, match="File exists"):
        LineFile(tmp_path / "d.jsonl")
    assert (tmp_path / "d.jsonl").read_text() == "one\n"


def test_line_file__goes_on_after_the_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    write(path, ["one"], append=True)  # nothing there: it begins
    with open(path, "a") as file:
        file.write("tw")  # a kill
    write(path, ["two", "three"], append=True)
    assert path.read_text() == "one\ntwo\nthree\n"


def test_line_file__head_once_and_only_the_same(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    for line in ("1,2", "3,4"):
        write(path, [line], append=True, head="a,b\r\n")
    assert path.read_bytes() == b"a,b\r\n1,2\n3,4\n"
    with pytest.raises(OutputError, match="has other columns"):
        LineFile(path, append=True, head="source,a,b\r\n")
    assert path.read_bytes() == b"a,b\r\n1,2\n3,4\n"


def test_line_file__rotates_between_lines_and_loses_none(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    write(path, ["aaaa", "bbbb", "cccc"], rotate=10)  # two lines of five bytes fill a file to the byte
    assert path.read_text() == "cccc\n"
    assert (tmp_path / "d.1.jsonl").read_text() == "aaaa\nbbbb\n"
    write(path, ["dddd", "e" * 30, "ffff"], append=True, rotate=10)
    parts = [part.read_text() for _, part in rotated_files(path)]
    assert parts == ["aaaa\nbbbb\n", "cccc\ndddd\n", "e" * 30 + "\n"]  # a line longer than a file has one of its own
    assert path.read_text() == "ffff\n"


def test_line_file__each_part_has_the_head(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    write(path, ["1", "2"], head="h\n", rotate=3)
    assert path.read_text() == "h\n2\n" and (tmp_path / "d.1.csv").read_text() == "h\n1\n"


def test_rotated_files__by_number_and_by_name(tmp_path: Path) -> None:
    for name in ("d.10.jsonl", "d.2.jsonl", "d.x.jsonl", "d.02.jsonl", "e.1.jsonl", "d.1.csv", "d.jsonl"):
        (tmp_path / name).touch()
    assert [number for number, _ in rotated_files(tmp_path / "d.jsonl")] == [2, 10]
    assert rotated_files(tmp_path / "nowhere" / "d.jsonl") == []


@pytest.mark.parametrize("how", ["removed", "replaced", "folder"])
def test_line_file__taken_away_is_said(tmp_path: Path, how: str) -> None:
    path = tmp_path / "out" / "d.jsonl"
    path.parent.mkdir()
    file = LineFile(path)
    file.append("one\n")
    if how == "folder":
        shutil.rmtree(path.parent)
    else:
        path.unlink()
    if how == "replaced":
        path.write_text("of another\n")
    with pytest.raises(OutputError, match=r"d\.jsonl was removed or replaced while the run was writing"):
        file.append("two\n")
    file.close()
    assert not path.exists() or path.read_text() == "of another\n"


def test_line_file__text_that_is_no_unicode(tmp_path: Path) -> None:
    write(tmp_path / "x", [os.fsdecode(b"caf\xe9")])
    assert (tmp_path / "x").read_text("utf-8") == "caf\\udce9\n"
