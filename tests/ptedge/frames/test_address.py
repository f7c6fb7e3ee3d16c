"""Credentials never show, and live sources are told from files."""

from __future__ import annotations

import pytest

from ptedge.frames.address import foreign_text, is_http, is_live, mask_credentials, parse_address, split_credentials


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
        ("http://admin:Geheim#7@cam:9/1", "http://***@cam:9/1"),
        ("http://admin:Geheim?7@cam:9/1", "http://***@cam:9/1"),
        ("RTSP://admin:Geheim@cam/1", "RTSP://***@cam/1"),
        ("rtsp:/admin:Geheim@cam/1", "rtsp:/***@cam/1"),
        ("rtsp:///admin:Geheim@cam/1", "rtsp:///***@cam/1"),
        ("admin:Geheim@cam/1", "***@cam/1"),
        ("rtsp://admin:Ge heim@cam/1", "rtsp://***@cam/1"),
        ("rtsp://admin:Ge]h[eim@cam/1", "rtsp://***@cam/1"),
        ("rtsp://cam/1: lost, ask admin@example.org", "rtsp://cam/1: lost, ask admin@example.org"),
        ("HTTP://cam/v?PassWord=Geheim", "HTTP://cam/v?PassWord=***"),
        ("C:\\videos\\a@b.mp4", "C:\\videos\\a@b.mp4"),
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
        ("HTTP://u:p@Cam/A", ("http://Cam/A", "u", "p")),
        ("http://u:a#b@cam/x?y#z", ("http://cam/x?y#z", "u", "a#b")),
        ("http://u:a/b?c@cam:81", ("http://cam:81", "u", "a/b?c")),
        ("http://u:[p]@[fe80::1]:81/", ("http://[fe80::1]:81/", "u", "[p]")),
        ("http://u:100%@cam/", ("http://cam/", "u", "100%")),
        ("http://cam:81/a@b", ("http://cam:81/a@b", None, None)),  # as RFC 3986 reads it
        ("http://cam/a?mail=x@y", ("http://cam/a?mail=x@y", None, None)),
        ("user@host", ("user@host", None, None)),
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
        ("RTSP://a/b", True),
        ("Http://a/b", True),
        ("٣", False),
        ("9" * 5000, False),
    ],
)
def test_is_live(spec: str, live: bool) -> None:
    assert is_live(spec) is live


def test_is_http() -> None:
    assert is_http("HTTP://a") and is_http("https://a") and not is_http("rtsp://a") and not is_http("httpx://a")


@pytest.mark.parametrize(
    ("address", "full"),
    [
        ("RTSP://cam/1", "rtsp://cam/1"),
        ("rtsp://u:p%2Fq@cam/1", "rtsp://u:p%2Fq@cam/1"),  # as it was written, if it may be
        ("rtsp://u:a#b/c?d@cam/1", "rtsp://u:a%23b%2Fc%3Fd@cam/1"),
        ("rtsp://u:[@]@cam/1", "rtsp://u:%5B%40%5D@cam/1"),
        ("rtsp://u:100%@cam/1", "rtsp://u:100%25@cam/1"),
        ("rtsp://u@cam/1", "rtsp://u@cam/1"),
        ("rtsp://straße:ü@cam/1", "rtsp://stra%C3%9Fe:%C3%BC@cam/1"),
    ],
)
def test_full__what_does_not_belong_there_is_encoded(address: str, full: str) -> None:
    assert parse_address(address).full == full


def test_hint__where_the_host_may_be_a_part_of_a_password() -> None:
    assert "%2F" in parse_address("rtsp://admin:12/34@cam/1").hint
    assert parse_address("rtsp://admin:1234@cam/1").hint == ""


@pytest.mark.parametrize("password", ["Geheim", "Ge#heim", "Ge heim", "Ge/h?e@im", "100%Geheim", "Ge+h&eim", "straße"])
def test_mask_credentials__what_somebody_else_wrote(password: str) -> None:
    from base64 import b64encode
    from urllib.parse import quote, quote_plus

    address = f"http://admin:{quote(password, safe='')}@cam/1"
    forms = [password, quote(password), quote(password, safe=""), quote_plus(password)]
    forms += [f"admin:{quote(password, safe='')}", b64encode(f"admin:{password}".encode()).decode()]
    for form in forms:
        text = mask_credentials(f"nonnumeric port: '{form}', tried {form}", address)
        assert text == "nonnumeric port: '***', tried ***"


def test_mask_credentials__tokens_of_the_address() -> None:
    assert mask_credentials("bad value abc def", "http://cam/v?token=abc%20def") == "bad value ***"
    assert mask_credentials("a b", "http://u:a@cam") == "a b"  # one letter would tell itself by what it hides


def test_foreign_text__one_short_line() -> None:
    text = foreign_text("no\r\n\x1b[31m Geheim " + "x" * 1000, "http://u:Geheim@cam")
    assert "Geheim" not in text and "\x1b" not in text and "\n" not in text and len(text) < 250
