"""A bundle written again with another calibration: what changes, what stays, and what is never half there."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from keys import key_pair
from tiny_model import tiny_bundle, tiny_onnx

from ptedge.artifacts.bundle import Bundle, open_bundle
from ptedge.artifacts.calibrated_bundle import write_calibrated
from ptedge.artifacts.graph_sides import read_sides
from ptedge.artifacts.signature import read_signing_key
from ptedge.artifacts.trust import Trust
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.calibration import CalibrationOrigin, SideCalibration
from ptedge.errors import ArtifactError, InputError, OutputError

ORIGIN = CalibrationOrigin("labels", boxes=30, images=12, data="aa", model="bb")
GIVEN = SideCalibration((0.25, 0.0, -0.125, 0.0), (2.0, 1.0, 0.5, 4.0), {"0.9": (1.0, 2.0, 3.0, 4.0)}, ORIGIN)
IMAGE = np.zeros((64, 96, 3), np.uint8)


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    return tiny_bundle(tmp_path / "b", tiny_onnx())


def test_write_calibrated__graph_manifest_and_hashes_agree(bundle: Bundle) -> None:
    written = write_calibrated(bundle, GIVEN, bundle.path)
    opened = open_bundle(bundle.path)  # hashes match, and the ONNX file says what the manifest says
    assert opened == written and opened.manifest.calibration == GIVEN
    assert open_bundle(opened.model_path).manifest.calibration == GIVEN
    assert read_sides(opened.read_model()) == (GIVEN.offset, GIVEN.scale)
    assert opened.model_hash != bundle.model_hash
    found = BundlePredictor(bundle.path, "cpu").detect(IMAGE)
    # [8, 16, 40, 48], 32 wide: x1 back by 8, x2 on by 4; sigma 1, 2, 3, 4
    np.testing.assert_allclose(found.boxes[0], [0, 16, 44, 48])
    np.testing.assert_allclose(found.sigma[0], [2, 2, 1.5, 16])


def test_write_calibrated__taken_off_gives_the_same_files_again(bundle: Bundle) -> None:
    before = {path.name: path.read_bytes() for path in bundle.path.iterdir()}
    write_calibrated(write_calibrated(bundle, GIVEN, bundle.path), None, bundle.path)
    assert {path.name: path.read_bytes() for path in bundle.path.iterdir()} == before


def test_write_calibrated__elsewhere_leaves_the_bundle_alone(bundle: Bundle, tmp_path: Path) -> None:
    write_calibrated(bundle, GIVEN, tmp_path / "other")
    assert open_bundle(bundle.path) == bundle
    assert open_bundle(tmp_path / "other").manifest.calibration == GIVEN


def test_write_calibrated__engines_and_the_signature_go(bundle: Bundle, tmp_path: Path) -> None:
    for name in ("m.engine", "m.engine.sig", "bundle.sig"):
        (bundle.path / name).write_bytes(b"of the graph before")
    written = write_calibrated(bundle, GIVEN, bundle.path)
    assert sorted(path.name for path in bundle.path.iterdir()) == ["manifest.json", "model.onnx"]
    assert written.manifest.engines == ()
    private, public = key_pair(tmp_path, "own")
    write_calibrated(written, None, bundle.path, read_signing_key(private))
    assert open_bundle(bundle.path, Trust.read([public])).manifest.calibration is None


def test_write_calibrated__keeps_what_is_no_part_of_it(bundle: Bundle) -> None:
    (bundle.path / "notes.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"notes\.txt is no part of a bundle"):
        write_calibrated(bundle, GIVEN, bundle.path)
    assert open_bundle(bundle.path) == bundle and (bundle.path / "notes.txt").read_text() == "mine"


def test_write_calibrated__a_write_that_fails_changes_nothing(bundle: Bundle, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(path: Path, value: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("ptedge.artifacts.bundle.write_json", fail)
    with pytest.raises(OutputError, match="disk is full"):
        write_calibrated(bundle, GIVEN, bundle.path)
    assert open_bundle(bundle.path) == bundle
    assert [path.name for path in bundle.path.parent.iterdir()] == ["b"]


def test_write_calibrated__no_place_for_it(bundle: Bundle, tmp_path: Path) -> None:
    alone = open_bundle(bundle.model_path)
    with pytest.raises(InputError, match="Give the folder"):
        write_calibrated(alone, GIVEN, tmp_path / "x")
    older = tiny_bundle(tmp_path / "older", schema=1)
    with pytest.raises(ArtifactError, match=r"before graphs had a place.*ptedge export"):
        write_calibrated(older, GIVEN, tmp_path / "x")
    without = tiny_bundle(tmp_path / "without", tiny_onnx(sides=False))
    with pytest.raises(ArtifactError, match="no constants side_offset and sigma_scale"):
        write_calibrated(without, GIVEN, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_write_calibrated__of_another_calibration_starts_anew(bundle: Bundle) -> None:
    first = write_calibrated(bundle, GIVEN, bundle.path)
    second = write_calibrated(first, dataclasses.replace(GIVEN, scale=(1.0, 1.0, 1.0, 2.0)), bundle.path)
    assert second.manifest.sigma_scale == (1.0, 1.0, 1.0, 2.0)  # not 2 * 4


LOOP = """
import sys
from pathlib import Path
from ptedge.artifacts.bundle import open_bundle
from ptedge.artifacts.calibrated_bundle import write_calibrated
from ptedge.calibration import SideCalibration
given = SideCalibration(scale=(2.0, 2.0, 2.0, 2.0))
bundle = open_bundle(Path(sys.argv[1]))
print("ready", flush=True)
while True:
    bundle = write_calibrated(bundle, None if bundle.manifest.calibration else given, bundle.path)
"""


def test_write_calibrated__killed_at_any_moment_leaves_a_whole_bundle(bundle: Bundle) -> None:
    for delay in (0.05, 0.11):
        with subprocess.Popen([sys.executable, "-c", LOOP, str(bundle.path)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            time.sleep(delay)
            process.kill()
        assert open_bundle(bundle.path).manifest.sigma_scale in {(1.0,) * 4, (2.0,) * 4}
