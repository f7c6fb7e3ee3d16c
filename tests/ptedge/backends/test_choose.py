"""Which backend is taken and why, on a simulated TensorRT device."""

from __future__ import annotations

import hashlib
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_tensorrt import FakeDriver, graph_tensors, install
from keys import key_pair
from tiny_model import tiny_bundle

from ptedge.artifacts.bundle import Bundle, open_bundle, sign_again
from ptedge.artifacts.engine_file import EngineRecord, add_record
from ptedge.artifacts.signature import read_signing_key
from ptedge.artifacts.trust import Trust, sign_engine
from ptedge.backends import choose, trt_slot
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.backends.choose import open_engine, open_runner
from ptedge.backends.predictor import open_predictor
from ptedge.backends.trt import TensorRTRunner
from ptedge.errors import ArtifactError, BackendError, MissingExtraError

D = 4
ENGINE = "model.orin-10.3.0-fp32.engine"


def _answer(images: Any) -> dict[str, Any]:
    """One car: as wide as the first pixel's red value says."""
    boxes = np.zeros((1, D, 4), np.float32)
    boxes[0, 0] = (0, 0, images[0, 0, 0, 0], 16)
    scores, sigma = np.zeros((1, D), np.float32), np.zeros((1, D, 4), np.float32)
    scores[0, 0], sigma[0, 0] = 0.9, 2.0
    one = np.ones(1, np.int32)
    return {
        "boxes": boxes,
        "scores": scores,
        "labels": np.zeros((1, D), np.int32),
        "sigma": sigma,
        "num_detections": one,
        "entropy": scores * 0.1,
        "converged": one,
    }


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return tiny_bundle(tmp_path / "bundle").path


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, bundle: Path) -> FakeDriver:
    tensors = graph_tensors(1, open_bundle(bundle).manifest.input_size, D)
    driver = install(monkeypatch, FakeDriver(), tensors, _answer)
    monkeypatch.setattr(trt_slot, "CudaGraph", _no_graph)
    return driver


def _no_graph(stream: int, work: Any) -> None:
    raise BackendError("no graph here")


def _add_engine(folder: Path, **changes: Any) -> EngineRecord:
    content = b"engine"
    record = EngineRecord(
        file=ENGINE,
        sha256=hashlib.sha256(content).hexdigest(),
        onnx_sha256=open_bundle(folder).model_hash,
        precision="fp32",
        tensorrt="10.3.0",
        cuda="12.6",
        gpu="Orin",
        compute_capability="8.7",
    )
    record = replace(record, **changes)
    (folder / record.file).write_bytes(content)
    add_record(folder / "manifest.json", record)
    return record


def _opened(folder: Path) -> Bundle:
    return open_bundle(folder)


def test_auto__takes_the_engine_that_fits(bundle: Path, device: FakeDriver) -> None:
    _add_engine(bundle)
    runner = open_runner(_opened(bundle))
    assert (runner.backend, runner.reason) == ("tensorrt", "the bundle has an engine for this machine")
    runner.close()
    assert device.released == 1


def test_auto__without_an_engine_says_nothing_of_tensorrt(bundle: Path, device: FakeDriver) -> None:
    runner = open_runner(_opened(bundle))
    assert runner.backend == "cpu"
    assert "TensorRT" not in runner.reason


def test_auto__tells_why_an_engine_was_not_used(bundle: Path, device: FakeDriver) -> None:
    _add_engine(bundle, tensorrt="8.5.3")
    runner = open_runner(_opened(bundle))
    assert runner.backend == "cpu"
    assert "built with TensorRT 8.5.3, here is 10.3.0" in runner.reason
    assert device.released == 1  # the device that was looked at


