from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from pretend import Installed, pretend_installed

from ptedge.machine import gpu
from ptedge.machine.driver import Driver, Gpu

DESKTOP = Driver((12, 4), (Gpu("NVIDIA L4", "8.9"),))
ORIN = Driver((12, 6), (Gpu("Orin", "8.7"),))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    return partial(pretend_installed, monkeypatch)


def test_check_gpu__answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "gpu_list", lambda: "")
    got = gpu.check_gpu(ORIN, on_jetson=True)
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
    got = gpu.check_gpu(driver, on_jetson, tmp_path)
    assert (got.status, got.fix[: len(fix)]) == (status, fix)
    assert bool(got.fix) == bool(fix)


def test_check_driver__too_old(installed: Installed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.machine.packages.metadata.requires", lambda name: [])
    installed({"tensorrt-cu13": "11.4.0"})
    (got,) = gpu.check_driver(DESKTOP, on_jetson=False)
    assert got.status == "problem"
    assert got.detail == "supports CUDA 12.4, but tensorrt-cu13 needs CUDA 13 (driver 580 or newer)"
    assert got.fix == "sudo apt-get install nvidia-driver-580 && sudo reboot"
    assert gpu.check_driver(ORIN, on_jetson=True)[0].fix == "pip uninstall -y tensorrt-cu13"
    installed({"tensorrt-cu12": "10.3.0"})
    assert gpu.check_driver(DESKTOP, on_jetson=False)[0].status == "ok"
    assert gpu.check_driver(Driver(), on_jetson=False) == []
