from __future__ import annotations

import pytest

from ptedge.errors import InputError
from ptedge.runtime.push_address import LONGEST_TOPIC, PushAddress, parse_push_address

GOOD = [
    "cars",
    "/lead/x",
    "a//b",
    "a/",
    "/",
    "//",
    " a b ",
    "a?q=1",
    "a&b=c",
    "fl\u00fcsse/\u6c34",
    "$aws/rules/x",
    "100%",
    "a%zz",
]
BAD = {
    "a/#": "# or \\+",
    "#": "# or \\+",
    "a/+/b": "# or \\+",
    "a+b": "# or \\+",
    "a\x00b": "control character",
    "a\nb": "control character",
    "a\x7f": "control character",
    "a%2Fb": "%-escape",
    "%00": "%-escape",
    "$SYS/load": "belongs to the broker",
    "$sys": "belongs to the broker",
    "a\udcff": "not UTF-8",
    "x" * (LONGEST_TOPIC + 1): "65536 bytes",
    "\u00fc" * 40_000: "80000 bytes",
}


@pytest.mark.parametrize("topic", GOOD)
@pytest.mark.parametrize("before", ["mqtt://host", "MQTTS://me:p%40ss@[::1]:1884"])
def test_parse_push_address__a_topic_is_used_as_it_is_given(topic: str, before: str) -> None:
    assert parse_push_address(f"{before}/{topic}").topic == topic


def test_parse_push_address__the_longest_topic() -> None:
    assert len(parse_push_address("mqtt://host/" + "x" * LONGEST_TOPIC).topic) == LONGEST_TOPIC


@pytest.mark.parametrize(("topic", "match"), BAD.items(), ids=[repr(topic[:20]) for topic in BAD])
def test_parse_push_address__or_refused(topic: str, match: str) -> None:
    with pytest.raises(InputError, match=match) as caught:
        parse_push_address(f"mqtt://me:secret@host/{topic}")
    assert "secret" not in str(caught.value) and str(caught.value).isprintable() and len(str(caught.value)) < 400


def test_parse_push_address__parts() -> None:
    assert parse_push_address("MQTT://me:p%23ss@[::1]:1884/a") == PushAddress(
        "mqtt", "::1", 1884, "me", "p#ss", topic="a"
    )
    assert parse_push_address("https://host/x?y=z") == PushAddress(
        "https", "host", None, None, None, url="https://host/x?y=z"
    )


@pytest.mark.parametrize("password", ["a#b", "a/b", "a?b", "a[b", "a]b", "a@b", "a:b", "[x]", "a b"])
@pytest.mark.parametrize("scheme", ["http", "HTTPS", "mqtt"])
def test_parse_push_address__a_password_with_anything_in_it(scheme: str, password: str) -> None:
    given = parse_push_address(f"{scheme}://me:{password}@host/x")
    assert (given.scheme, given.host, given.user, given.password) == (scheme.lower(), "host", "me", password)


@pytest.mark.parametrize(
    "text",
    [
        *("ftp://x/y", "somewhere", "http://", "mqtt://host", "http://host:port/", "mqtt://host/", "http://host:0/"),
        *("http://ho st/", "http:///x", "mqtt://:1883/x", "http://host:99999/", "http://[::1/", "mqtt://host?x/y", ""),
        *("http://host/a b", "http://host/a\tb", "http://host/a#b", "http://host/\udcff", "http://ho\nst/"),
        *("mqtt://me:12/3@host/x", "http://a\x00b/", "http://me:#@host/x"),
    ],
)
def test_parse_push_address__no_address(text: str) -> None:
    with pytest.raises(InputError, match=r"^--push ") as caught:
        parse_push_address(text)
    assert str(caught.value).isprintable()
