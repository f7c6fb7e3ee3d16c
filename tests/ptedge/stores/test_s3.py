"""What is peculiar to buckets: keys, refusals, broken lines, large objects, limited rates."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers.broken_bucket import broken_bucket
from servers.buckets import ENVIRONMENT, address

import ptedge.stores.s3
from ptedge.errors import MissingExtraError, StoreError
from ptedge.stores.opening import open_store
from ptedge.stores.pace import Pace
from ptedge.stores.s3 import S3Store
from ptedge.stores.s3_address import parse_s3_address
from ptedge.stores.store import read_whole

MIB = 1 << 20
pytestmark = pytest.mark.usefixtures("bucket_keys")


def test_put__with_a_wrong_secret_is_refused(rclone_server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a guess")
    store = open_store(address(rclone_server, "site"))
    with pytest.raises(StoreError, match="refuses the access key") as told:
        store.put("a", b"x")
    assert "a guess" not in str(told.value) and "AWS_SECRET_ACCESS_KEY" in str(told.value)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", ENVIRONMENT["AWS_SECRET_ACCESS_KEY"])
    assert open_store(address(rclone_server, "site")).head("a") is None


@pytest.mark.parametrize("server", ["rclone", "moto"])
def test_put__into_no_bucket_says_so(server: str, request: pytest.FixtureRequest) -> None:
    endpoint = request.getfixturevalue(f"{server}_server")
    store = open_store(f"s3://nothing-here/site?endpoint={endpoint}")
    with pytest.raises(StoreError, match="no bucket nothing-here"):
        store.put("a", b"x")
    with pytest.raises(StoreError, match="no bucket nothing-here"):
        list(store.list())


def test_open_store__without_a_key_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(StoreError, match=r"no access key\. Set AWS_ACCESS_KEY_ID"):
        open_store("s3://frames/site?endpoint=http://127.0.0.1:9")


def test_open_store__without_boto3_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "boto3", None)
    with pytest.raises(MissingExtraError, match=r"ptedge\[s3\]"):
        open_store("s3://frames/site?endpoint=http://127.0.0.1:9")


def test_head__of_a_server_that_is_down(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ptedge.stores.s3, "ATTEMPTS", 1)
    store = open_store("s3://frames/site?endpoint=http://127.0.0.1:9")
    with pytest.raises(StoreError, match=r"http://127\.0\.0\.1:9 does not answer"):
        store.head("a")


@pytest.mark.parametrize("server", ["rclone", "moto"])
def test_put__of_a_large_file_goes_in_parts(
    server: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ptedge.stores.s3, "MOST_AT_ONCE", 5 * MIB)
    monkeypatch.setattr(ptedge.stores.s3, "PART", 5 * MIB)
    content = bytes(range(256)) * (11 * MIB // 256)
    (tmp_path / "engine").write_bytes(content)
    store = open_store(address(request.getfixturevalue(f"{server}_server"), uuid.uuid4().hex))
    assert store.put("bundle/engine", tmp_path / "engine")
    assert read_whole(store, "bundle/engine", 20 * MIB) == content
    assert not store.put("bundle/engine", tmp_path / "engine")


def test_put__of_a_large_file_whose_key_was_taken_meanwhile(
    moto_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ptedge.stores.s3, "MOST_AT_ONCE", 5 * MIB)
    monkeypatch.setattr(ptedge.stores.s3, "PART", 5 * MIB)
    (tmp_path / "engine").write_bytes(bytes(6 * MIB))
    store = open_store(address(moto_server, uuid.uuid4().hex))
    store.put("engine", b"of the other")
    monkeypatch.setattr(S3Store, "head", lambda self, key: None)  # it came after this look
    assert not store.put("engine", tmp_path / "engine")
    assert read_whole(store, "engine", 100) == b"of the other"


def test_put__of_a_file_that_is_not_there(moto_server: str, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"cannot read .*absent"):
        open_store(address(moto_server, "site")).put("a", tmp_path / "absent")


@pytest.fixture
def broken() -> Iterator[tuple[str, list[str]]]:
    with broken_bucket(bytes(range(100)), 40, ranges=True) as server:
        yield server


def test_get__goes_on_where_the_line_broke(broken: tuple[str, list[str]]) -> None:
    endpoint, asked = broken
    store = open_store(f"s3://frames/site?endpoint={endpoint}")
    assert b"".join(store.get("a")) == bytes(range(100))
    assert asked == ["", "bytes=40-", "bytes=80-"]


def test_get__ends_when_the_line_breaks_again_and_again(
    broken: tuple[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ptedge.stores.s3, "ATTEMPTS", 2)
    store = open_store(f"s3://frames/site?endpoint={broken[0]}")
    with pytest.raises(StoreError, match="cannot read a in s3://frames/site"):
        list(store.get("a"))


def test_get__of_a_part_from_a_server_without_ranges() -> None:
    with broken_bucket(bytes(range(100)), 100, ranges=False) as (endpoint, _):
        store = open_store(f"s3://frames/site?endpoint={endpoint}")
        assert b"".join(store.get("a", 30, 20)) == bytes(range(30, 50))
        assert b"".join(store.get("a", 90)) == bytes(range(90, 100))


class Clock:
    """Time that passes only by waiting."""

    def __init__(self) -> None:
        self.now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_put_and_get__keep_to_the_rate(moto_server: str) -> None:
    clock = Clock()
    pace = Pace(MIB, lambda: clock.now, clock.sleep)
    store = S3Store(parse_s3_address(address(moto_server, uuid.uuid4().hex)), pace)
    assert store.put("a", bytes(4 * MIB))
    assert clock.now == pytest.approx(4.0, abs=0.3)  # a quarter of a second may go at once
    assert len(b"".join(store.get("a"))) == 4 * MIB
    assert clock.now == pytest.approx(8.0, abs=0.6)


def test_list__passes_over_what_is_no_key(moto_server: str) -> None:
    store = open_store(address(moto_server, prefix := uuid.uuid4().hex))
    store.put("index/a", b"1")
    store._client.put_object(Bucket="frames", Key=f"{prefix}/index/made by hand", Body=b"")  # type: ignore[attr-defined]
    assert [item.key for item in store.list()] == ["index/a"]
