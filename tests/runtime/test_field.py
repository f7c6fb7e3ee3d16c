from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from made_field import collect, found, names

from ptedge.detections import Detections
from ptedge.errors import ArtifactError, OutputError
from ptedge.runtime.collection.prune import prune
from ptedge.runtime.field import create_field, export_coco, open_field, summarize


def test_open_field__power_loss_at_any_byte_of_the_last_line(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=3)
    path = tmp_path / "f" / "frames.jsonl"
    whole = path.read_bytes()
    two_lines = whole.rindex(b"\n", 0, len(whole) - 1) + 1
    for end in range(two_lines, len(whole), 37):
        path.write_bytes(whole[:end])
        assert open_field(tmp_path / "f").images == 2
    (tmp_path / "f" / "images" / ".00000004_x.jpg.1.tmp").write_bytes(b"half")
    sink = collect(tmp_path / "f", count=1, first=9)
    assert sink.kept == 1
    assert sorted(p.name for p in (tmp_path / "f" / "images").iterdir()) == [
        Path(name).name for name in names(tmp_path / "f")
    ]
    assert len(names(tmp_path / "f")) == 3


@pytest.mark.parametrize(
    ("text", "words"),
    [("{", "broken"), ("[]", "broken"), ('{"class_names": [], "schema": 99}', "schema 99"), (None, "no field folder")],
)
def test_open_field__refuses(tmp_path: Path, text: str | None, words: str) -> None:
    if text is not None:
        (tmp_path / "field.json").write_text(text)
    with pytest.raises(ArtifactError, match=words):
        open_field(tmp_path)


def test_records__broken_line_in_the_middle(tmp_path: Path) -> None:
    create_field(tmp_path / "f", {"class_names": ["car"]})
    (tmp_path / "f" / "frames.jsonl").write_text('{"file": "a"}\n{"fi\n{"file": "b"}\n')
    with pytest.raises(ArtifactError, match="line 2 is broken"):
        open_field(tmp_path / "f")


def test_summarize__counts(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=3, detections=lambda i: found() if i else Detections.empty())
    counts = summarize(open_field(tmp_path / "f"))
    assert counts["images"] == 3 and counts["why"] == {"random": 3} and counts["detections"] == {"car": 2}
    assert counts["bytes"] == sum(p.stat().st_size for p in (tmp_path / "f" / "images").iterdir())


def test_export_coco__pre_labels(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=2)
    assert export_coco(open_field(tmp_path / "f"), tmp_path / "c.json", 0.3, "CC0") == 2
    document = json.loads((tmp_path / "c.json").read_text())
    assert document["licenses"][0]["name"] == "CC0" and document["info"]["description"]
    assert document["annotations"][0]["bbox"] == [0, 0, 10, 40]
    assert (tmp_path / "f" / "images" / document["images"][0]["file_name"]).is_file()
    export_coco(open_field(tmp_path / "f"), tmp_path / "c.json", 0.9, "CC0")
    assert json.loads((tmp_path / "c.json").read_text())["annotations"] == []


def outside(tmp_path: Path) -> Path:
    """Files of somebody else, with names that a field folder has too."""
    folder = tmp_path / "outside"
    folder.mkdir()
    for name in ("00000001_aaaaaaaaaaaa.jpg", "mine.tmp", "photo.jpg"):
        (folder / name).write_text(name)
    (folder / "frames.jsonl").write_text('{"file": "images/photo.jpg"}\nhalf a li')
    (folder / "field.json").write_text('{"schema": 1, "class_names": ["car"]}')
    return folder


def contents(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir()}


@pytest.mark.parametrize("part", ["images", "frames.jsonl", "field.json"])
def test_links__no_part_of_the_folder_may_lie_elsewhere(tmp_path: Path, part: str) -> None:
    collect(tmp_path / "f", count=3)
    other = outside(tmp_path)
    path = tmp_path / "f" / part
    path.rename(tmp_path / "old")
    path.symlink_to(other if part == "images" else other / part)
    before = contents(other)
    with pytest.raises(OutputError, match=f"{part} is a link, so files outside"):
        prune(open_field(tmp_path / "f"), None, 0)
    with pytest.raises(OutputError, match=f"{part} is a link"):
        open_field(tmp_path / "f").repair()
    with pytest.raises(OutputError, match=f"{part} is a link"):
        collect(tmp_path / "f")
    assert contents(other) == before


def test_links__put_there_while_a_run_collects(tmp_path: Path) -> None:
    other, folder = outside(tmp_path), create_field(tmp_path / "f", {"class_names": ["car"]})
    before = contents(other)
    (tmp_path / "f" / "images").rmdir()
    (tmp_path / "f" / "images").symlink_to(other)
    with pytest.raises(OutputError, match="images is a link"):
        folder.add("00000001_bbbbbbbbbbbb.jpg", b"jpeg", {})
    assert contents(other) == before