def test_auto__an_engine_without_the_packages_here(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _add_engine(bundle)
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    assert 'pip install "ptedge[tensorrt]"' in open_runner(_opened(bundle)).reason
    with pytest.raises(MissingExtraError):
        open_runner(_opened(bundle), "tensorrt")


def test_tensorrt__asked_for(bundle: Path, device: FakeDriver) -> None:
    with pytest.raises(BackendError, match=r"holds no TensorRT engine\. Build one here: ptedge build"):
        open_runner(_opened(bundle), "tensorrt")
    _add_engine(bundle, compute_capability="8.9", gpu="NVIDIA L4")
    with pytest.raises(BackendError, match=r"NVIDIA L4 \(compute capability 8.9\), here is Orin \(8.7\).*ptedge build"):
        open_runner(_opened(bundle), "tensorrt")
    _add_engine(bundle)
    (bundle / ENGINE).write_bytes(b"engine, changed")
    with pytest.raises(ArtifactError, match="changed or cut short"):
        open_runner(_opened(bundle), "tensorrt")
    assert device.released == 2


def test_predictor__of_an_engine_file(bundle: Path, device: FakeDriver) -> None:
    record = _add_engine(bundle)
    predictor = open_predictor(bundle / record.file)
    assert isinstance(predictor, BundlePredictor)
    assert predictor.runner.backend == "tensorrt"
    height, width = predictor.input_size
    image = np.full((height, width, 3), 40, np.uint8)
    found = predictor.detect(image)
    np.testing.assert_allclose(found.boxes, [[0, 0, 40, 16]])
    np.testing.assert_allclose(found.sigma, [[2, 2, 2, 2]])
    predictor.close()
    with pytest.raises(BackendError, match="is a TensorRT engine; it cannot run on cpu"):
        open_predictor(bundle / record.file, backend="cpu")


def test_predictor__an_engine_file_without_its_bundle(bundle: Path, tmp_path: Path, device: FakeDriver) -> None:
    record = _add_engine(bundle)
    (tmp_path / "alone").mkdir()
    shutil.copy(bundle / record.file, tmp_path / "alone")
    with pytest.raises(ArtifactError, match=r"manifest\.json"):
        open_predictor(tmp_path / "alone" / record.file)


def test_predictor__an_engine_the_manifest_does_not_know(bundle: Path, device: FakeDriver) -> None:
    (bundle / "other.engine").write_bytes(b"engine")
    with pytest.raises(BackendError, match=r"no record of other\.engine"):
        open_predictor(bundle / "other.engine")


def test_open_engine__only_what_somebody_trusted_signed(bundle: Path, device: FakeDriver, tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    key, trust = read_signing_key(private), Trust.read([public])
    record = _add_engine(bundle)
    sign_again(open_bundle(bundle), key)
    with pytest.raises(ArtifactError, match=r"engine\.sig is missing, so nobody vouches.*ptedge build .* --sign KEY"):
        open_runner(open_bundle(bundle, trust), "tensorrt")
    runner = open_runner(open_bundle(bundle, trust))
    assert runner.backend == "cpu" and "nobody vouches" in runner.reason
    assert device.released == 2
    sign_engine(bundle, record, key)
    runner = open_runner(open_bundle(bundle, trust), "tensorrt")
    assert runner.backend == "tensorrt"
    runner.close()
    (bundle / record.file).write_bytes(b"another")
    with pytest.raises(ArtifactError, match="does not match the manifest"):
        open_runner(open_bundle(bundle, trust), "tensorrt")


def test_engines_of_two_stages__run_as_one(bundle: Path, device: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []

    def load(content: bytes, name: str, **options: Any) -> Any:
        loaded.append(Path(name).name)
        return TensorRTRunner(content, name, **options)

    monkeypatch.setattr(choose, "TensorRTRunner", load)
    monkeypatch.setattr(choose, "pair_stages", lambda first, second, manifest: (first, second))
    first = _add_engine(bundle, file="first_stage.a.engine", stage="first")
    second = _add_engine(bundle, file="second_stage.a.engine", stage="second")
    for named in (None, first.file, second.file):
        loaded.clear()
        pair: Any = open_engine(_opened(bundle), named)
        assert loaded == [first.file, second.file]
        for runner in pair:
            runner.close()
    assert device.released == 6
    (bundle / second.file).write_bytes(b"changed")
    with pytest.raises(ArtifactError, match="changed or cut short"):
        open_engine(_opened(bundle), None)
    assert device.released == 7 and device.memory == {}
