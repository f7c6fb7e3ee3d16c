"""A bucket of S3, or of a server that speaks its language, as a store.

Before an object is sent it is asked for: that saves sending what is there, and some servers (``rclone serve s3``)
ignore the condition ``If-None-Match: *`` without a word. The condition goes along all the same and decides between two
writers where the server heeds it; :meth:`S3Store.exclusive` tries whether it does.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from ptedge.errors import StoreError, named_extras
from ptedge.files import open_regular
from ptedge.stores.body import PacedBody, begin_sending
from ptedge.stores.pace import Pace
from ptedge.stores.s3_address import S3Address
from ptedge.stores.s3_errors import Kind, RefusalError, refusal
from ptedge.stores.store import PROBES, Content, Item, absent, check_key

PIECE = 1 << 20  # bytes read at once
MOST_AT_ONCE = 64 << 20  # bytes of an object sent by one request
PART = 32 << 20  # bytes of a part of a larger one
ATTEMPTS = 4  # of a request that fails on the way


class S3Store:
    """Objects in a bucket.

    Args:
        where: the bucket.
        pace: limit of what is sent and received.

    Raises:
        MissingExtraError: boto3 is not installed.
        StoreError: no access key is to be found.
    """

    def __init__(self, where: S3Address, pace: Pace | None = None) -> None:
        self._where, self._pace = where, pace or Pace()
        self._client = _client(where)
        self._exclusive: bool | None = None
        self._lock = threading.Lock()

    @property
    def address(self) -> str:
        """Bucket and prefix."""
        return self._where.shown

    def put(self, key: str, content: Content) -> bool:
        """See :meth:`ptedge.stores.store.Store.put`."""
        if self.head(key) is not None:
            return False
        if isinstance(content, bytes):
            return self._put_bytes(check_key(key), content)
        try:
            with open_regular(content) as file:
                size = file.seek(0, 2)
                file.seek(0)
                if size > MOST_AT_ONCE:
                    return self._put_parts(key, iter(lambda: file.read(PART), b""))
                return self._put_bytes(key, file.read())
        except OSError as error:
            raise StoreError(f"cannot read {content} to put it into {self.address}: {error.strerror}") from None

    def get(self, key: str, start: int = 0, length: int | None = None) -> Iterator[bytes]:
        """See :meth:`ptedge.stores.store.Store.get`; where the line breaks, it is gone on with from there."""
        if length == 0:
            if self.head(key) is None:
                raise absent(self, key)
            return
        taken = 0
        for attempt in range(1, ATTEMPTS + 1):
            try:
                for piece in self._part(key, start + taken, None if length is None else length - taken):
                    taken += len(piece)
                    yield piece
                return
            except RefusalError as refused:
                if refused.kind == "absent":
                    raise absent(self, key) from None
                if refused.kind == "range":  # the object ends before
                    return
                if refused.kind != "broken" or attempt == ATTEMPTS:
                    raise

    def _part(self, key: str, start: int, length: int | None) -> Iterator[bytes]:
        """One answer, piece by piece."""
        wanted = {}
        if start or length is not None:
            wanted["Range"] = f"bytes={start}-{'' if length is None else start + length - 1}"
        with self._asking("read", key):
            answer = self._client.get_object(**self._named(key), **wanted)
        # some servers send a part with the status of a whole object; this header tells the two apart
        passed = start if not wanted or answer.get("ContentRange") else 0
        left = length
        with contextlib.closing(answer["Body"]) as body:
            while left is None or left > 0:
                with self._asking("read", key, "broken"):
                    piece = body.read(PIECE)
                if not piece:
                    return
                self._pace.spend(len(piece))
                begin, passed = max(0, start - passed), passed + len(piece)
                piece = piece[begin:] if left is None else piece[begin : begin + left]
                left = None if left is None else left - len(piece)
                yield piece

    def head(self, key: str) -> Item | None:
        """See :meth:`ptedge.stores.store.Store.head`."""
        try:
            with self._asking("look for", key):
                found = self._client.head_object(**self._named(key))
        except RefusalError as refused:
            if refused.kind == "absent":
                return None
            raise
        return Item(key, found["ContentLength"], found["LastModified"].timestamp())

    def list(self, prefix: str = "") -> Iterator[Item]:
        """See :meth:`ptedge.stores.store.Store.list`."""
        asked = {"Bucket": self._where.bucket, "Prefix": self._where.prefix + prefix}
        pages = iter(self._client.get_paginator("list_objects_v2").paginate(**asked))
        while True:
            with self._asking("list", prefix):
                page = next(pages, None)
            if page is None:
                return
            for found in page.get("Contents", ()):
                key = found["Key"][len(self._where.prefix) :]
                with contextlib.suppress(StoreError):  # of a name that is no key: not of our making
                    yield Item(check_key(key), found["Size"], found["LastModified"].timestamp())

    def delete(self, key: str) -> None:
        """See :meth:`ptedge.stores.store.Store.delete`."""
        try:
            with self._asking("remove", key):
                self._client.delete_object(**self._named(key))
        except RefusalError as refused:
            if refused.kind != "absent":
                raise

    def exclusive(self) -> bool:
        """See :meth:`ptedge.stores.store.Store.exclusive`; asked once."""
        with self._lock:
            if self._exclusive is None:
                key = f"{PROBES}{uuid.uuid4().hex}"
                first = self._put_bytes(key, b"1")
                self._exclusive = first and not self._put_bytes(key, b"2")
                self.delete(key)
            return self._exclusive

    def _put_bytes(self, key: str, content: bytes) -> bool:
        def call(**condition: str) -> None:
            self._client.put_object(**self._named(key), Body=self._paced(content), **condition)

        return self._first(key, call)

    def _paced(self, content: bytes) -> bytes | PacedBody:
        return content if self._pace.rate is None else PacedBody(content, self._pace)

    def _put_parts(self, key: str, parts: Iterator[bytes]) -> bool:
        """Send a large object part by part; what is interrupted is given up, and is no object."""
        named, client = self._named(key), self._client
        with self._asking("put", key):
            upload = {**named, "UploadId": client.create_multipart_upload(**named)["UploadId"]}
        new = False
        try:
            tags = []
            for number, part in enumerate(parts, start=1):
                with self._asking("put", key):
                    answer = client.upload_part(**upload, PartNumber=number, Body=self._paced(part))
                tags.append({"PartNumber": number, "ETag": answer["ETag"]})
            upload_whole = functools.partial(
                client.complete_multipart_upload, **upload, MultipartUpload={"Parts": tags}
            )
            new = self._first(key, upload_whole)
        finally:
            if not new:
                self._give_up(upload)
        return new

    def _give_up(self, upload: dict[str, Any]) -> None:
        with contextlib.suppress(StoreError), self._asking("put", upload["Key"]):
            self._client.abort_multipart_upload(**upload)

    def _first(self, key: str, call: Callable[..., Any]) -> bool:
        """Whether a conditional request was the first one."""
        condition = {"IfNoneMatch": "*"}
        for attempt in range(1, ATTEMPTS + 1):
            try:
                with self._asking("put", key):
                    call(**condition)
                return True
            except RefusalError as refused:
                if refused.kind == "exists":
                    return False
                if refused.kind == "unsupported" and condition:  # a server that knows no conditions, and says so
                    condition = {}
                elif refused.kind != "conflict" or attempt == ATTEMPTS:  # another writer is at it at this moment
                    raise
        raise AssertionError("attempts do not end here")

    def _key(self, key: str) -> str:
        return self._where.prefix + check_key(key)

    def _named(self, key: str) -> dict[str, Any]:
        return {"Bucket": self._where.bucket, "Key": self._key(key)}

    @contextlib.contextmanager
    def _asking(self, verb: str, key: str, kind: Kind | None = None) -> Iterator[None]:
        """A request; what goes wrong is told as one sentence."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except (BotoCoreError, ClientError) as error:
            raise refusal(error, verb, key, self._where, kind) from None


