"""Frames of a store in any order."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from made_field import collect
from servers.buckets import address

from ptedge.errors import InputError, StoreError
from ptedge.frames.images import read_image
from ptedge.frames.source import index_frames
from ptedge.runtime.transfer.push import push
from ptedge.stores.opening import open_store


@pytest.mark.parametrize("kind", ["folder", "rclone", "moto"])
def test_index_frames__of_a_store(kind: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    site = str(tmp_path / "site")
    if kind != "folder":
        request.getfixturevalue("bucket_keys")
        site = address(request.getfixturevalue(f"{kind}_server"), "of-index-frames")
    collect(tmp_path / "field", count=5)
    push(tmp_path / "field", open_store(site), site, 10_000)
    frames = index_frames(site)
    paths = {path.name: path for path in (tmp_path / "field" / "images").iterdir()}
    assert len(frames) == 5 and frames.spec == site
    for i in range(5):
        path = paths[Path(frames.name(i)).name]
        assert np.array_equal(frames.read(i), read_image(path))
        assert frames.size(i) == (80, 72)
        assert frames.path(i) is None
        assert frames.digest(i) == hashlib.sha256(path.read_bytes()).hexdigest()
    assert index_frames(tmp_path / "field").digest(0) is None


def test_index_frames__of_an_empty_store_and_of_none(bucket_keys: None, moto_server: str) -> None:
    with pytest.raises(InputError, match="holds no frames"):
        index_frames(address(moto_server, "empty"))
    with pytest.raises(StoreError, match="no bucket"):
        index_frames(f"s3://absent/site?endpoint={moto_server}")
