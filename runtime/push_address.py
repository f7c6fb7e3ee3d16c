"""Where results are pushed to: an address is used exactly as it is given, or refused before the run."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from ptedge.errors import InputError
from ptedge.frames.address import mask_credentials, parse_address

HTTP, MQTT = ("http", "https"), ("mqtt", "mqtts")
LONGEST_TOPIC = 65535  # bytes of UTF-8: MQTT 3.1.1, 1.5.3
KEPT = "/?%:@!$&'()*+,;=~[]"  # characters of a path and a query that stay as they are

_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")


@dataclass(frozen=True)
class PushAddress:
    """An address to push to, taken apart.

    Attributes:
        scheme: ``http``, ``https``, ``mqtt`` or ``mqtts``.
        host: name or number, IPv6 without brackets.
        port: ``None`` for that of the scheme.
        user: ``None`` for none.
        password: ``None`` for none.
        url: for HTTP, without login and fit for a request; empty for MQTT.
        topic: for MQTT, as given; empty for HTTP.
    """

    scheme: str
    host: str
    port: int | None
    user: str | None
    password: str | None
    url: str = ""
    topic: str = ""


def parse_push_address(text: str) -> PushAddress:
    """Take an address apart.

    Args:
        text: ``http://[user:password@]host[:port]/path``, ``https://...``, or
            ``mqtt://[user:password@]host[:port]/topic`` and ``mqtts://...``, where the topic is all that follows the
            first ``/`` after the host, character by character.

    Raises:
        InputError: it is no such address, or the topic cannot be published to; with what is wrong.
    """
    parts = parse_address(text)
    try:
        about = urlsplit(f"//{parts.host}")
        host, port = about.hostname, about.port  # port raises on nonsense
        good = parts.scheme in HTTP + MQTT and bool(host) and about.netloc == parts.host and port != 0
        good = good and (parts.scheme in HTTP or len(parts.rest) > 1)
    except ValueError:
        host, port, good = None, None, False
    if not good or not host or re.search(r"[\s\x00-\x1f\x7f]", parts.host):
        raise _refused(text, "is no address to push to. Give http://host/path, https://host/path or mqtt://host/topic")
    if parts.scheme in HTTP:
        url = f"{parts.scheme}://{parts.host}{_checked_path(text, parts.rest)}"
        return PushAddress(parts.scheme, host, port, parts.user, parts.password, url=url)
    if parts.doubtful and (parts.user is not None or ":" in parts.host):
        raise _refused(text, f"has an @ after the host{parts.hint}")
    topic = parts.rest[1:] if parts.rest.startswith("/") else parts.rest
    if not parts.rest.startswith("/") or (wrong := wrong_with_topic(topic)):
        raise _refused(text, wrong if parts.rest.startswith("/") else "needs a / between the host and the topic")
    return PushAddress(parts.scheme, host, port, parts.user, parts.password, topic=topic)


def wrong_with_topic(topic: str) -> str:
    """What keeps an MQTT topic from being published to as it is given; empty when nothing does.

    Leading, trailing and doubled slashes are levels without a name, which MQTT allows.

    Reference: MQTT 3.1.1, sections 1.5.3 and 4.7.
    """
    size = len(topic.encode("utf-8", "surrogatepass"))
    whole = topic.upper().split("/")[0]
    faults = {
        "has a topic that is not UTF-8": any(unicodedata.category(character) == "Cs" for character in topic),
        f"has a topic of {size} bytes; MQTT allows {LONGEST_TOPIC}": size > LONGEST_TOPIC,
        "has # or + in its topic: these stand for many topics, to subscribe to and not to publish to": (
            "#" in topic or "+" in topic
        ),
        "has a control character in its topic, which brokers refuse": any(
            unicodedata.category(character) == "Cc" for character in topic
        ),
        "has a %-escape in its topic, which is used as it stands: write the character itself": (
            _ESCAPE.search(topic) is not None
        ),
        "has a topic below $SYS, which belongs to the broker": whole == "$SYS",
    }
    return next((text for text, true in faults.items() if true), "")


def _checked_path(text: str, rest: str) -> str:
    if "#" in rest:
        raise _refused(text, "has a # after the host; what follows it is never sent. Write %23, or leave it out")
    if any(character.isspace() or unicodedata.category(character) == "Cc" for character in rest):
        raise _refused(text, "has a space or a control character in its path. Write %20 for a space")
    try:
        return quote(rest, safe=KEPT)
    except UnicodeEncodeError:
        raise _refused(text, "has a path that is not UTF-8") from None


def _refused(text: str, wrong: str) -> InputError:
    shown = mask_credentials(text, text)
    shown = "".join(c if c.isprintable() else "?" for c in shown)
    return InputError(f"--push {shown if len(shown) <= 200 else shown[:200] + '...'} {wrong}")
