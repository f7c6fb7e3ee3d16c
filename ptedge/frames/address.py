"""Addresses of live sources: telling them from files, and keeping credentials out of everything that is shown."""

from __future__ import annotations

import re
from urllib.parse import unquote, urlsplit, urlunsplit

MASK = "***"

# what stands between :// and @. A password may hold @ and / although it should not, so the longest reading is taken:
# http://host:8080/a@b loses its host, which is better than a password shown
_USER = re.compile(r"(?<=://)(?:[^/\s]*|[^/\s:]+:\S*)@")
# ?user=admin&pwd=1234, as many cameras want it
_QUERY = re.compile(
    r"(?i)(?<=[?&;])([\w.-]*(?:pass|pwd|token|secret|auth|key|user|usr|login|account|sig)[\w.-]*=)[^&#;\s\"']+"
)
# location=... user-id=admin user-pw=1234 in a GStreamer pipeline
_PROPERTY = re.compile(r"(?i)\b((?:user|proxy)-(?:id|pw)\s*=\s*)(\"[^\"]*\"|'[^']*'|\S+)")
_DEVICE = re.compile(r"/dev/video\d+")


def mask_credentials(text: str) -> str:
    """A text with user names, passwords and tokens of all addresses in it replaced by ``***``.

    Args:
        text: address, pipeline or message.
    """
    text = _USER.sub(f"{MASK}@", text)
    text = _QUERY.sub(rf"\g<1>{MASK}", text)
    return _PROPERTY.sub(rf"\g<1>{MASK}", text)


def split_credentials(address: str) -> tuple[str, str | None, str | None]:
    """Take user and password out of an address.

    Args:
        address: ``http://user:password@host/path``; both parts may be percent-encoded.

    Returns:
        Address without them, user, password; ``None`` where there is none.
    """
    parts = urlsplit(address)
    userinfo, at, host = parts.netloc.rpartition("@")
    if not at:
        return address, None, None
    user, colon, password = userinfo.partition(":")
    bare = urlunsplit(parts._replace(netloc=host))
    return bare, unquote(user), unquote(password) if colon else None


def is_live(spec: str) -> bool:
    """Whether a text names a camera index or device, a stream or a GStreamer pipeline."""
    return is_camera(spec) or re.match(r"[a-z][a-z0-9+.-]*://", spec) is not None or is_pipeline(spec)


def is_camera(spec: str) -> bool:
    """Whether a text is a camera index (``0``) or a video device of Linux (``/dev/video0``)."""
    return spec.isdecimal() or _DEVICE.fullmatch(spec) is not None


def is_pipeline(spec: str) -> bool:
    """Whether a text is a GStreamer pipeline."""
    return " ! " in spec


def is_http(spec: str) -> bool:
    """Whether a text is an ``http://`` or ``https://`` address."""
    return spec.startswith(("http://", "https://"))
