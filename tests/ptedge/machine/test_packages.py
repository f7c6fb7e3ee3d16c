from __future__ import annotations

import sys
from functools import partial

import pytest
from pretend import Installed, pretend_installed

from ptedge.machine import packages


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    return partial(pretend_installed, monkeypatch)


def test_check_group__names_what_is_absent(installed: Installed) -> None:
    installed({"torch": "2.4.0"})
    got = packages.check_group("export", "export", ("torch", "onnx"), "export")
    assert (got.status, got.detail, got.fix) == ("missing", "not installed: onnx", 'pip install "ptedge[export]"')
    installed({"torch": "2.4.0", "onnx": "1.16"})
    assert packages.check_group("export", "export", ("torch", "onnx"), "export").detail == "torch 2.4.0, onnx 1.16"


def test_check_package__absent(installed: Installed) -> None:
    installed({})
    got = packages.check_package("numpy", "NumPy", "numpy", "pip install numpy")
    assert (got.status, got.fix) == ("problem", "pip install numpy")


def test_check_torch__cpu_build_beside_a_gpu(monkeypatch: pytest.MonkeyPatch, installed: Installed) -> None:
    installed({})
    assert packages.check_torch(gpus=1) == []
    installed({"torch": "2.4"})
    monkeypatch.setattr(packages, "_torch_cuda", lambda: "")
    assert packages.check_torch(gpus=0)[0].detail == "2.4, built for the CPU"
    assert packages.check_torch(gpus=1)[0].status == "problem"
    monkeypatch.setattr(packages, "_torch_cuda", lambda: "12.6")
    assert packages.check_torch(gpus=1)[0].detail == "2.4, built for CUDA 12.6"


def test_torch_cuda__is_what_torch_says() -> None:
    torch = pytest.importorskip("torch")
    assert packages._torch_cuda() == (torch.version.cuda or "")


@pytest.mark.parametrize(
    ("line", "major"),
    [("nvidia-cuda-runtime-cu12~=12.0; extra == 'cuda'", 12), ("nvidia-cuda-runtime~=13.0; extra == 'cuda'", 13)],
)
def test_cuda_needs__of_onnxruntime(
    installed: Installed, monkeypatch: pytest.MonkeyPatch, line: str, major: int
) -> None:
    installed({})
    monkeypatch.setattr(packages.metadata, "requires", lambda name: ["numpy>=1.21", line])
    assert packages.cuda_needs() == {"onnxruntime-gpu": major}


def test_try_import__in_a_process_of_its_own() -> None:
    assert packages.try_import("json") == ""
    assert "No module named 'no_such_module'" in packages.try_import("no_such_module")
    assert "no_such_module" not in sys.modules


def test_cuda_needs__of_tensorrt(installed: Installed) -> None:
    installed({"tensorrt": "10.3.0", "tensorrt-cu12-bindings": "10.3.0"})
    needs = packages.cuda_needs()
    assert needs.pop("tensorrt-cu12-bindings") == 12
    assert set(needs) <= {"onnxruntime-gpu"}  # its requirements are those of the package that is really there
