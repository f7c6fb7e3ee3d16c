"""Faults of a connection in words."""

from __future__ import annotations

import socket
import ssl
import urllib.error

from ptedge.frames.address import foreign_text


def fault_text(error: Exception, address: str) -> str:
    """What went wrong with a connection, in one line without the login.

    Args:
        error: as raised.
        address: of the other side; its login is left out of the text.
    """
    cause = error.reason if isinstance(error, urllib.error.URLError) and not isinstance(error.reason, str) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({foreign_text(cause.verify_message, address)}). If it is the server's "
            "own, save it as a file and name that in the environment variable SSL_CERT_FILE"
        )
    if isinstance(cause, ssl.SSLError):
        why = (cause.reason or str(cause)).replace("_", " ").lower()
        return f"no TLS connection: {foreign_text(why, address)}. Does the server speak TLS at this port?"
    if isinstance(cause, TimeoutError):
        return "no answer in time"
    if isinstance(cause, socket.gaierror):
        return f"its name is not known ({cause.strerror})"
    text = (cause.strerror or str(cause)) if isinstance(cause, OSError) else str(cause)
    return foreign_text(text or type(cause).__name__, address)
