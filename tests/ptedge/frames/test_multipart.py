"""Pictures out of a multipart stream, whatever cameras get wrong about it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from servers.mjpeg_server import jpeg

from ptedge.frames import multipart
from ptedge.frames.multipart import MultipartParser

A, B, C = jpeg(1), jpeg(9), jpeg(30, (160, 120))


def part(body: bytes, length: int | None = None, name: bytes = b"--x", end: bytes = b"\r\n") -> bytes:
    head = b"" if length is None else f"Content-Length: {length}".encode() + end
    return name + end + b"Content-Type: image/jpeg" + end + head + end + body + end


def parse(stream: bytes, boundary: str | None = "x", size: int = 0) -> list[bytes]:
    parser = MultipartParser(boundary)
    step = size or len(stream)
    return [body for i in range(0, len(stream), step) for body in parser.feed(stream[i : i + step])]


def test_feed__with_length() -> None:
    assert parse(part(A, len(A)) + part(B, len(B))) == [A, B]


def test_feed__a_part_is_given_out_when_whole_not_when_the_next_begins() -> None:
    parser = MultipartParser("x")
    assert parser.feed(part(A, len(A))[:-3]) == []
    assert parser.feed(A[-1:]) == [A]
    without = MultipartParser("x")
    assert without.feed(part(A)[:-2]) == [A]


@pytest.mark.parametrize("wrong", [-40, -1, 1, 30, 100000])
def test_feed__wrong_length(wrong: int) -> None:
    stream = part(A, len(A) + wrong) + part(B, len(B) + wrong) + part(C, len(C)) + b"--x"
    bodies = [body.rstrip(b"\r\n") for body in parse(stream)]
    assert bodies == [A, B, C]


def test_feed__no_length_and_a_thumbnail_inside() -> None:
    # an application segment that holds a whole JPEG of its own, whose end marker is not the end
    inner = b"\xff\xe1" + (len(A) + 2).to_bytes(2, "big") + A
    outer = B[:2] + inner + B[2:]
    stream = part(outer) + part(C)
    cut = stream.index(inner) + len(inner)  # the pieces end where the thumbnail does
    parser = MultipartParser("x")
    assert [*parser.feed(stream[:cut]), *parser.feed(stream[cut:])] == [outer, C]


@pytest.mark.parametrize("boundary", ["x", "--x", '"x"', "", None])
def test_feed__boundary_as_cameras_announce_it(boundary: str | None) -> None:
    assert parse(part(A, len(A)) + part(B, len(B)), boundary) == [A, B]


def test_feed__bare_line_feeds_and_preamble() -> None:
    assert parse(b"hello\n" + part(A, len(A), end=b"\n") + part(B, end=b"\n")) == [A, B]


def test_feed__garbage_between_parts_is_passed_over() -> None:
    assert parse(part(A, len(A)) + bytes(range(256)) * 300 + b"\r\n" + part(B, len(B)), size=1000) == [A, B]


@pytest.mark.parametrize("size", [1, 7, 500, 0])
@pytest.mark.parametrize("name", [b"--other", b"other", b"--X", b"----x2", b"--x.y z"])
def test_feed__another_boundary_than_announced(name: bytes, size: int) -> None:
    stream = part(A, name=name) + part(B, len(B), name=name) + part(C, name=name) + name + b"\r\n"
    assert [body.rstrip(b"\r\n") for body in parse(stream, "x", size)] == [A, B, C]


@pytest.mark.parametrize("size", [1, 7, 500, 0])
def test_feed__another_boundary_and_no_head(size: int) -> None:
    stream = b"".join(b"--y\r\n\r\n" + body + b"\r\n" for body in (A, B, C))
    assert parse(stream, "x", size) == [A, B, C]


@pytest.mark.parametrize("between", [b"", b"\r\n", b"Content-Type: image/jpeg\r\n\r\n", bytes(100)])
@pytest.mark.parametrize("size", [1, 500, 0])
def test_feed__no_boundary_at_all(between: bytes, size: int) -> None:
    bodies = parse(b"".join(between + body for body in (A, B, C, A, B, C)), "x", size)
    assert bodies[-3:] == [A, B, C]


def test_feed__a_boundary_that_was_seen_stays() -> None:
    other = b"--y\r\nContent-Type: image/jpeg\r\n\r\n" + B + b"\r\n"
    assert parse(part(A, len(A)) + other + part(C, len(C)), size=50) == [A, C]


def test_feed__an_endless_boundary() -> None:
    parser = MultipartParser("x" * 100_000)
    assert parser._reach < 1000  # bytes that are kept and searched again
    assert parser.feed(part(A, len(A), name=b"--" + b"x" * 200)) == [A]


def test_feed__a_cut_picture_comes_out_as_what_is_there() -> None:
    half = A[: len(A) // 2]
    bodies = parse(part(half, len(half)) + part(B, len(B)))
    assert bodies == [half, B]
    assert parse(part(half, len(A)) + part(B, len(B)))[-1] == B


def test_feed__other_kinds_of_pictures() -> None:
    png = b"\x89PNG\r\n\x1a\n" + b"\0" * 50
    assert parse(part(png, len(png)) + part(A, len(A))) == [png, A]


def test_feed__memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multipart, "LONGEST_PART", 5000)
    monkeypatch.setattr(multipart, "LONGEST_HEAD", 1000)
    parser = MultipartParser("x")
    for _ in range(20):
        parser.feed(b"\x00" * 1000)  # before any part
    assert len(parser._buffer) < 1100
    bodies = parser.feed(b"\r\n--x\r\n\r\n")
    for _ in range(20):
        bodies += parser.feed(b"\xff\xd8" + b"\x00" * 1000)  # a picture without end
        assert len(parser._buffer) < 7000
    assert b"" in bodies
    bodies = []
    for _ in range(20):
        bodies += parser.feed(b"\r\n--x\r\n" + b"a" * 2000)  # heads without end
        assert len(parser._buffer) < 9000
    assert parser.feed(b"\r\n" + part(A, len(A)) + part(B, len(B)))[-1] == B


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from([A, B, C]), st.booleans()), min_size=1, max_size=5),
    st.integers(1, 1500),
)
def test_feed__pieces_do_not_matter(parts: list[tuple[bytes, bool]], size: int) -> None:
    stream = b"".join(part(body, len(body) if with_length else None) for body, with_length in parts) + b"--x--\r\n"
    assert parse(stream, size=size) == [body for body, _ in parts]
