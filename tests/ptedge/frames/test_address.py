"""Credentials never show, and live sources are told from files."""

from __future__ import annotations

import pytest

from ptedge.frames.address import is_live, mask_credentials, split_credentials


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rtsp://user:secret@cam/1", "rtsp://***@cam/1"),
        ("rtsp://user:se@cret@cam/1", "rtsp://***@cam/1"),  # what ought to be %40
        ("rtsp://user:se/cret@cam/1", "rtsp://***@cam/1"),
        ("rtsp://user:12/34@cam:554/1", "rtsp://***@cam:554/1"),
        ("http://token@cam:8080/a", "http://***@cam:8080/a"),
        ("rtsp://cam:554/1", "rtsp://cam:554/1"),
        ("http://cam/video?user=a&pwd=secret&channel=1", "http://cam/video?user=***&pwd=***&channel=1"),
        ("http://cam/v?loginpass=secret;x=2", "http://cam/v?loginpass=***;x=2"),
        ("http://cam/v?access_token=s.e-c#now", "http://cam/v?access_token=***#now"),
        (
            "rtspsrc location=rtsp://u:p@cam/1 user-id=u user-pw='a b' ! appsink",
            "rtspsrc location=rtsp://***@cam/1 user-id=*** user-pw=*** ! appsink",
        ),
        ("two: rtsp://a:b@c/1 and rtsp://d:e@f/2", "two: rtsp://***@c/1 and rtsp://***@f/2"),
        ("videos/a@b.mp4", "videos/a@b.mp4"),
        ("see http://a/b or mail x@y", "see http://a/b or mail x@y"),
    ],
)
def test_mask_credentials(text: str, shown: str) -> None:
    assert mask_credentials(text) == shown
    assert mask_credentials(shown) == shown


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        ("http://cam/a", ("http://cam/a", None, None)),
        ("http://u:p@cam:81/a?b=c", ("http://cam:81/a?b=c", "u", "p")),
        ("http://u%40x:p%2Fq@cam/", ("http://cam/", "u@x", "p/q")),
        ("http://u@cam/", ("http://cam/", "u", None)),
    ],
)
def test_split_credentials(address: str, parts: tuple[str, str | None, str | None]) -> None:
    assert split_credentials(address) == parts


@pytest.mark.parametrize(
    ("spec", "live"),
    [
        ("0", True),
        ("/dev/video2", True),
        ("/dev/video", False),
        ("rtsp://a/b", True),
        ("http://a/b.mjpg", True),
        ("csi://1", True),
        ("a ! b", True),
        ("a/b.mp4", False),
        ("12.mp4", False),
        ("C:\\a.mp4", False),
    ],
)
def test_is_live(spec: str, live: bool) -> None:
    assert is_live(spec) is live
