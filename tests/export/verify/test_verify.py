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

from ptedge.artifacts.bundle import MODEL_NAME, open_bundle, write_bundle
from ptedge.errors import ArtifactError, InputError
from ptedge.export.made_images import make_scenes, read_frames
from ptedge.export.verify.answers import broken_promises
from ptedge.export.verify.verify import check_lineage, failed, find_checkpoint, promises_kept, verify_bundle


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
    assert judged == ["files", "graph", "onnxruntime cpu, promises", "onnxruntime cpu, repeatable"]
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


def test_broken_promises__names_each(bundle: Path) -> None:
    opened = open_bundle(bundle)
    D = opened.manifest.max_detections
    good = {
        "boxes": np.zeros((1, D, 4), np.float32),
        "scores": np.zeros((1, D), np.float32),
        "labels": np.zeros((1, D), np.int32),
        "sigma": np.zeros((1, D, 4), np.float32),
        "num_detections": np.array([2], np.int32),
        "entropy": np.zeros((1, D), np.float32),
        "converged": np.ones(1, np.int32),
    }
    good["boxes"][0, :2] = [[0, 0, 10, 10], [5, 5, 128, 96]]
    good["scores"][0, :2] = [0.9, 0.2]
    assert broken_promises(good, opened) == []

    def with_value(name: str, index: tuple[int, ...], value: float) -> list[str]:
        array = good[name].copy()
        array[index] = value
        return broken_promises({**good, name: array}, opened)

    assert with_value("boxes", (0, 1, 2), 129) == ["a box is inverted or outside the input"]
    assert with_value("scores", (0, 1), 0.95) == ["scores are not in descending order within (threshold, 1]"]
    assert with_value("scores", (0, 1), 0.01) == ["scores are not in descending order within (threshold, 1]"]
    assert with_value("labels", (0, 0), 2) == ["a label has no class"]
    assert with_value("sigma", (0, 0, 0), -1) == ["sigma or entropy is negative"]
    assert with_value("sigma", (0, 5, 0), 1) == ["sigma beyond num_detections are not zero"]
    assert with_value("entropy", (0, 0), np.nan) == ["numbers that are not finite"]
    assert with_value("converged", (0,), 0) == ["NMS not at its fixpoint in 1 images"]
    cut_short = {**good, "converged": np.zeros(1, np.int32)}
    assert broken_promises(cut_short, opened, made=True) == []
    answers = {"black": cut_short, "noise": good}
    assert promises_kept(answers).endswith("NMS cut short in 1 of black; detections: black 2, noise 2")
    assert "NMS converged" in promises_kept({"noise": good})


def test_make_scenes__cover_the_input() -> None:
    scenes = make_scenes((96, 128))
    assert set(scenes) == {"black", "noise", "blocks"}
    for images in scenes.values():
        assert images.dtype == np.uint8 and images.shape[1:] == (3, 96, 128)
    assert not scenes["black"].any()


def test_read_frames__nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        read_frames(str(tmp_path / "none"), (96, 128), 4)
