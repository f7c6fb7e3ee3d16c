"""What a name means, and what is left out: counted, never waited for."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import cv2
import numpy as np
import pytest

from ptedge.errors import InputError
from ptedge.frames import files
from ptedge.frames.files import find_files, natural_key
from ptedge.frames.source import index_frames, open_frames


def image(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(cv2.imencode(".png", np.full((4, 6, 3), 50, np.uint8))[1].tobytes())
    return path


def reasons(spec: object) -> list[str]:
    return [reason.partition(": left out are ")[2] for _, reason in find_files(str(spec), True).left_out]


def test_find_files__what_a_folder_holds_besides_is_counted(tmp_path: Path) -> None:
    image(tmp_path / "a.png")
    image(tmp_path / "elsewhere" / "b.png")
    (tmp_path / "linked").symlink_to("elsewhere")
    for name in ("a.mp4", "b.MKV", "labels.txt", ".hidden.mp4"):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "dead.png").symlink_to("nothing")
    os.mkfifo(tmp_path / "pipe.jpg")
    found = find_files(str(tmp_path), True)
    assert [path.name for path in found.files] == ["a.png", "b.png"]
    assert sorted(reasons(tmp_path)) == [
        "1 links to folders, which are not followed; name them as sources",
        "2 pipes, devices, sockets or links to nothing",
        "2 videos; name each as a source",
    ]
    source = open_frames(tmp_path)
    assert len(list(source)) == 2 and len(source.skipped) == len(list(source)) + 1


def test_open_frames__twelve_bits_in_sixteen_are_counted(tmp_path: Path) -> None:
    image(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(cv2.imencode(".png", np.full((4, 6), 4095, np.uint16))[1].tobytes())
    source = open_frames(tmp_path)
    for _ in range(2):
        assert len(list(source)) == 2
        assert source.status.dim == 1 and source.dim == [str(tmp_path / "b.png")] and not source.skipped


def test_index_frames__what_is_left_out_is_told(tmp_path: Path) -> None:
    image(tmp_path / "a.png")
    (tmp_path / "b.mp4").write_bytes(b"x")
    os.mkfifo(tmp_path / "pipe.jpg")
    told = index_frames(tmp_path).left_out
    assert [place for place, _ in told] == [str(tmp_path), str(tmp_path / "b.mp4")]  # the video cannot be read
    assert "b.mp4" in told[1][1]
    (tmp_path / "a.png").unlink()
    with pytest.raises(InputError, match=r"b\.mp4"):
        index_frames(tmp_path)


def test_find_files__every_suffix_of_a_picture(tmp_path: Path) -> None:
    data = image(tmp_path / "a.png").read_bytes()
    for suffix in ("jfif", "jpe", "mpo", "heic", "gif", "dng", "JPG", "avif", "pgm", "jp2", "webp"):
        (tmp_path / f"b.{suffix}").write_bytes(data)
    assert len(list(open_frames(tmp_path))) == 12  # what is inside counts
    (tmp_path / "b.heic").write_bytes(b"\0\0\0\x14ftypheic\0\0\0\0mif1")
    source = open_frames(tmp_path)
    assert len(list(source)) == 11 and "HEIC" in source.skipped[0][1]


def test_find_files__content_decides_where_the_name_says_nothing(tmp_path: Path) -> None:
    data = image(tmp_path / "a.png").read_bytes()
    for name in ("upload", "a.bin", "12:30.raw"):
        (tmp_path / name).write_bytes(data)
        assert find_files(str(tmp_path / name), True).kind == "image"
    jpeg = cv2.imencode(".jpg", np.zeros((16, 16, 3), np.uint8))[1].tobytes()
    (tmp_path / "a.mjpeg").write_bytes(jpeg * 3)
    assert find_files(str(tmp_path / "a.mjpeg"), True).kind == "video"
    assert len(list(open_frames(tmp_path / "a.mjpeg"))) == 3


@pytest.mark.skipif(not cv2.haveImageWriter("a.gif"), reason="this OpenCV writes no GIF")
def test_find_files__an_animated_gif_is_a_video_if_named(tmp_path: Path) -> None:
    animation = cv2.Animation()
    animation.frames = [np.full((16, 16, 3), value, np.uint8) for value in (0, 255)]
    animation.durations = np.array([100, 100], np.int32)
    assert cv2.imwriteanimation(str(tmp_path / "a.gif"), animation)
    assert find_files(str(tmp_path / "a.gif"), True).kind == "video"
    source = open_frames(tmp_path)
    assert len(list(source)) == 1 and "2 pictures; only the first" in source.skipped[0][1]


@pytest.mark.parametrize("name", ["pipe.png", "pipe.txt", "pipe.mp4", "dead.mp4", "zero.txt"])
def test_find_files__pipes_and_devices_are_not_waited_for(tmp_path: Path, name: str) -> None:
    if name.startswith("pipe"):
        os.mkfifo(tmp_path / name)
    else:
        (tmp_path / name).symlink_to("/dev/zero" if name.startswith("zero") else "nothing")
    with pytest.raises(InputError, match=f"{name} is a pipe, a device, a socket or a link to nothing"):
        find_files(str(tmp_path / name), True)


def test_find_files__links_in_a_circle(tmp_path: Path) -> None:
    image(tmp_path / "a" / "1.png")
    for name in ("x", "y", "z"):
        (tmp_path / "a" / name).symlink_to(".")
    assert [p.name for p in find_files(str(tmp_path), True).files] == ["1.png"]
    found = find_files(str(tmp_path / "**" / "*.png"), True)
    assert [str(path.relative_to(tmp_path)) for path in found.files] == ["a/1.png"]
    assert len(find_files(str(tmp_path / "**"), True).files) == 1


def test_find_files__patterns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/1.png", "a/b/2.png", ".hidden/3.png", "a/.b/4.png", "a[1].png"):
        image(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert [str(path) for path in find_files("**/*.png", True).files] == ["a/1.png", "a/b/2.png", "a[1].png"]
    assert [str(path) for path in find_files("a/**.png", True).files] == ["a/1.png"]
    assert find_files("a[1].png", True).kind == "image"  # the file is there


def test_find_files__limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(5):
        image(tmp_path / f"{i}.png")
    listing = tmp_path / "list.txt"
    listing.write_text("0.png\n" * 6)
    monkeypatch.setattr(files, "MOST_FILES", 5)
    for spec in (tmp_path, tmp_path / "*", listing):
        with pytest.raises(InputError, match="more than 5 entries"):
            find_files(str(spec), True)
    assert len(find_files(str(tmp_path / "*.png"), True).files) == 5
    monkeypatch.setattr(files, "LARGEST_LIST", 35)
    with pytest.raises(InputError, match="Divide it"):
        find_files(str(listing), True)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_find_files__lists_in_other_encodings(tmp_path: Path, encoding: str) -> None:
    image(tmp_path / "straße.png")
    (tmp_path / "list.txt").write_bytes("# Liste\r\nstraße.png\r\n".encode(encoding))
    assert [path.name for path in find_files(str(tmp_path / "list.txt"), True).files] == ["straße.png"]


def test_find_files__names_that_are_no_utf8(tmp_path: Path) -> None:
    name = b"caf\xe9.png"
    try:
        image(tmp_path / os.fsdecode(name))
    except OSError:
        pytest.skip("the file system takes only UTF-8")
    (tmp_path / "list.txt").write_bytes(name + b"\n")
    for spec in (tmp_path, tmp_path / "list.txt"):
        (frame,) = open_frames(spec)
        assert frame.file is not None and frame.file.endswith("caf\\xe9.png")
        json.dumps(frame.file, ensure_ascii=False).encode()


def test_find_files__any_bytes_are_a_list(tmp_path: Path) -> None:
    chance = random.Random(0)
    image(tmp_path / "a.png")
    for _ in range(300):
        pieces = [chance.choice((b"a.png", b"\0", b"\n", b"\xff", b"#", b"/", b"..", b"x" * 300)) for _ in range(9)]
        (tmp_path / "list.txt").write_bytes(b"\n".join(pieces) if chance.random() < 0.5 else b"".join(pieces))
        try:
            source = open_frames(tmp_path / "list.txt")
            list(source)
        except InputError:
            continue
        assert source.status.delivered


@pytest.mark.parametrize(
    "time", ["NaN", "Infinity", "-Infinity", "1e999", "true", '"5"', "[1]", "null", "{}", "1" * 5000]
)
def test_field_times__only_finite_numbers(tmp_path: Path, time: str) -> None:
    (tmp_path / "field.json").write_text("{}")
    image(tmp_path / "images" / "1.png")
    line = f'{{"file": "images/1.png", "time": {time}}}\n'
    (tmp_path / "frames.jsonl").write_text("[" * 100000 + "\n" + line)
    assert [frame.time for frame in open_frames(tmp_path)] == [None]
    assert len(list(open_frames(tmp_path, rate=5))) == 1


def test_field_times__a_pipe_for_the_record(tmp_path: Path) -> None:
    (tmp_path / "field.json").write_text("{}")
    image(tmp_path / "images" / "1.png")
    os.mkfifo(tmp_path / "frames.jsonl")
    assert [frame.time for frame in open_frames(tmp_path)] == [None]


def test_natural_key__long_digits() -> None:
    assert natural_key("9" * 250) > natural_key("8" * 250)
