"""Addresses of buckets: taken as they are given, or refused with what is wrong."""

from __future__ import annotations

import pytest

from ptedge.errors import StoreError
from ptedge.stores.s3_address import S3Address, parse_s3_address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s3://frames", S3Address("frames")),
        ("s3://frames/", S3Address("frames")),
        ("S3://frames/north/gate-2/", S3Address("frames", "north/gate-2/")),
        ("s3://frames/site?region=eu-central-1", S3Address("frames", "site/", None, "eu-central-1")),
        ("s3://frames?endpoint=https://minio.example:9000", S3Address("frames", "", "https://minio.example:9000")),
        ("s3://frames?endpoint=http://127.0.0.1:9000", S3Address("frames", "", "http://127.0.0.1:9000")),
        ("s3://frames?endpoint=http://[::1]:9000", S3Address("frames", "", "http://[::1]:9000")),
        ("s3://frames?endpoint=http://LOCALHOST", S3Address("frames", "", "http://LOCALHOST")),
        ("s3://frames?endpoint=http://10.0.0.5:9000&allow_http=true", S3Address("frames", "", "http://10.0.0.5:9000")),
    ],
)
def test_parse_s3_address__takes(text: str, expected: S3Address) -> None:
    assert parse_s3_address(text, {}) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("s3://", "names no bucket"),
        ("s3:///site", "names no bucket"),
        ("s3://frames/../other", "no key of a store"),
        ("s3://frames/a b", "no key of a store"),
        ("s3://frames?endpiont=https://host", "unknown option 'endpiont'"),
        ("s3://frames?endpoint=host:9000", "no address of a server"),
        ("s3://frames?endpoint=https://host/path", "no address of a server"),
        ("s3://frames?endpoint=https://host:port", "no address of a server"),
        ("s3://frames?endpoint=http://10.0.0.5:9000", r"is not encrypted.*allow_http=true"),
        ("s3://frames?endpoint=http://127.0.0.1.example.com", "is not encrypted"),
        ("s3://frames?endpoint=http://localhost.example.com", "is not encrypted"),
        ("s3://frames?endpoint=http://10.0.0.5&allow_http=yes", "must be true or false"),
    ],
)
def test_parse_s3_address__refuses(text: str, said: str) -> None:
    with pytest.raises(StoreError, match=said):
        parse_s3_address(text, {})


@pytest.mark.parametrize("text", ["s3://KEY:hush@frames/site", "s3://frames?endpoint=https://user:hush@host"])
def test_parse_s3_address__does_not_repeat_a_secret(text: str) -> None:
    with pytest.raises(StoreError, match="AWS_ACCESS_KEY_ID") as told:
        parse_s3_address(text, {})
    assert "hush" not in str(told.value)


def test_parse_s3_address__endpoint_of_the_environment_is_held_to_the_same() -> None:
    assert parse_s3_address("s3://frames", {"AWS_ENDPOINT_URL": "https://host"}).endpoint == "https://host"
    both = {"AWS_ENDPOINT_URL": "https://host", "AWS_ENDPOINT_URL_S3": "https://bucket.host"}
    assert parse_s3_address("s3://frames", both).endpoint == "https://bucket.host"
    assert parse_s3_address("s3://frames?endpoint=https://mine", both).endpoint == "https://mine"
    with pytest.raises(StoreError, match="is not encrypted"):
        parse_s3_address("s3://frames", {"AWS_ENDPOINT_URL": "http://host"})


def test_shown__without_the_server() -> None:
    assert S3Address("frames", "site/", "https://host").shown == "s3://frames/site"
    assert S3Address("frames").shown == "s3://frames"
