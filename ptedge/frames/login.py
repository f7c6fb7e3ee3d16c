"""Logins of live sources from the environment or a file, so that no address on a command line has to hold one.

The file has the form that curl, wget and git read (``.netrc``)::

    machine camera1 login admin password secret
    machine camera2:8080 login viewer password "with \\" and space"
    default login admin password other
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import quote

from ptedge.errors import InputError
from ptedge.files import open_regular
from ptedge.frames.address import parse_address

LOGIN_VARIABLE = "PTEDGE_SOURCE_AUTH"

_LARGEST_FILE = 1 << 20
_TOKEN = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
_DEFAULT = ""


def with_login(address: str, file: Path | None = None, variable: str = LOGIN_VARIABLE) -> str:
    """An address with the login that belongs to it, unless it has one of its own.

    Args:
        address: of a live source; what is no ``scheme://host`` stays as it is.
        file: logins by host; by default what ``PTEDGE_SOURCE_AUTH_FILE`` names. A host that is not in it, and without
            a file every host, has the ``user:password`` of ``PTEDGE_SOURCE_AUTH``, if there is one.
        variable: another name in place of ``PTEDGE_SOURCE_AUTH``, for addresses of another kind.

    Raises:
        InputError: the file cannot be read, or has another form.
    """
    parts = parse_address(address)
    if not parts.host or parts.user is not None or parts.scheme == "csi" or " ! " in address:
        return address
    named = os.environ.get(f"{variable}_FILE", "")
    login = None
    if file is not None or named:
        logins = read_logins(file if file is not None else Path(named))
        host = parts.host.lower()
        name = re.sub(r":\d*$", "", host)
        login = logins.get(host) or logins.get(name) or logins.get(name.strip("[]")) or logins.get(_DEFAULT)
    if login is None and os.environ.get(variable):
        user, _, password = os.environ[variable].partition(":")
        login = (user, password)
    if login is None:
        return address
    return f"{parts.scheme}://{quote(login[0], safe='')}:{quote(login[1], safe='')}@{parts.host}{parts.rest}"


def read_logins(file: Path) -> dict[str, tuple[str, str]]:
    """Host, or host and port, in small letters -> (user, password); ``default`` is under the empty name.

    Args:
        file: see the module.

    Raises:
        InputError: it cannot be read, or has another form; nothing of its content is in the text.
    """
    try:
        with open_regular(file) as opened:
            data = opened.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"file of logins {file} cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST_FILE:
        raise InputError(f"file of logins {file} is larger than 1 MiB. Give one line a host")
    logins: dict[str, tuple[str, str]] = {}
    host: str | None = None
    for number, line in enumerate(data.decode("utf-8-sig", "surrogateescape").splitlines(), start=1):
        words = [] if line.lstrip().startswith("#") else _words(line)
        while words:
            key = words.pop(0)
            if key == "default":
                host = _DEFAULT
            elif words and key == "machine":
                host = words.pop(0).lower()
            elif words and host is not None and key in ("login", "password", "account"):
                user, password = logins.get(host, ("", ""))
                value = words.pop(0)
                user, password = (
                    (value, password) if key == "login" else (user, value if key == "password" else password)
                )
                logins[host] = (user, password)
            else:
                raise InputError(
                    f"file of logins {file}, line {number}: it should read: machine HOST login USER password PASSWORD"
                )
    return logins


def _words(line: str) -> list[str]:
    """Words of a line; one in double quotes may hold spaces, and quotes after a backslash."""
    return [plain or re.sub(r"\\(.)", r"\1", quoted) for quoted, plain in _TOKEN.findall(line)]
