"""Addresses of live sources: telling them from files, taking them apart, and keeping logins out of what is shown."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from urllib.parse import quote, quote_plus, unquote

MASK = "***"

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
# an address, or what was meant to be one: rtsp:/user:password@host; one letter is a drive of Windows
_BEGINS_AS_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/+")
_LOGIN_WITHOUT_SCHEME = re.compile(r"[^/\\\s:@]+:[^/\\].*@", re.DOTALL)
_HOST = re.compile(r"(?:\[[\w:.%]+\]|[^:\[\]\s]*)(?::\d{0,5})?")
# what stands between :// and @. A password may hold @ and / although it should not, so the longest reading is taken:
# http://host:8080/a@b loses its host, which is better than a password shown
_USER = re.compile(r"(?<=://)(?:[^/\s]*|[^/\s:]+:\S*)@")
# ?user=admin&pwd=1234, as many cameras want it
_QUERY = re.compile(
    r"(?i)((?<=[?&;])[\w.-]*(?:pass|pwd|token|secret|auth|key|user|usr|login|account|sig)[\w.-]*=)([^&#;\s\"']+)"
)
# location=... user-id=admin user-pw=1234 in a GStreamer pipeline
_PROPERTY = re.compile(r"(?i)\b((?:user|proxy)-(?:id|pw)\s*=\s*)(\"[^\"]*\"|'[^']*'|\S+)")
_CLEAN_LOGIN = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9A-Fa-f]{2})*")
_DEVICE = re.compile(r"/dev/video\d+")
_SHORTEST_SECRET = 3  # a shorter one would be found in every other word, which tells it
_LONGEST_FOREIGN = 200  # characters shown of what a server or a library says


@dataclass(frozen=True)
class Address:
    """A stream's address, taken apart.

    Attributes:
        scheme: in small letters.
        user: decoded; ``None`` where there is none.
        password: decoded; ``None`` where there is none.
        host: with port, as written.
        rest: path, query and fragment, as written.
        login: user and password as written.
    """

    scheme: str
    user: str | None
    password: str | None
    host: str
    rest: str
    login: str

    @property
    def bare(self) -> str:
        """The address without login."""
        return f"{self.scheme}://{self.host}{self.rest}" if self.scheme else self.rest

    @property
    def full(self) -> str:
        """The address with its login as it has to be written: what does not belong there is percent-encoded."""
        if self.user is None:
            return self.bare
        login = self.login
        if not _CLEAN_LOGIN.fullmatch(login):
            login = quote(self.user, safe="") + ("" if self.password is None else ":" + quote(self.password, safe=""))
        return f"{self.scheme}://{login}@{self.host}{self.rest}"

    @property
    def doubtful(self) -> bool:
        """Whether another ``@`` follows, so that what was taken for the host may be a part of a password."""
        return "@" in self.rest

    @property
    def hint(self) -> str:
        """What to say, in brackets, where the address is doubtful; empty where it is not."""
        if not self.doubtful:
            return ""
        return " (in a user name or a password, # / ? @ [ ] have to be written %23 %2F %3F %40 %5B %5D)"


def parse_address(text: str) -> Address:
    """Take an address apart, also where a password holds what should have been percent-encoded (``# / ? @ [ ]``).

    Args:
        text: ``scheme://user:password@host:port/path``; without ``://`` it is all host and path.
    """
    scheme, separator, rest = text.partition("://")
    if not separator:
        return Address("", None, None, "", text, "")
    cut = _authority_end(rest)
    authority, tail = rest[:cut], rest[cut:]
    login, at, host = authority.rpartition("@")
    if not at and "@" in tail and not _HOST.fullmatch(authority):
        # no host looks like this: a password with / ? or #, which ends at the last @
        login, at, after = rest.rpartition("@")
        cut = _authority_end(after)
        host, tail = after[:cut], after[cut:]
    if not at:
        return Address(scheme.lower(), None, None, authority, tail, "")
    user, colon, password = login.partition(":")
    return Address(scheme.lower(), unquote(user), unquote(password) if colon else None, host, tail, login)


def split_credentials(address: str) -> tuple[str, str | None, str | None]:
    """Take user and password out of an address.

    Args:
        address: ``http://user:password@host/path``; both parts may be percent-encoded.

    Returns:
        Address without them, user, password; ``None`` where there is none.
    """
    if "://" not in address:
        return address, None, None
    parts = parse_address(address)
    return parts.bare, parts.user, parts.password


def mask_credentials(text: str, address: str = "") -> str:
    """A text with user names, passwords and tokens of all addresses in it replaced by ``***``.

    Args:
        text: address, pipeline or message.
        address: whose password and tokens are hidden wherever they stand, however they are encoded; for texts that
            somebody else wrote, such as a library or a server.
    """
    for secret in _secrets(address):
        text = text.replace(secret, MASK)
    text = _masked_whole(text)
    text = _USER.sub(f"{MASK}@", text)
    text = _QUERY.sub(rf"\g<1>{MASK}", text)
    return _PROPERTY.sub(rf"\g<1>{MASK}", text)


def foreign_text(text: str, address: str) -> str:
    """What a server or a library said, fit to be shown: one line, short, printable, and without the login.

    Args:
        text: as it came.
        address: whose login it may hold.
    """
    line = "".join(character if character.isprintable() else " " for character in mask_credentials(text, address))
    return line if len(line) <= _LONGEST_FOREIGN else f"{line[:_LONGEST_FOREIGN]}..."


def is_live(spec: str) -> bool:
    """Whether a text names a camera index or device, a stream or a GStreamer pipeline."""
    return is_camera(spec) or _SCHEME.match(spec) is not None or is_pipeline(spec)


def is_camera(spec: str) -> bool:
    """Whether a text is a camera index (``0``) or a video device of Linux (``/dev/video0``)."""
    return (spec.isascii() and spec.isdecimal() and len(spec) <= 4) or _DEVICE.fullmatch(spec) is not None


def is_pipeline(spec: str) -> bool:
    """Whether a text is a GStreamer pipeline."""
    return " ! " in spec


def is_http(spec: str) -> bool:
    """Whether a text is an ``http://`` or ``https://`` address, in small letters or capitals (RFC 3986, 3.1)."""
    return spec[:8].lower().startswith(("http://", "https://"))


def _authority_end(text: str) -> int:
    found = re.search(r"[/?#]", text)
    return found.start() if found else len(text)


def _masked_whole(text: str) -> str:
    """A text that is one address as a whole, its login masked up to the last ``@``; any other as it is."""
    begins = _BEGINS_AS_ADDRESS.match(text)
    _, at, after = text.rpartition("@")
    if not at or is_pipeline(text):
        return text
    if begins is None:
        whole = not re.search(r"\s", text) and _LOGIN_WITHOUT_SCHEME.match(text)
        return f"{MASK}@{after}" if whole else text
    word = text[begins.end() :].split(None, 1)[0] if text[begins.end() :].strip() else ""
    authority = word[: _authority_end(word)]
    if len(begins[0] + word) == len(text):  # one word: a colon before the first / ? # makes it a login
        return f"{begins[0]}{MASK}@{after}" if ":" in authority or "@" in authority else text
    # of several words it is a message about an address, unless that has a password with a space
    return f"{begins[0]}{MASK}@{after}" if "@" not in word and not _HOST.fullmatch(authority) else text


def _secrets(address: str) -> list[str]:
    """Password and tokens of an address in the forms in which they may turn up, the longest first."""
    if not address:
        return []
    parts = parse_address(address)
    forms = {value for _, value in _QUERY.findall(address)}
    forms |= {value.strip("\"'") for _, value in _PROPERTY.findall(address)}
    forms |= {unquote(form) for form in forms}
    if parts.user is not None:
        forms.add(parts.login)
        password = parts.login.partition(":")[2]
        for plain in (parts.password or "", password):
            forms |= {plain, quote(plain), quote(plain, safe=""), quote_plus(plain)}
        pair = f"{parts.user}:{parts.password or ''}".encode()
        forms.add(base64.b64encode(pair).decode("ascii"))
    return sorted((form for form in forms if len(form) >= _SHORTEST_SECRET), key=len, reverse=True)
