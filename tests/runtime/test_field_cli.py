from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from click.testing import CliRunner, Result
from made_field import collect
from tiny_model import tiny_bundle

from ptedge.cli import cli
from ptedge.errors import ArtifactError, OutputError, StoreError
from ptedge.folders import hold_folder


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return tiny_bundle(tmp_path / "car.bundle").path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three images and a corrupt one between them."""
    path = tmp_path / "frames"
    path.mkdir()
    for i in range(3):
        image = np.random.default_rng(i).integers(0, 256, (60, 90, 3), np.uint8)
        cv2.imwrite(str(path / f"{i}.png"), image)
    (path / "1b.png").write_bytes(b"not an image")
    return path


def ptedge(*arguments: object, check: bool = True) -> Result:
    result = CliRunner().invoke(cli, [str(a) for a in arguments])
    if check and result.exit_code:
        raise result.exception or AssertionError(result.output)
    return result


def ptedge_json(*arguments: object) -> Any:
    return json.loads(ptedge(*arguments, "--json").stdout)


def test_field__export_and_prune(bundle: Path, folder: Path, tmp_path: Path) -> None:
    field = tmp_path / "field"
    ptedge("run", bundle, folder, "--collect", field, "--collect-random", 1, "--collect-interval", 0)
    ptedge("field", "export", field, "--out", tmp_path / "labels.json", "--min-score", 0)
    assert len(json.loads((tmp_path / "labels.json").read_text())["annotations"]) == 6
    assert "removed 1 images; 2 stay" in ptedge("field", "prune", field, "--max-images", 2).stderr
    assert ptedge("field", "prune", field, check=False).exit_code == 2
    assert "2 images" in ptedge("field", "summary", field).stdout


def test_field__a_folder_that_is_collected_into_is_not_pruned(bundle: Path, folder: Path, tmp_path: Path) -> None:
    field = tmp_path / "field"
    ptedge("run", bundle, folder, "--collect", field, "--collect-random", 1, "--collect-interval", 0)
    with hold_folder(field, "ptedge run --collect"):
        with pytest.raises(OutputError, match="in use by ptedge run --collect"):
            ptedge("field", "prune", field, "--max-images", 0)
        assert "3 images" in ptedge("field", "summary", field).stdout  # who only reads may
    with pytest.raises(ArtifactError, match="no field folder"):
        ptedge("field", "prune", tmp_path / "frames", "--max-images", 0)
    assert not list(folder.glob(".*"))


def test_field__labels_corrected_by_hand_are_not_written_over(bundle: Path, folder: Path, tmp_path: Path) -> None:
    field, labels = tmp_path / "field", tmp_path / "labels.json"
    ptedge("run", bundle, folder, "--collect", field, "--collect-random", 1, "--collect-interval", 0)
    labels.write_text("hours of work")
    result = ptedge("field", "export", field, "--out", labels)
    assert (tmp_path / "labels.json.earlier-1").read_text() == "hours of work"
    assert f"{labels} was there already; it is {labels}.earlier-1 now" in result.stderr
    assert len(json.loads(labels.read_text())["images"]) == 3


def test_field__push_and_pull_tell_what_they_did(tmp_path: Path) -> None:
    collect(tmp_path / "field", count=5)
    site = tmp_path / "site"
    pushed = ptedge("field", "push", tmp_path / "field", site, "--shard-size", "10KB")
    assert pushed.stderr.startswith("sent 5 frames, 0.0 MB in 2 shards")
    assert "sent 0 frames, 0.0 MB in 0 shards, 5 were there" in ptedge("field", "push", tmp_path / "field", site).stderr
    assert "fetched 5 frames" in ptedge("field", "pull", site, tmp_path / "out").stderr
    assert ptedge("field", "pull", site, tmp_path / "out").stderr.endswith(", 5 were there\n")


def test_field__pull_of_damaged_frames_fails_after_the_others(tmp_path: Path) -> None:
    collect(tmp_path / "field", count=3)
    ptedge("field", "push", tmp_path / "field", tmp_path / "site")
    (shard,) = (tmp_path / "site" / "shards").iterdir()
    content = bytearray(shard.read_bytes())
    content[1000] ^= 1
    shard.write_bytes(content)
    with pytest.raises(StoreError, match=r"1 frames in .*site are damaged and were left out"):
        ptedge("field", "pull", tmp_path / "site", tmp_path / "out")
    assert "2 images" in ptedge("field", "summary", tmp_path / "out").stdout


def test_field__push_without_a_field_folder_touches_nothing(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="is no field folder"):
        ptedge("field", "push", tmp_path / "absent", tmp_path / "site")
    assert list(tmp_path.iterdir()) == []
