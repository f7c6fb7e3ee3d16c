"""What an exported bundle holds, and what export refuses."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import onnx
import pytest

from ptedge.artifacts.adaptation import AdaptationRecord
from ptedge.artifacts.bundle import METADATA_KEY, MODEL_NAME, open_bundle
from ptedge.artifacts.checkpoint import load_checkpoint, save_checkpoint
from ptedge.artifacts.graph_sides import read_sides
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.backends.checkpoint_predictor import CheckpointPredictor
from ptedge.backends.ort import OrtRunner
from ptedge.calibration import CalibrationOrigin, SideCalibration
from ptedge.errors import InputError, OutputError
from ptedge.export.to_bundle import check_size, export_checkpoint
from ptedge.files import sha256_file


def test_export_checkpoint__manifest_tells_where_it_came_from(bundle: Path, checkpoint: Path) -> None:
    opened = open_bundle(bundle)
    manifest = opened.manifest
    assert manifest.class_names == ("car", "bus")
    assert manifest.input_size == (96, 128)
    assert len(manifest.anchors) == 9
    assert manifest.anchors[1] == pytest.approx((16, 16))
    assert manifest.lineage.checkpoint == sha256_file(checkpoint)
    assert (manifest.lineage.kind, manifest.lineage.role) == ("adapted", "teacher")
    assert manifest.lineage.parents == ("first", "second")
    assert set(manifest.tools) >= {"ptedge", "torch", "onnx"}
    assert manifest.score_rule == "class"
    assert manifest.sigma_rule == "cluster"
    assert METADATA_KEY in {entry.key for entry in onnx.load(bundle / MODEL_NAME).metadata_props}


def test_export_checkpoint__what_watched_over_the_adaptation_travels(checkpoint: Path, tmp_path: Path) -> None:
    record = AdaptationRecord(100, 90, 1.25, 1.0, ("finite",))
    save_checkpoint(tmp_path / "model.pt", dataclasses.replace(load_checkpoint(checkpoint), adaptation=record))
    export_checkpoint(tmp_path / "model.pt", tmp_path / "out")
    assert open_bundle(tmp_path / "out").manifest.adaptation == record


def test_export_checkpoint__a_device_can_run_it(bundle: Path) -> None:
    predictor = BundlePredictor(bundle, backend="cpu", threads=1)
    noise = np.random.default_rng(0).integers(0, 256, (50, 70, 3), dtype=np.uint8)
    found = predictor.detect(noise)
    assert len(found) > 0
    assert (found.sigma > 0).all()
    assert predictor.unconverged == 0


def test_export_checkpoint__calibration_goes_into_graph_and_manifest(checkpoint: Path, tmp_path: Path) -> None:
    origin = CalibrationOrigin("labels", boxes=30, images=12, data="aa", model="bb")
    given = SideCalibration((0.1, -0.2, 0.0, 0.05), (2.0, 1.0, 0.5, 3.0), {"0.9": (1.0, 2.0, 3.0, 4.0)}, origin)
    save_checkpoint(tmp_path / "model.pt", dataclasses.replace(load_checkpoint(checkpoint), calibration=given))
    opened = export_checkpoint(tmp_path / "model.pt", tmp_path / "b")[0]
    assert opened.manifest.calibration == given
    for path in (opened.path, opened.model_path):
        assert open_bundle(path).manifest.calibration == given
    sides = read_sides(opened.read_model())
    assert sides is not None
    assert sides[0] == pytest.approx(given.offset) and sides[1] == pytest.approx(given.scale)
    noise = np.random.default_rng(0).integers(0, 256, (96, 128, 3), dtype=np.uint8)
    one, two = BundlePredictor(opened.path, "cpu"), CheckpointPredictor(tmp_path / "model.pt")
    np.testing.assert_allclose(one.detect(noise).boxes, two.detect(noise).boxes, atol=0.01)
    np.testing.assert_allclose(one.detect(noise).sigma, two.detect(noise).sigma, rtol=1e-3)


def test_export_checkpoint__batch_and_size(checkpoint: Path, bundle: Path, tmp_path: Path) -> None:
    export_checkpoint(checkpoint, tmp_path / "b", input_size=(64, 80), batch=2)
    images = np.random.default_rng(0).integers(0, 256, (2, 3, 64, 80), dtype=np.uint8)
    with OrtRunner(tmp_path / "b" / MODEL_NAME, "cpu", threads=1) as runner:
        one = runner.infer({"images": images})
        swapped = runner.infer({"images": images[::-1].copy()})
    assert one["boxes"].shape == (2, 30, 4)
    for name in one:
        np.testing.assert_allclose(one[name], swapped[name][::-1], rtol=1e-4, atol=1e-3)


def test_export_checkpoint__int8_without_frames(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Add --calibrate FRAMES"):
        export_checkpoint(checkpoint, tmp_path / "b", precision="int8")


@pytest.mark.parametrize(
    ("size", "near"), [((100, 128), "96x128"), ((384, 647), "384x640"), ((5, 16), "16x16"), ((0, 16), "16x16")]
)
def test_check_size__names_the_nearest(size: tuple[int, int], near: str) -> None:
    with pytest.raises(InputError, match=f"The nearest is --size {near}"):
        check_size(size)


def test_export_checkpoint__a_missing_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        export_checkpoint(tmp_path / "no.pt", tmp_path / "b")


def test_export_checkpoint__leaves_a_foreign_folder_alone(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "holiday").mkdir()
    (tmp_path / "holiday" / "photo.jpg").touch()
    with pytest.raises(OutputError, match="something else is there"):
        export_checkpoint(checkpoint, tmp_path / "holiday")
    assert (tmp_path / "holiday" / "photo.jpg").exists()
