"""TensorRT-RTX on a simulated device: its module, its kernels, its engines. The real one needs an RTX card."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_tensorrt import FakeDriver, fake_tensorrt, install
from tiny_model import tiny_bundle

from ptedge.artifacts.bundle import open_bundle
from ptedge.artifacts.engine_file import RTX, EngineRecord, Platform, add_record, differences
from ptedge.backends import trt_slot
from ptedge.backends.choose import open_engine, open_runner
from ptedge.backends.rtx import KernelCache
from ptedge.backends.trt import TensorRTRunner, load_tensorrt
from ptedge.errors import ArtifactError, BackendError, MissingExtraError

TENSORS = {"images": ((1, 3, 5), "UINT8", True), "scores": ((1, 3), "FLOAT", False)}
VERSION = "1.7.1.116"


def _work(images: Any) -> dict[str, Any]:
    return {"scores": images.max(-1) / 4.0}


def _no_graph(stream: int, work: Any) -> None:
    raise BackendError("no graph here")


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> FakeDriver:
    """An RTX card with TensorRT-RTX's bindings alone, and an empty cache folder."""
    driver = install(monkeypatch, FakeDriver(capability=(8, 6)), TENSORS, _work)
    monkeypatch.setitem(sys.modules, "tensorrt", None)
    monkeypatch.setitem(sys.modules, "tensorrt_rtx", None)
    monkeypatch.setitem(sys.modules, "tensorrt_rtx_bindings", fake_tensorrt(driver, TENSORS, _work, VERSION))
    monkeypatch.setattr(trt_slot, "CudaGraph", _no_graph)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return driver


def _kernel_files(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted((folder / "cache" / "ptedge").glob("rtx-*.kernels"))]


def test_runner__makes_kernels_once_and_keeps_them(device: FakeDriver, tmp_path: Path) -> None:
    image = np.random.default_rng(0).integers(0, 256, (1, 3, 5), dtype=np.uint8)
    for made in (2, 0):  # one for each context, when nothing is kept yet
        with TensorRTRunner(b"engine", "an engine", slots=2, backend=RTX) as runner:
            np.testing.assert_array_equal(runner.infer({"images": image})["scores"], image.max(-1) / np.float32(4))
            assert (runner.backend, runner.graph) == (RTX, "enqueue (no graph here)")
            assert _kernel_files(tmp_path) == [b"kernels 8.6 2"]
        assert device.kernels_made == made
        device.kernels_made = 0
    assert (device.memory, device.depth) == ({}, 0)


def test_runner__an_engine_that_is_not_taken(device: FakeDriver) -> None:
    with pytest.raises(ArtifactError, match=r"TensorRT-RTX 1\.7\.1\.116 does not take e: .*--backend tensorrt-rtx"):
        TensorRTRunner(b"foreign", "e", backend=RTX)


def test_kernel_cache__one_that_does_not_fit_is_replaced(device: FakeDriver, tmp_path: Path) -> None:
    path = tmp_path / "a.kernels"
    path.write_bytes(b"kernels of another card")
    module = load_tensorrt(RTX)

    class Log(module.ILogger):  # type: ignore[misc]
        def log(self, severity: int, text: str) -> None:
            pass

    engine = module.Runtime(Log()).deserialize_cuda_engine(b"engine")
    device.depth = 1
    cache = KernelCache(path)
    assert cache.new_context(engine) is not None
    cache.save()
    assert path.read_bytes() == b"kernels 8.6 1"
    before = path.stat().st_mtime_ns
    cache.save()
    assert path.stat().st_mtime_ns == before  # nothing new to write
    cache.close()
    cache.save()
    unwritable = KernelCache(Path("/proc/nowhere/a.kernels"))
    unwritable.new_context(engine)
    unwritable.save()  # made again the next time


