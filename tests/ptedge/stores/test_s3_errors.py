"""Answers of servers as kinds and sentences."""

from __future__ import annotations

from typing import Any

import pytest

from ptedge.stores.s3_address import S3Address
from ptedge.stores.s3_errors import refusal

WHERE = S3Address("frames", "site/", "https://host")


class AnsweredError(Exception):
    def __init__(self, code: str, status: int, message: str = "") -> None:
        super().__init__(code)
        self.response: dict[str, Any] = {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": status},
        }


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("NoSuchKey", 404, "absent"),
        ("404", 404, "absent"),
        ("NoSuchBucket", 404, "other"),
        ("PreconditionFailed", 412, "exists"),
        ("ConditionalRequestConflict", 409, "conflict"),
        ("InvalidRange", 416, "range"),
        ("NotImplemented", 501, "unsupported"),
        ("403", 403, "denied"),
        ("SomethingNew", 403, "denied"),
        ("SlowDown", 503, "other"),
    ],
)
def test_refusal__kind(code: str, status: int, kind: str) -> None:
    assert refusal(AnsweredError(code, status), "put", "a", WHERE).kind == kind


def test_refusal__what_a_server_says_is_one_short_line() -> None:
    text = str(refusal(AnsweredError("InternalError", 500, "first\nsecond\x1b[31m" + "x" * 500), "put", "a", WHERE))
    assert text.startswith("cannot put a in s3://frames/site: https://host answers InternalError first second [31mxxx")
    assert len(text) < 300 and text.isprintable()


def test_refusal__of_a_certificate_says_what_to_set() -> None:
    class SSLError(Exception):
        pass

    assert "AWS_CA_BUNDLE" in str(refusal(SSLError("self-signed"), "put", "a", WHERE))
