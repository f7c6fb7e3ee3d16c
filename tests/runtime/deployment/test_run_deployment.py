"""``ptedge run DEPLOYMENT``: the command, its lines and its report."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import cv2
import jsonschema
import numpy as np
import pytest
from click.testing import CliRunner
from made_deployments import deployed, numbered_bundle, promoted
from places import ROOT

from ptedge.cli import cli

SCHEMA = json.loads((ROOT / "ptedge" / "schemas" / "run.json").read_text("utf-8"))


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for number in range(4):
        cv2.imwrite(str(folder / f"{number}.png"), np.full((64, 96, 3), number * 20, np.uint8))
    return folder


def run(*words: object) -> dict[str, object]:
    done = CliRunner().invoke(cli, ["run", *map(str, words), "--backend", "cpu", "--threads", "1", "--json"])
    assert done.exit_code == 0, (done.exception, done.stderr)
    report: dict[str, object] = json.loads(done.stdout)
    jsonschema.validate(report, SCHEMA)
    return report


def test_run__a_new_version_while_it_runs(tmp_path: Path, pictures: Path) -> None:
    deployment = deployed(tmp_path, 1)
    new, out = numbered_bundle(tmp_path / "new", 1), tmp_path / "out"

    def promote() -> None:
        while not (out / "detections.jsonl").exists() or (out / "detections.jsonl").stat().st_size < 3000:
            time.sleep(0.01)
        promoted(new, deployment.path)

    thread = threading.Thread(target=promote)
    thread.start()
    words = (deployment.path, pictures, "--poll", "0.02", "--loop", "--rate", "40", "--realtime", "--limit", "200")
    report = run(*words, "--out", out, "--save", "jsonl", "--collect", tmp_path / "field", "--collect-random", "1")
    thread.join()
    lines = [json.loads(line) for line in (out / "detections.jsonl").read_text("utf-8").splitlines()]
    assert len(lines) + int(report["dropped"]) == 200  # type: ignore[call-overload]
    versions = [line["version"] for line in lines]
    first, second = (entry.version for entry in deployment.history())
    assert set(versions) == {first, second} and versions == sorted(versions, key=[first, second].index)
    scores = {line["version"]: line["detections"][0]["score"] for line in lines}
    assert scores == {first: 0.9, second: 0.91}
    assert report["deployment"]["version"] == second  # type: ignore[index]
    kept = [json.loads(line) for line in (tmp_path / "field" / "frames.jsonl").read_text("utf-8").splitlines()]
    hashes = {entry.model["model_hash"] for entry in deployment.history()}
    assert {record["model"] for record in kept} <= hashes


def test_run__lines_of_a_bundle_name_no_version(tmp_path: Path, pictures: Path) -> None:
    report = run(numbered_bundle(tmp_path / "bundle", 0), pictures, "--out", tmp_path / "out", "--save", "jsonl")
    line = json.loads((tmp_path / "out" / "detections.jsonl").read_text("utf-8").splitlines()[0])
    assert "version" not in line and "deployment" not in report
