from __future__ import annotations

from typing import Any

import pytest

from ptedge.errors import InputError
from ptedge.runtime.options import (
    ModelOptions,
    OutputOptions,
    PushOptions,
    ServeOptions,
    SourceOptions,
    is_loopback,
)

TOKEN = "0123456789abcdef"


@pytest.mark.parametrize(
    ("text", "token", "expected"),
    [
        ("8080", None, ("127.0.0.1", 8080)),
        (":8080", None, ("127.0.0.1", 8080)),
        ("localhost:0", None, ("localhost", 0)),
        ("[::1]:80", None, ("::1", 80)),
        ("0.0.0.0:8080", TOKEN, ("0.0.0.0", 8080)),
    ],
)
def test_serve_options__forms(text: str, token: str | None, expected: tuple[str, int]) -> None:
    assert ServeOptions.parse(text, token) == ServeOptions(*expected, token)


@pytest.mark.parametrize(
    ("text", "token", "match"),
    [
        ("0.0.0.0:8080", None, "needs a token"),
        ("[::]:8080", None, "needs a token"),
        ("camera.local:8080", None, "needs a token"),
        ("0.0.0.0:8080", "short", "at least 16"),
        ("8080x", None, "give a port"),
        ("70000", None, "give a port"),
        ("127.0.0.1", None, "give a port"),
    ],
)
def test_serve_options__refused(text: str, token: str | None, match: str) -> None:
    with pytest.raises(InputError, match=match):
        ServeOptions.parse(text, token)


def test_is_loopback__names_and_numbers() -> None:
    assert is_loopback("127.8.8.8") and is_loopback("::1") and is_loopback("LOCALHOST")
    assert not is_loopback("192.168.1.1") and not is_loopback("127.0.0.1.example.com")


def test_serve_options__refusal_shows_what_the_user_wrote() -> None:
    with pytest.raises(InputError, match=r"--serve \[::\]:8080 can be reached"):
        ServeOptions.parse("[::]:8080", None)


@pytest.mark.parametrize(
    "to", ["ftp://x/y", "somewhere", "http://", "mqtt://host", "http://host:port/", "mqtt://host/"]
)
def test_push_options__other_addresses(to: str) -> None:
    with pytest.raises(InputError, match="no address to push to"):
        PushOptions(to)


def test_push_options__the_refusal_and_the_repr_hide_what_is_secret() -> None:
    with pytest.raises(InputError) as caught:
        PushOptions("ftp://me:secret@x/y")
    assert "secret" not in str(caught.value)
    assert "secret" not in repr(PushOptions("http://x", token="secret"))
    assert TOKEN not in repr(ServeOptions(token=TOKEN))
    assert "secret" not in repr(PushOptions("http://me:secret@x"))


@pytest.mark.parametrize("token", ["a\nb", "a\x00", "\u00fc", "a\r\nX: y"])
def test_push_options__a_token_that_no_header_takes(token: str) -> None:
    with pytest.raises(InputError, match="Look for a line break"):
        PushOptions("http://x", token=token)


def test_push_options__a_token_is_for_http() -> None:
    with pytest.raises(InputError, match="MQTT takes a user"):
        PushOptions("mqtt://x/y", token="a")


@pytest.mark.parametrize(
    ("options", "wrong", "allowed"),
    [
        (SourceOptions, {"start": -1}, "at least 0"),
        (SourceOptions, {"stride": 0}, "at least 1"),
        (SourceOptions, {"limit": 0}, "at least 1"),
        (SourceOptions, {"rate": float("nan")}, "above 0"),
        (SourceOptions, {"flip": "left"}, "horizontal, vertical, both"),
        (ModelOptions, {"backend": "gpu"}, "auto, tensorrt, tensorrt-rtx, cuda, cpu"),
        (ModelOptions, {"threads": 0}, "at least 1"),
        (OutputOptions, {"save": ("jsonl", "gif")}, "jsonl, coco, csv, video, images"),
        (OutputOptions, {"min_score": 2.0}, "at least 0 and at most 1"),
        (OutputOptions, {"draw_score": float("nan")}, "at least 0 and at most 1"),
    ],
)
def test_options__say_what_is_wrong_and_what_is_allowed(options: Any, wrong: dict[str, Any], allowed: str) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is .*{allowed}"):
        options(**wrong)