@functools.cache
def _descriptions() -> Any:
    """What botocore knows of all services, read once: it takes most of the time and memory of a client."""
    import botocore.session

    return botocore.session.get_session().get_component("data_loader")


def _client(where: S3Address) -> Any:
    """A client of boto3; it asks nothing of the network yet."""
    with named_extras():
        import boto3
        import botocore.config
        import botocore.exceptions
        import botocore.session
    session = botocore.session.get_session()
    session.register_component("data_loader", _descriptions())
    if where.endpoint:  # a server of one's own has no keys for machines of AWS, so that service is not looked for
        with contextlib.suppress(ValueError):
            session.get_component("credential_provider").remove("iam-role")
    config = botocore.config.Config(
        connect_timeout=10,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
        # other checksums than those of the signature are not understood by all servers
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        s3={"addressing_style": "path" if where.endpoint else "auto"},
    )
    try:
        region = where.region or session.get_config_variable("region") or ("us-east-1" if where.endpoint else None)
        client = boto3.Session(botocore_session=session, region_name=region).client(
            "s3", endpoint_url=where.endpoint, config=config
        )
        if session.get_credentials() is None:
            raise botocore.exceptions.NoCredentialsError
    except botocore.exceptions.BotoCoreError as error:
        raise refusal(error, "open", "", where) from None
    client.meta.events.register("before-send.s3", begin_sending)
    return client