def test_links__among_the_images_go_and_what_they_lead_to_stays(tmp_path: Path) -> None:
    collect(tmp_path / "f", count=2)
    other, images = outside(tmp_path), tmp_path / "f" / "images"
    before = contents(other)
    first = tmp_path / "f" / names(tmp_path / "f")[0]
    first.unlink()
    first.symlink_to(other / "photo.jpg")  # an image that has a line
    (images / "00000007_aaaaaaaaaaaa.jpg").symlink_to(other / "mine.tmp")  # one that has none
    (images / "00000008_aaaaaaaaaaaa.jpg").symlink_to(other)
    (images / "x.tmp").symlink_to(other)
    (images / "00000009_aaaaaaaaaaaa.jpg").mkdir()
    open_field(tmp_path / "f").repair()
    assert not (images / "00000007_aaaaaaaaaaaa.jpg").is_symlink()
    prune(open_field(tmp_path / "f"), None, 0)
    assert not first.is_symlink() and contents(other) == before


@pytest.mark.parametrize(
    "file", ["../x.jpg", "images/../../x.jpg", "/etc/x.jpg", "images/a/x.jpg", "images/..", "", "."]
)
def test_records__a_line_that_names_no_file_of_the_folder(tmp_path: Path, file: str) -> None:
    create_field(tmp_path / "f", {"class_names": ["car"]})
    (tmp_path / "x.jpg").write_text("mine")
    (tmp_path / "f" / "frames.jsonl").write_text(json.dumps({"file": file}) + "\n")
    with pytest.raises(ArtifactError, match=r"line 1 names .*, which is no file of images/ here"):
        open_field(tmp_path / "f")
    assert (tmp_path / "x.jpg").exists()


def test_last_id__no_number_is_given_twice(tmp_path: Path) -> None:
    """Not after the newest image was pruned, nor after a kill between an image and its line."""

    def numbers() -> list[str]:
        return [Path(name).name[:8] for name in names(tmp_path / "f")]

    collect(tmp_path / "f", count=3)
    prune(open_field(tmp_path / "f"), None, 0)
    collect(tmp_path / "f", count=1)
    assert numbers() == ["00000004"]
    (tmp_path / "f" / "images" / "00000005_aaaaaaaaaaaa.jpg").write_bytes(b"whole, but without a line")
    collect(tmp_path / "f", count=1, first=8)
    assert numbers() == ["00000004", "00000006"]
    folder = open_field(tmp_path / "f")
    assert folder.last_id == 6 == json.loads((tmp_path / "f" / "field.json").read_text())["last_id"]


def test_prune__killed_before_the_list_is_replaced_remembers_the_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collect(tmp_path / "f", count=3)
    about = json.loads((tmp_path / "f" / "field.json").read_text())
    (tmp_path / "f" / "field.json").write_text(json.dumps({**about, "last_id": 0}))  # of a run that was killed
    folder, saves = open_field(tmp_path / "f"), []
    monkeypatch.setattr(type(folder), "save_about", lambda self: saves.append(len(names(tmp_path / "f"))))
    prune(folder, None, 0)
    assert saves == [3, 0]  # once before the lines go, once after


@pytest.mark.parametrize(
    "left", [["images/"], [".field.json.77.tmp"], ["images/", ".field.json.77.tmp", ".ptedge-lock"]]
)
def test_create_field__goes_on_where_a_kill_left_its_beginning(tmp_path: Path, left: list[str]) -> None:
    for name in left:
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).touch()
    assert create_field(tmp_path, {"class_names": ["car"]}).images == 0


@pytest.mark.parametrize("stranger", ["notes.txt", "images/mine.jpg", "images", ".field.json.77.txt"])
def test_create_field__leaves_what_others_put_there_alone(tmp_path: Path, stranger: str) -> None:
    (tmp_path / stranger).parent.mkdir(exist_ok=True)
    (tmp_path / stranger).touch()
    with pytest.raises(OutputError, match="holds other files"):
        create_field(tmp_path, {"class_names": ["car"]})


def test_add__the_line_is_on_the_disk_when_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = create_field(tmp_path / "f", {"class_names": ["car"]})
    synced: list[tuple[int, int]] = []
    original = os.fsync

    def fsync(number: int) -> None:
        original(number)
        about = os.fstat(number)
        synced.append((about.st_ino, about.st_size))

    monkeypatch.setattr(os, "fsync", fsync)
    folder.add("00000001_a.jpg", b"jpeg", {"why": ["random"]})
    image, line = (tmp_path / "f" / name for name in ("images/00000001_a.jpg", "frames.jsonl"))
    inodes = [inode for inode, _ in synced]
    assert inodes.index(image.stat().st_ino) < inodes.index(line.stat().st_ino)  # the image first
    assert (line.stat().st_ino, line.stat().st_size) in synced  # with the whole line
