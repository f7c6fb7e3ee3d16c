"""Verification on labelled data, in other precisions, and on backends that are or are not there."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, ClassVar

import cv2
import numpy as np
import pytest
from click.testing import CliRunner
from tiny_model import tiny_onnx

from ptedge.artifacts.bundle import open_bundle
from ptedge.cli import cli
from ptedge.data.dataset import Dataset, Sample
from ptedge.detections import Detections
from ptedge.errors import BackendError, InputError
from ptedge.export.to_onnx import export_checkpoint
from ptedge.export.verify.by_layer import graph_with_outputs, run_cpu
from ptedge.export.verify.candidates import layer_runner, open_candidates
from ptedge.export.verify.labelled import DataAnswer, answer_data, compare_data, open_labelled
from ptedge.export.verify.limits import FP16, FP32, INT8
from ptedge.export.verify.verify import failed, verify_bundle

SIZE = (96, 128)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Three noisy pictures, each with a labelled car; names as COCO has them."""
    (tmp_path / "images").mkdir()
    images, annotations = [], []
    for i in range(3):
        picture = np.random.default_rng(i).integers(0, 256, (*SIZE, 3), dtype=np.uint8)
        cv2.imwrite(str(tmp_path / "images" / f"{i}.png"), picture)
        images.append({"id": i, "file_name": f"{i}.png", "width": SIZE[1], "height": SIZE[0]})
        box = [10, 10, 40, 30]
        annotations.append({"id": i, "image_id": i, "category_id": 1, "bbox": box, "area": 1200, "iscrowd": 0})
    categories = [{"id": 1, "name": "car"}, {"id": 2, "name": "bus"}]
    path = tmp_path / "data.json"
    path.write_text(json.dumps({"images": images, "annotations": annotations, "categories": categories}))
    return path


def dataset_of(path: Path, boxes: list[list[float]]) -> Dataset:
    cv2.imwrite(str(path), np.zeros((64, 64, 3), np.uint8))
    labels, ignore = np.zeros(len(boxes), np.int64), np.zeros(len(boxes), bool)
    sample = Sample(
        image_id="0", path=path, width=64, height=64, boxes=np.array(boxes, np.float32), labels=labels, ignore=ignore
    )
    return Dataset(class_names=("car",), samples=(sample,), root=path.parent, format="test")


def answer(dataset: Dataset, boxes: list[list[float]], sigma: float) -> DataAnswer:
    n = len(boxes)
    found = Detections(
        np.array(boxes, np.float32),
        np.full(n, 0.9, np.float32),
        np.zeros(n, np.int64),
        np.full((n, 4), sigma, np.float32),
        np.zeros(n, np.float32),
    )
    return answer_data(lambda images: [found], dataset, (64, 64), (1.0, 1.0, 1.0, 1.0))


def test_compare_data__ap_and_coverage_by_hand(tmp_path: Path) -> None:
    truth = [[0.0, 0, 20, 20], [40, 40, 60, 60]]
    dataset = dataset_of(tmp_path / "a.png", truth)
    exact = answer(dataset, truth, 1.0)
    one = answer(dataset, truth[:1], 1.0)
    assert (exact.metrics.ap50, one.metrics.ap50) == (1.0, 0.5)
    found = compare_data(exact, one, INT8)
    assert not found.passed
    assert "AP50 0.5000 (-0.5000)" in str(found)
    assert compare_data(exact, exact, FP32).passed
    # a side that is off by 2 with sigma 1.9 lies outside 1 sigma, with sigma 2.1 within
    shifted = [[2.0, 2, 22, 22], [42, 42, 62, 62]]
    narrow, wide = answer(dataset, shifted, 1.9), answer(dataset, shifted, 2.1)
    assert (narrow.sigma.coverage_1, wide.sigma.coverage_1) == (0.0, 1.0)
    assert not compare_data(narrow, wide, INT8).passed


def test_compare_data__more_ap_is_no_fault(tmp_path: Path) -> None:
    truth = [[0.0, 0, 20, 20], [40, 40, 60, 60]]
    dataset = dataset_of(tmp_path / "a.png", truth)
    few, all_of_them = answer(dataset, truth[:1], 1.0), answer(dataset, truth, 1.0)
    limits = dataclasses.replace(FP16, matched=0.5)
    assert compare_data(few, all_of_them, limits).passed
    assert not compare_data(all_of_them, few, limits).passed


def test_open_labelled__refuses_data_without_boxes(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    cv2.imwrite(str(tmp_path / "images" / "a.png"), np.zeros((8, 8, 3), np.uint8))
    document = {
        "images": [{"id": 0, "file_name": "a.png", "width": 8, "height": 8}],
        "annotations": [],
        "categories": [{"id": 1, "name": "car"}],
    }
    (tmp_path / "data.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="no labelled box"):
        open_labelled(tmp_path / "data.json", ("car",), None)


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


def test_open_candidates__absent_ones_say_why_and_asked_ones_raise(
    bundle: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ptedge.backends.ort.cuda_device_count", lambda: 0)
    opened = open_bundle(bundle)
    found = {candidate.name: candidate.reason for candidate in open_candidates(opened, None)}
    assert list(found) == ["onnxruntime cpu", "onnxruntime cuda", "tensorrt"]
    assert found["onnxruntime cpu"] == ""
    assert found["onnxruntime cuda"]
    assert "ptedge build" in found["tensorrt"]
    assert [candidate.backend for candidate in open_candidates(opened, ("cpu",))] == ["cpu"]
    with pytest.raises(BackendError, match=r"tensorrt was asked for: .*holds no TensorRT engine"):
        list(open_candidates(opened, ("tensorrt",)))


def test_verify__backend_that_does_not_exist(bundle: Path) -> None:
    result = CliRunner().invoke(cli, ["verify", str(bundle), "--backend", "cpu,npu"])
    assert result.exit_code == 2
    assert "'npu' is none of cpu, cuda, tensorrt" in result.output


def test_layer_runner__tensorrt_builds_the_graph_it_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """Builder and runner are stood in for by ONNX Runtime; what is tested is what passes between them."""
    jobs = []

    def build(job: dict[str, Any], tell: Any) -> dict[str, Any]:
        jobs.append(job)
        Path(job["out"]).write_bytes(Path(job["model"]).read_bytes())
        return {"seconds": 1.0, "memory_mb": 0}

    class Standin:
        inputs: ClassVar = {"images": ((1, 3, 64, 96), np.dtype(np.uint8))}

        def __init__(self, engine: bytes, name: str, **_: Any) -> None:
            self.engine = engine

        def __enter__(self) -> Standin:
            return self

        def __exit__(self, *_: object) -> None: ...

        def infer(self, feeds: Any) -> Any:
            return run_cpu(self.engine, feeds)

    monkeypatch.setattr("ptedge.export.engine.build.run_worker", build)
    monkeypatch.setattr("ptedge.backends.trt.TensorRTRunner", Standin)
    images = np.full((1, 3, 64, 96), 7, np.uint8)
    run = layer_runner("tensorrt", "fp16")
    found = run(graph_with_outputs(tiny_onnx(), ["top"]), {"images": images, "not an input": images})
    assert found["top"].tolist() == 7.0
    assert [job["precision"] for job in jobs] == ["fp16"]