def test_kernel_cache__a_file_for_each_engine(tmp_path: Path) -> None:
    names = {KernelCache.of(content, tmp_path)._path for content in (b"one", b"two", b"one")}
    assert len(names) == 2 and {path.parent for path in names} == {tmp_path / "ptedge"}


def test_load_tensorrt__of_rtx(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = type(sys)("tensorrt_rtx"), type(sys)("tensorrt_rtx_bindings")
    for name, module in (("tensorrt_rtx", one), ("tensorrt_rtx_bindings", two)):
        monkeypatch.setitem(sys.modules, name, module)
    assert load_tensorrt(RTX) is one
    monkeypatch.setitem(sys.modules, "tensorrt_rtx", None)
    assert load_tensorrt(RTX) is two
    monkeypatch.setitem(sys.modules, "tensorrt_rtx_bindings", None)
    with pytest.raises(MissingExtraError, match=r'tensorrt_rtx is not installed.*"ptedge\[tensorrt-rtx\]"'):
        load_tensorrt(RTX)


def _add(folder: Path, **changes: Any) -> EngineRecord:
    values: dict[str, Any] = {
        "file": f"model.rtx-{VERSION}-fp32.engine",
        "sha256": hashlib.sha256(b"engine").hexdigest(),
        "onnx_sha256": open_bundle(folder).model_hash,
        "precision": "fp32",
        "tensorrt": VERSION,
        "cuda": "",
        "gpu": "RTX",
        "compute_capability": "8.0, 8.6, 8.9, 12.0",
        "backend": RTX,
    }
    record = EngineRecord(**(values | changes))
    (folder / record.file).write_bytes(b"engine")
    add_record(folder / "manifest.json", record)
    return record


def test_open_runner__takes_the_engine_of_rtx(device: FakeDriver, tmp_path: Path) -> None:
    folder = tiny_bundle(tmp_path / "bundle").path
    with pytest.raises(BackendError, match=r"holds no TensorRT-RTX engine.*--backend tensorrt-rtx"):
        open_runner(open_bundle(folder), RTX)
    record = _add(folder)
    assert open_bundle(folder).manifest.engines == (record,)
    runner = open_runner(open_bundle(folder))
    assert (runner.backend, runner.reason) == (RTX, "the bundle has an engine for this machine")
    runner.close()
    open_engine(open_bundle(folder), record.file).close()
    with pytest.raises(BackendError, match=r"holds no TensorRT engine"):
        open_runner(open_bundle(folder), "tensorrt")
    with pytest.raises(BackendError, match=r"is an engine of TensorRT-RTX\. Give --backend tensorrt-rtx"):
        open_engine(open_bundle(folder), record.file, backend="tensorrt")


def test_open_runner__tells_why_neither_engine_is_taken(device: FakeDriver, tmp_path: Path) -> None:
    folder = tiny_bundle(tmp_path / "bundle").path
    _add(folder, tensorrt="1.6.0")
    _add(folder, file="model.orin-10.3.0-fp32.engine", backend="tensorrt", tensorrt="10.3.0")
    runner = open_runner(open_bundle(folder))
    assert runner.backend == "cpu"
    assert "not TensorRT: tensorrt is not installed" in runner.reason
    assert "not TensorRT-RTX: no engine of the bundle fits" in runner.reason
    assert f"built with TensorRT-RTX 1.6.0, here is {VERSION}" in runner.reason


@pytest.mark.parametrize(("capability", "fits"), [("8.0", True), ("12.0", True), ("7.5", False), ("9.0", False)])
def test_differences__cards_that_it_was_built_for(capability: str, fits: bool, tmp_path: Path) -> None:
    folder = tiny_bundle(tmp_path / "bundle").path
    record = _add(folder)
    found = differences(record, Platform(VERSION, "12.8", "a card", capability), record.onnx_sha256)
    assert (found == []) is fits
    assert fits or "built for compute capability 8.0, 8.6, 8.9, 12.0, here is a card" in found[0]
