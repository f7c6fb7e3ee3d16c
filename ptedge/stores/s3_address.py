"""Addresses of buckets: ``s3://bucket/prefix?endpoint=https://host:9000&region=eu-central-1``."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from ptedge.errors import StoreError
from ptedge.stores.store import check_key

OPTIONS = ("endpoint", "region", "allow_http")
FORM = "s3://bucket/prefix, with ?endpoint=https://host:port for a server other than AWS"
_BUCKET = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{1,62}")  # capitals: old buckets, and servers of one's own


@dataclass(frozen=True)
class S3Address:
    """A bucket, and a place in it.

    Attributes:
        bucket: its name.
        prefix: of all keys, with its slash; empty for the whole bucket.
        endpoint: of the server; ``None`` for AWS.
        region: ``None`` for what the environment says.
    """

    bucket: str
    prefix: str = ""
    endpoint: str | None = None
    region: str | None = None

    @property
    def shown(self) -> str:
        """Bucket and prefix."""
        return f"s3://{self.bucket}/{self.prefix}".rstrip("/")


def parse_s3_address(text: str, environment: Mapping[str, str] = os.environ) -> S3Address:
    """Take an address apart.

    Args:
        text: ``s3://bucket``, ``s3://bucket/prefix/``, with the options ``endpoint``, ``region`` and
            ``allow_http=true`` after a ``?``.
        environment: whose ``AWS_ENDPOINT_URL_S3`` or ``AWS_ENDPOINT_URL`` is the endpoint where the address has none.

    Raises:
        StoreError: it is no such address, or would send frames unencrypted over a network.
    """
    place, _, query = text[len("s3://") :].partition("?")
    if "@" in place or "@" in query:
        raise StoreError(
            "the address of the store holds an @, as if with a key or a password. These are taken from "
            f"AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or from AWS_PROFILE; give {FORM}"
        )
    bucket, _, prefix = place.partition("/")
    prefix = prefix.strip("/")
    options = dict(parse_qsl(query, keep_blank_values=True))
    if unknown := sorted(set(options) - set(OPTIONS)):
        raise StoreError(f"{text}: unknown option {unknown[0]!r}; there are {', '.join(OPTIONS)}")
    if not _BUCKET.fullmatch(bucket):
        raise StoreError(f"{text} names no bucket. Give {FORM}")
    if prefix:
        check_key(prefix)
    endpoint = options.get("endpoint") or environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL")
    allow = options.get("allow_http", "false")
    if allow not in ("true", "false"):
        raise StoreError(f"{text}: allow_http is {allow!r}; it must be true or false")
    if endpoint:
        _check_endpoint(endpoint, allow == "true")
    return S3Address(bucket, f"{prefix}/" if prefix else "", endpoint or None, options.get("region") or None)


def _check_endpoint(endpoint: str, allow_http: bool) -> None:
    """Refuse what is no address of a server, and ``http://`` to another machine."""
    try:
        parts = urlsplit(endpoint)
        good = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        good = good and parts.path in ("", "/") and not parts.query and not parts.fragment and parts.username is None
    except ValueError:
        good = False
    if not good:
        raise StoreError("the endpoint of the store is no address of a server. Give https://host or https://host:port")
    if parts.scheme == "http" and not allow_http and not _is_this_machine(str(parts.hostname)):
        raise StoreError(
            f"{endpoint} is not encrypted, so frames and bundles could be read and changed on their way. Use https://, "
            "or add allow_http=true to the options of the address where the network is trusted"
        )


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"
