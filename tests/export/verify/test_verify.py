"""Verification passes for a true bundle and fails for a false one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import cv2
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from ptedge.artifacts.bundle import METADATA_KEY, MODEL_NAME, open_bundle, write_bundle
from ptedge.artifacts.graph_sides import write_sides
from ptedge.artifacts.onnx_metadata import without_metadata
from ptedge.calibration import CalibrationOrigin, SideCalibration
from ptedge.errors import ArtifactError
from ptedge.export.to_bundle import export_checkpoint
from ptedge.export.verify.check import failed
from ptedge.export.verify.verify import check_lineage, find_checkpoint, verify_bundle


def changed_bundle(bundle: Path, out: Path, initializer: str, factor: float) -> Path:
    """The bundle with one weight multiplied, and hashes that fit."""
    opened = open_bundle(bundle)
    proto = onnx.load(opened.model_path)
    del proto.metadata_props[:]
    for tensor in proto.graph.initializer:
        if initializer in tensor.name:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) * np.float32(factor), tensor.name))
    write_bundle(out, opened.manifest, proto.SerializeToString())
    return out


def test_verify_bundle__a_true_bundle_passes(bundle: Path, checkpoint: Path, tmp_path: Path) -> None:
    for i in range(2):
        image = np.random.default_rng(i).integers(0, 256, (60, 90, 3), dtype=np.uint8)
        cv2.imwrite(str(tmp_path / f"{i}.png"), image)
    checks, source = verify_bundle(bundle, frames=str(tmp_path))
    assert failed(checks) == []
    assert source is not None and source.samefile(checkpoint)  # found beside the bundle
    names = [check.name for check in checks]
    assert {"onnxruntime cpu, frames", "static torch, black", "onnxruntime cpu, more objects than slots"} <= set(names)
    crowd = next(check for check in checks if "slots" in check.name)
    assert "of 30 detections" in crowd.detail  # three images, ten rows each, all full


def test_verify_bundle__calibrated_after_its_export(bundle: Path, checkpoint: Path, tmp_path: Path, data: Path) -> None:
    opened = open_bundle(bundle)
    given = SideCalibration((0.1, -0.2, 0.0, 0.05), (2.0, 1.0, 0.5, 3.0), origin=CalibrationOrigin(boxes=9, images=4))
    model = without_metadata(write_sides(opened.read_model(), given.offset, given.scale), METADATA_KEY)
    write_bundle(tmp_path / "b", opened.manifest.with_calibration(given), model)
    checks, _ = verify_bundle(tmp_path / "b", checkpoint, data=data)
    assert failed(checks) == []
    assert "9 boxes of 4 images (labels)" in next(check.detail for check in checks if check.name == "calibration")
    write_bundle(
        tmp_path / "b", opened.manifest.with_calibration(given), without_metadata(opened.read_model(), "ptedge")
    )
    with pytest.raises(ArtifactError, match="its manifest says"):
        verify_bundle(tmp_path / "b", checkpoint)


def test_verify_bundle__a_changed_weight_fails(bundle: Path, checkpoint: Path, tmp_path: Path) -> None:
    changed = changed_bundle(bundle, tmp_path / "changed", "fc2.bias", 1.5)
    bad = failed(verify_bundle(changed, checkpoint)[0])
    assert any(check.name == "onnxruntime cpu, noise" for check in bad)
    assert bad[-1].name == "onnxruntime cpu, layers"
    assert "fc2" in bad[-1].detail


def test_verify_bundle__without_a_checkpoint(bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle, tmp_path / "alone" / "bundle")
    checks, source = verify_bundle(tmp_path / "alone" / "bundle")
    assert source is None
    judged = [check.name for check in checks if check.judged]
    assert judged == ["files", "graph", "calibration", "onnxruntime cpu, promises", "onnxruntime cpu, repeatable"]
    absent = {check.name: check.detail for check in checks if not check.judged}
    assert "holds no TensorRT engine" in absent["tensorrt"]
    assert failed(checks) == []


def test_verify_bundle__a_damaged_file(bundle: Path, tmp_path: Path) -> None:
    shutil.copytree(bundle, tmp_path / "b")
    with open(tmp_path / "b" / MODEL_NAME, "ab") as file:
        file.write(b"x")
    with pytest.raises(ArtifactError, match="does not match the manifest"):
        verify_bundle(tmp_path / "b")


def test_verify_bundle__lineage_of_another_checkpoint(bundle: Path, checkpoint: Path, tmp_path: Path) -> None:
    opened = open_bundle(bundle)
    values = json.loads((bundle / "manifest.json").read_text())
    values["lineage"]["checkpoint"] = "0" * 64
    shutil.copytree(bundle, tmp_path / "b")
    (tmp_path / "b" / "manifest.json").write_text(json.dumps(values))
    assert find_checkpoint(opened) is not None
    assert find_checkpoint(open_bundle(tmp_path / "b")) is None
    assert check_lineage(opened, checkpoint).passed
    assert not check_lineage(open_bundle(tmp_path / "b"), checkpoint).passed


def test_verify__on_labelled_data(bundle: Path, data: Path) -> None:
    checks, _ = verify_bundle(bundle, data=data, images=2)
    assert failed(checks) == []
    line = next(check for check in checks if check.name == "onnxruntime cpu, data")
    assert "(+0.0000)" in line.detail and "coverage of 1 sigma" in line.detail


def test_verify__float16_by_its_own_limits(checkpoint: Path, data: Path, tmp_path: Path) -> None:
    export_checkpoint(checkpoint, tmp_path / "half", precision="fp16")
    checks, _ = verify_bundle(tmp_path / "half", checkpoint, str(data.parent / "images"))
    names = [check.name for check in checks]
    assert "onnxruntime cpu, frames" in names
    assert "onnxruntime cpu, more objects than slots" not in names  # that is about the exporter, in float32
    assert any("detections above 0.3" in check.detail for check in checks if check.name.startswith("onnxruntime cpu, "))
