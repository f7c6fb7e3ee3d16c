from __future__ import annotations

import errno
import hashlib
import json
import os
import sys
from pathlib import Path

import pytest

from ptedge.errors import OutputError
from ptedge.files import (
    MOST_DEPTH,
    atomic_write,
    cut_last_line,
    exchange,
    fit_name,
    make_output_folder,
    open_regular,
    parse_json,
    read_bounded,
    sha256_file,
    shown_name,
    write_error,
    write_json,
)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def test_atomic_write__makes_folder_and_file_and_leaves_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "model.pt"
    with atomic_write(path) as file:
        file.write(b"weights")
        assert not path.exists()  # not there before it is whole
    assert path.read_bytes() == b"weights"
    assert names(path.parent) == ["model.pt"]


def test_atomic_write__text_is_utf8(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a.txt", "w") as file:
        file.write("Straße ü")
    assert (tmp_path / "a.txt").read_bytes() == "Straße ü".encode()


def test_atomic_write__error_in_the_middle_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"old")

    def write_half() -> None:
        with atomic_write(path) as file:
            file.write(b"new, half wr")
            raise RuntimeError("power")

    with pytest.raises(RuntimeError, match="power"):
        write_half()
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["model.pt"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_atomic_write__full_disk_is_named_and_the_old_file_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    path = tmp_path / "model.pt"
    path.write_bytes(b"old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OutputError) as caught, atomic_write(path) as file:
        file.write(b"new")
    assert str(caught.value) == f"cannot write {path}: the disk is full. Free some space or choose another --out"
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["model.pt"]


def test_atomic_write__folder_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("I am a file")
    with pytest.raises(OutputError, match=r"cannot write .*model.pt"), atomic_write(tmp_path / "out" / "model.pt"):
        pass
    assert (tmp_path / "out").read_text() == "I am a file"


def test_write_error__other_errors_keep_their_reason() -> None:
    error = write_error(Path("x/y"), PermissionError(errno.EACCES, "Permission denied"))
    assert str(error) == "cannot write x/y: Permission denied. Choose another --out"


def test_write_json__is_one_readable_document(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"names": ["Straße"], "n": 1})
    text = (tmp_path / "a.json").read_text("utf-8")
    assert json.loads(text) == {"names": ["Straße"], "n": 1}
    assert "Straße" in text
    assert text.endswith("}\n")


def test_write_json__value_that_is_no_json_keeps_the_old_file(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", 1)
    with pytest.raises(TypeError):
        write_json(tmp_path / "a.json", {"a": object()})
    assert json.loads((tmp_path / "a.json").read_text()) == 1
    assert names(tmp_path) == ["a.json"]


def test_make_output_folder__makes_it_and_leaves_it_empty(tmp_path: Path) -> None:
    folder = make_output_folder(tmp_path / "runs" / "a")
    assert folder.is_dir()
    assert names(folder) == []


def test_make_output_folder__a_file_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(OutputError, match="Choose another --out"):
        make_output_folder(tmp_path / "runs")


def test_sha256_file__equals_hashlib_over_more_than_one_chunk(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000  # 1.28 MB, the reader takes 1 MiB at a time
    (tmp_path / "x").write_bytes(content)
    assert sha256_file(tmp_path / "x") == hashlib.sha256(content).hexdigest()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_open_regular__nothing_but_files(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    (tmp_path / "link").symlink_to("file")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link to pipe").symlink_to("pipe")
    for name in ("file", "link"):
        with open_regular(tmp_path / name) as file:
            assert file.read() == b"abc"
    for path, what in (
        (tmp_path / "pipe", "a pipe"),
        (tmp_path / "link to pipe", "a pipe"),
        (tmp_path, "a folder"),
        (Path("/dev/zero"), "a device"),
        (Path("a\0b"), "zero byte"),
    ):
        with pytest.raises(OSError, match=what):
            open_regular(path)
    with pytest.raises(FileNotFoundError):
        open_regular(tmp_path / "nothing")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no pipes with names")
def test_open_regular__exchanged_after_the_first_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    os.mkfifo(tmp_path / "pipe")
    looked = os.stat(tmp_path / "file")
    monkeypatch.setattr(os, "stat", lambda path, **_: looked)
    with pytest.raises(OSError, match="a pipe"):
        open_regular(tmp_path / "pipe")


def test_atomic_write__does_not_follow_a_link_at_its_temporary_name(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("other")
    (tmp_path / f".a.json.{os.getpid()}.tmp").symlink_to(tmp_path / "other")
    write_json(tmp_path / "a.json", 1)
    assert (tmp_path / "other").read_text() == "other" and names(tmp_path) == ["a.json", "other"]


@pytest.mark.parametrize(
    ("content", "left"),
    [(b"", b""), (b"ab", b""), (b"a\n", b"a\n"), (b"a\nbc", b"a\n"), (b"a\n" + b"x" * 70_000, b"a\n")],
)
def test_cut_last_line__keeps_whole_lines(tmp_path: Path, content: bytes, left: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    cut_last_line(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == left


def test_shown_name__bytes_that_are_no_utf8_are_escaped() -> None:
    assert shown_name("a.png") == "a.png" and shown_name("Straße.png") == "Straße.png"
    assert shown_name(os.fsdecode(b"caf\xe9.png")) == r"caf\xe9.png"


def test_fit_name__counts_bytes_and_cuts_between_characters(tmp_path: Path) -> None:
    room = os.pathconf(tmp_path, "PC_NAME_MAX") - 44  # what temporary names add
    assert fit_name(tmp_path, "000001_", "short", ".jpg") == "000001_short.jpg"
    long = fit_name(tmp_path, "000001_", "x" * 300, ".jpg")
    assert len(long) == room and long.startswith("000001_x") and long.endswith("x.jpg")
    wide = fit_name(tmp_path, "000001_", "車" * 100, ".jpg")  # three bytes each
    assert wide == "000001_" + "車" * ((room - 11) // 3) + ".jpg"
    (tmp_path / f".{long}.1234567.tmp").touch()


def test_read_bounded__at_the_limit_and_beyond(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"12345")
    assert read_bounded(tmp_path / "x", 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes"):
        read_bounded(tmp_path / "x", 4)
    (tmp_path / "x").write_bytes(bytes((2 << 20) + 1))
    with pytest.raises(OSError, match="more than 2 MB"):
        read_bounded(tmp_path / "x", 2 << 20)


@pytest.mark.parametrize("text", ['{"a": [1, 2.5, null, true, "ü"]}', b'"\xc3\xbc"', '"\\ud83d\\ude97"'])
def test_parse_json__as_json_does(text: str | bytes) -> None:
    assert parse_json(text) == json.loads(text)


def test_parse_json__depth_at_the_limit() -> None:
    assert parse_json("[" * MOST_DEPTH + "]" * MOST_DEPTH)
    with pytest.raises(ValueError, match="nested too deep"):
        parse_json("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1))
    with pytest.raises(ValueError, match="nested too deep"):
        parse_json('{"a":' * 60 + "1" + "}" * 60)
    with pytest.raises(ValueError, match="nested too deep"):
        parse_json("[" * 100_000)


@pytest.mark.parametrize("text", ["", "{", '"\\ud800"', '{"\\udfff": 1}', b"\xff\xfe\xff", "9" * 5000, "[1] 2"])
def test_parse_json__refuses(text: str | bytes) -> None:
    with pytest.raises(ValueError):
        parse_json(text)


def test_exchange__both_names_change_at_once(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"of_{name}").touch()
    done = exchange(tmp_path / "a", tmp_path / "b")
    assert done or sys.platform != "linux"
    if done:
        assert [(tmp_path / "a" / "of_b").exists(), (tmp_path / "b" / "of_a").exists()] == [True, True]


def test_exchange__one_that_is_not_there_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    assert not exchange(tmp_path / "a", tmp_path / "b")
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
