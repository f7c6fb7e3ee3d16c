"""Servers of buckets, one of each kind for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from servers.buckets import bucket_server


@pytest.fixture(scope="session")
def rclone_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with bucket_server("rclone", tmp_path_factory.mktemp("rclone") / "files") as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with bucket_server("moto", tmp_path_factory.mktemp("moto") / "files") as endpoint:
        yield endpoint
