"""One decoder: byte-order marks, encodings, and what is refused."""

from __future__ import annotations

import gc
import os
from pathlib import Path

import pytest

from ptedge.data.parsing import documents
from ptedge.data.parsing.documents import collector_paused, load_json, load_xml, read_lines, read_text
from ptedge.errors import InputError


def put(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-be"])
def test_read_text__the_mark_is_no_part_of_the_text(tmp_path: Path, encoding: str) -> None:
    assert read_text(put(tmp_path / "a", "car\n車".encode(encoding))) == "car\n車"
    assert read_text(put(tmp_path / "b", b"")) == ""


def test_read_text__another_encoding_is_refused_with_its_line(tmp_path: Path) -> None:
    path = put(tmp_path / "classes.txt", b"car\n" + "車".encode("cp950"))
    with pytest.raises(InputError, match=r"classes\.txt line 2 is no UTF-8 text. Save the file as UTF-8"):
        read_text(path)


def test_read_text__no_file_a_pipe_and_a_large_one(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_text(tmp_path / "none")
    with pytest.raises(InputError, match="no regular file"):
        read_text(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no regular file"):
        read_text(tmp_path / "pipe")
    with pytest.raises(InputError, match="such a file may have"):
        read_text(put(tmp_path / "large", b"12345"), most=4)
    with pytest.raises(InputError, match="cannot be read"):
        read_text(tmp_path / "a\0b")


def test_read_lines__every_end_of_line_and_true_numbers(tmp_path: Path) -> None:
    assert read_lines(put(tmp_path / "a", "a \r\n\r\n b\rc\u2028d\n".encode())) == ["a", "", "b", "c\u2028d", ""]


def test_load_json__nested_without_end(tmp_path: Path) -> None:
    assert load_json(put(tmp_path / "a.json", b'\xef\xbb\xbf{"a": 1}')) == {"a": 1}
    for content in (b"[" * 100_000, b"{", b"9" * 5000):
        with pytest.raises(InputError, match=r"a\.json is not valid JSON"):
            load_json(put(tmp_path / "a.json", content))


def test_load_json__what_is_kept_of_each_object(tmp_path: Path) -> None:
    path = put(tmp_path / "a.json", b'{"a": [{"b": 1}, {"c": 2}]}')
    assert load_json(path, lambda entry: entry.get("b", entry)) == {"a": [1, {"c": 2}]}


def test_collector_paused__is_as_before_whatever_happens(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        load_json(put(tmp_path / "a.json", b"{"))
    assert gc.isenabled()
    with collector_paused():
        assert not gc.isenabled()
        load_json(put(tmp_path / "a.json", b"{}"))
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.mark.parametrize("encoding", ["gb2312", "utf-8", "latin-1", "utf-16"])
def test_load_xml__the_encoding_it_names(tmp_path: Path, encoding: str) -> None:
    word = "é" if encoding == "latin-1" else "车"
    content = f'<?xml version="1.0" encoding="{encoding}"?><annotation><name>{word}</name></annotation>'
    assert load_xml(put(tmp_path / "a.xml", content.encode(encoding))).findtext("name") == word


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'<?xml version="1.0" encoding="no-such"?><a/>', "its encoding is no-such, which is not known"),
        (b'<?xml version="1.0" encoding="hex"?><a/>', "its encoding is hex, which is not known"),
        (b'<?xml version="1.0" encoding="ascii"?><a>\xe9</a>', "is no ASCII text"),
        (b"<a>\xe9</a>", "is no UTF-8 text"),
        (b"<a>", "not valid XML"),
        (b"", "not valid XML"),
        (b'<!DOCTYPE a [<!ENTITY x "y"><!ENTITY z "&x;&x;">]><a>&z;</a>', "declares entities"),
    ],
)
def test_load_xml__refused(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_xml(put(tmp_path / "a.xml", content))


def test_load_xml__blank_lines_before_the_declaration(tmp_path: Path) -> None:
    assert load_xml(put(tmp_path / "a.xml", b'\n\n<?xml version="1.0"?><a/>')).tag == "a"


def test_limits__are_above_what_public_data_sets_have() -> None:
    assert documents.MOST_JSON_BYTES > 2 << 30 and documents.MOST_BYTES > 10 << 20
