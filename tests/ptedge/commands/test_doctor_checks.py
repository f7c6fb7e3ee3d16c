"""What doctor finds out by running a tiny model and opening a bundle."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tiny_model import tiny_bundle

from ptedge.artifacts.engine_file import EngineRecord, add_record
from ptedge.commands import doctor_checks as checks
from ptedge.machine import tensorrt_checks
from ptedge.machine.driver import Driver, Gpu

DESKTOP = Driver((12, 4), (Gpu("NVIDIA L4", "8.9"),))
ORIN = Driver((12, 6), (Gpu("Orin", "8.7"),))

Installed = Callable[[dict[str, str]], None]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    """Pretend that exactly these distributions are installed."""

    def pretend(versions: dict[str, str]) -> None:
        monkeypatch.setattr(checks, "version_of", versions.get)
        monkeypatch.setattr(tensorrt_checks, "version_of", versions.get)

    return pretend


def test_probe_model__is_valid_onnx() -> None:
    import onnx

    model = onnx.load_from_string(checks.PROBE_MODEL)
    onnx.checker.check_model(model)
    assert [node.op_type for node in model.graph.node] == ["Identity"]


def test_check_onnxruntime__absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)  # importing it fails
    got = checks.check_onnxruntime(on_jetson=False)
    assert (got.status, got.fix) == ("problem", "pip install onnxruntime")


def test_check_onnxruntime__both_packages(installed: Installed) -> None:
    installed({"onnxruntime": "1.20", "onnxruntime-gpu": "1.20"})
    got = checks.check_onnxruntime(on_jetson=False)
    assert got.status == "problem"
    assert got.fix.endswith("pip install onnxruntime-gpu")


@pytest.mark.parametrize(
    ("package", "on_jetson", "fix"),
    [
        ("onnxruntime-gpu", False, 'pip install "onnxruntime-gpu[cuda,cudnn]"'),
        ("onnxruntime", False, 'pip uninstall -y onnxruntime && pip install "onnxruntime-gpu[cuda,cudnn]"'),
        (
            "onnxruntime",
            True,
            "pip install onnxruntime-gpu from the package index NVIDIA names for this JetPack",
        ),
    ],
)
def test_check_onnxruntime__gpu_that_it_does_not_use(
    monkeypatch: pytest.MonkeyPatch,
    installed: Installed,
    package: str,
    on_jetson: bool,
    fix: str,
) -> None:
    monkeypatch.setattr("ptedge.backends.ort.cuda_device_count", lambda: 0)  # so the probe runs on the CPU
    installed({package: "1.20"})
    monkeypatch.setattr(checks, "cuda_device_count", lambda: 1)
    got = checks.check_onnxruntime(on_jetson)
    assert (got.status, got.fix) == ("problem", fix)


def bundle_with_engine(folder: Path) -> Path:
    bundle = tiny_bundle(folder)
    (folder / "model.orin-10.3.0-fp32.engine").write_bytes(b"plan")
    record = EngineRecord(
        "model.orin-10.3.0-fp32.engine", "0" * 64, bundle.model_hash, "fp32", "10.3.0", "12.6", "Orin", "8.7"
    )
    add_record(folder / "manifest.json", record)
    return folder


def test_check_engines__fit_or_not(installed: Installed, tmp_path: Path) -> None:
    folder = bundle_with_engine(tmp_path / "bundle")
    installed({"tensorrt": "10.3.0"})
    (got,) = checks.check_engines(folder, ORIN)
    assert (got.status, got.fix) == ("ok", "")
    installed({"tensorrt": "10.7.0"})
    (got,) = checks.check_engines(folder, DESKTOP)
    assert (got.status, got.fix) == ("problem", f"ptedge build {folder}")
    assert "built with TensorRT 10.3.0, here is 10.7.0" in got.detail
    assert "here is NVIDIA L4 (8.9)" in got.detail
    (got,) = checks.check_engines(folder, Driver())
    assert "no GPU answers: model.orin-10.3.0-fp32.engine is for TensorRT 10.3.0 on Orin" in got.detail


def test_check_engines__none_in_the_bundle(installed: Installed, tmp_path: Path) -> None:
    tiny_bundle(tmp_path / "bundle")
    installed({"tensorrt": "10.3.0"})
    (got,) = checks.check_engines(tmp_path / "bundle", ORIN)
    assert (got.status, got.fix) == ("missing", f"ptedge build {tmp_path / 'bundle'}")


def test_doctor__with_a_bundle(tmp_path: Path) -> None:
    folder = bundle_with_engine(tmp_path / "bundle")
    command = [sys.executable, "-m", "ptedge", "doctor", str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert any("orin" in check["detail"] for check in json.loads(done.stdout)["checks"])
