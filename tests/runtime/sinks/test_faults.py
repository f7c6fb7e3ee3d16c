from __future__ import annotations

import socket
import ssl
import urllib.error

import pytest

from ptedge.runtime.sinks.faults import fault_text


def distrusted() -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_message = "self-signed certificate"
    return error


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (distrusted(), "not trusted (self-signed certificate)"),
        (urllib.error.URLError(distrusted()), "SSL_CERT_FILE"),
        (TimeoutError("timed out"), "no answer in time"),
        (urllib.error.URLError(TimeoutError()), "no answer in time"),
        (socket.gaierror(-2, "Name or service not known"), "its name is not known (Name or service not known)"),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (OSError(), "OSError"),
        (ValueError("no password secret here"), "no password *** here"),
    ],
)
def test_fault_text__names_what_went_wrong(error: Exception, says: str) -> None:
    assert says in fault_text(error, "https://me:secret@host/")
