from __future__ import annotations

import builtins
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ptedge.machine import packages as machine
from ptedge.machine.driver import Driver, Gpu

Versions = Callable[[dict[str, str]], None]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Versions:
    """Pretend that exactly these distributions are installed."""

    def pretend(versions: dict[str, str]) -> None:
        monkeypatch.setattr(machine, "version_of", versions.get)

    return pretend


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Pretend that so many GPUs answer."""

    def pretend(count: int) -> None:
        monkeypatch.setattr(machine, "cuda_device_count", lambda: count)

    return pretend


def forbid_import(monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    real = builtins.__import__

    def guarded(wanted: str, *arguments: Any, **keywords: Any) -> Any:
        if wanted == name:
            raise ImportError(message, name=name)
        return real(wanted, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", guarded)


def fake_opencv(monkeypatch: pytest.MonkeyPatch, build: str) -> None:
    fake = SimpleNamespace(__version__="4.8.0", getBuildInformation=lambda: build)
    monkeypatch.setitem(sys.modules, "cv2", fake)


def test_check_group__names_what_is_absent(installed: Versions) -> None:
    installed({"torch": "2.4.0"})
    got = machine.check_group("export", ("torch", "onnx"), "export")
    assert (got.status, got.detail, got.fix) == ("missing", "not installed: onnx", 'pip install "ptedge[export]"')
    installed({"torch": "2.4.0", "onnx": "1.16"})
    assert machine.check_group("export", ("torch", "onnx"), "export").detail == "torch 2.4.0, onnx 1.16"


def test_check_package__absent(installed: Versions) -> None:
    installed({})
    got = machine.check_package("NumPy", "numpy", "pip install numpy")
    assert (got.status, got.fix) == ("problem", "pip install numpy")


def test_check_jetson__release_and_model(tmp_path: Path) -> None:
    assert machine.check_jetson(tmp_path) is None
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/nv_tegra_release").write_text("# R36 (release), REVISION: 4.0\nmore\n")
    (tmp_path / "proc/device-tree").mkdir(parents=True)
    (tmp_path / "proc/device-tree/model").write_bytes(b"NVIDIA Jetson Orin Nano\0")
    got = machine.check_jetson(tmp_path)
    assert got is not None
    assert got.detail == "NVIDIA Jetson Orin Nano, R36 (release), REVISION: 4.0"


ORIN = Driver((12, 6), (Gpu("Orin", "8.7"),))


def test_check_gpu__answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "gpu_list", lambda: "")
    got = machine.check_gpu(ORIN, on_jetson=True)
    assert (got.status, got.detail) == ("ok", "Orin (compute capability 8.7)")


@pytest.mark.parametrize(
    ("driver", "files", "on_jetson", "status", "fix"),
    [
        (Driver(), [], False, "info", ""),
        (Driver(), ["dev/nvidia0"], False, "problem", "sudo ubuntu-drivers install"),
        (Driver((12, 6), error=999), ["dev/nvidia0"], False, "problem", "sudo ubuntu-drivers install"),
        (Driver((12, 6), error=803), ["dev/nvidia0"], False, "problem", "sudo reboot"),
        (Driver((12, 6), error=804), [".dockerenv", "dev/nvidia0"], False, "problem", "docker run --gpus all"),
        (Driver(), [".dockerenv"], False, "info", ""),
        (Driver(), [".dockerenv", "dev/nvidia0"], False, "problem", "docker run --gpus all"),
        (Driver(), ["run/.containerenv"], True, "problem", "docker run --runtime nvidia"),
        (Driver(), ["dev/nvhost-gpu"], True, "problem", "sudo apt-get install nvidia-l4t-cuda"),
    ],
)
def test_check_gpu__silent(
    tmp_path: Path, driver: Driver, files: list[str], on_jetson: bool, status: str, fix: str
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    got = machine.check_gpu(driver, on_jetson, tmp_path)
    assert (got.status, got.fix[: len(fix)]) == (status, fix)
    assert bool(got.fix) == bool(fix)


def test_check_machine__says_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cores" in machine.check_machine(tmp_path).detail
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda folder: SimpleNamespace(free=10))
    assert machine.check_machine(tmp_path).status == "problem"


def test_check_opencv__reads_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_opencv(monkeypatch, "  Video I/O:\n    FFMPEG:    YES\n    GStreamer:  NO\n")
    version, ffmpeg, gstreamer = machine.check_opencv(on_jetson=False)
    assert (version.detail, ffmpeg.status, gstreamer.status) == ("4.8.0", "ok", "missing")
    assert gstreamer.fix == "sudo apt-get install python3-opencv"
    fake_opencv(monkeypatch, "  Video I/O:\n    FFMPEG:    NO\n    GStreamer:  YES (1.20.3)\n")
    _, ffmpeg, gstreamer = machine.check_opencv(on_jetson=True)
    assert (ffmpeg.status, gstreamer.status) == ("problem", "ok")


def test_check_opencv__cannot_be_loaded(monkeypatch: pytest.MonkeyPatch, installed: Versions) -> None:
    forbid_import(monkeypatch, "cv2", "libGL.so.1: cannot open shared object file")
    installed({"opencv-python": "4.8"})
    (got,) = machine.check_opencv(on_jetson=False)
    assert got.status == "problem"
    assert "libGL.so.1" in got.detail
    assert got.fix.startswith("pip uninstall -y opencv-python && pip install")


def test_check_torch__cpu_build_beside_a_gpu(
    monkeypatch: pytest.MonkeyPatch, installed: Versions, devices: Callable[[int], None]
) -> None:
    installed({})
    assert machine.check_torch() == []
    installed({"torch": "2.4"})
    monkeypatch.setattr(machine, "_torch_cuda", lambda: "")
    devices(0)
    assert machine.check_torch()[0].detail == "2.4, built for the CPU"
    devices(1)
    assert machine.check_torch()[0].status == "problem"
    monkeypatch.setattr(machine, "_torch_cuda", lambda: "12.6")
    assert machine.check_torch()[0].detail == "2.4, built for CUDA 12.6"


def test_torch_cuda__is_what_torch_says() -> None:
    torch = pytest.importorskip("torch")
    assert machine._torch_cuda() == (torch.version.cuda or "")
