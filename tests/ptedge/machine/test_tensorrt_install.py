"""The next step on each machine that TensorRT may be missing from; packages, files and drivers are made up."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
from pretend import Installed, pretend_installed

from ptedge.machine import tensorrt_install as checks
from ptedge.machine.driver import Driver, Gpu

DESKTOP = Driver((12, 4), (Gpu("NVIDIA L4", "8.9"),))
ORIN = Driver((12, 6), (Gpu("Orin", "8.7"),))
JETPACK_6 = "R36 (release), REVISION: 4.0"
MINE = sys.version_info[:2]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    return partial(pretend_installed, monkeypatch)


def system_package(root: Path, python: str) -> None:
    (root / f"usr/lib/{python}/dist-packages/tensorrt").mkdir(parents=True)


def test_jetpack__from_the_release() -> None:
    assert [checks.jetpack(f"R{n} (release)") for n in (35, 36, 38, 39, 99)] == [5, 6, 7, 7, None]
    assert checks.jetpack("") is None


def test_check_tensorrt__not_needed_without_a_gpu(installed: Installed, tmp_path: Path) -> None:
    installed({})
    (got,) = checks.check_tensorrt(Driver(), root=tmp_path)
    assert (got.status, got.fix) == ("info", "")


@pytest.mark.parametrize(("cuda", "package"), [((12, 4), "tensorrt-cu12"), ((13, 0), "tensorrt-cu13")])
def test_check_tensorrt__absent_on_a_desktop(
    installed: Installed, tmp_path: Path, cuda: tuple[int, int], package: str
) -> None:
    installed({})
    (got,) = checks.check_tensorrt(Driver(cuda, DESKTOP.gpus), root=tmp_path)
    assert (got.status, got.fix) == ("missing", f"pip install {package} pycuda")


def test_check_tensorrt__jetpack_without_it(installed: Installed, tmp_path: Path) -> None:
    installed({})
    (got,) = checks.check_tensorrt(ORIN, JETPACK_6, tmp_path)
    assert (got.status, got.fix) == ("missing", "sudo apt-get install nvidia-jetpack")
    assert "JetPack 6" in got.detail


def test_check_tensorrt__the_system_has_it_but_the_venv_does_not_see_it(installed: Installed, tmp_path: Path) -> None:
    installed({})
    system_package(tmp_path, f"python{MINE[0]}.{MINE[1]}")
    (got,) = checks.check_tensorrt(ORIN, JETPACK_6, tmp_path)
    assert got.fix.startswith("python3 -m venv --system-site-packages venv")


def test_check_tensorrt__for_another_python(installed: Installed, tmp_path: Path) -> None:
    installed({})
    system_package(tmp_path, "python3.8")
    (got,) = checks.check_tensorrt(ORIN, JETPACK_6, tmp_path)
    assert got.detail == f"the system has it for Python 3.8, and this is Python {MINE[0]}.{MINE[1]}"
    assert got.fix.startswith("python3.8 -m venv --system-site-packages")


def test_system_bindings__debian_folder_of_all_versions(tmp_path: Path) -> None:
    system_package(tmp_path, "python3")
    assert checks.system_bindings(tmp_path) == [MINE]
    (tmp_path / "usr/lib/python3/dist-packages/tensorrt/tensorrt.cpython-310-aarch64-linux-gnu.so").touch()
    assert checks.system_bindings(tmp_path) == [(3, 10)]


@pytest.mark.parametrize(
    ("problem", "fix"),
    [
        (
            "ImportError: libnvinfer.so.10: cannot open shared object file: No such file or directory",
            "pip install --force-reinstall tensorrt-cu12==10.3.0 tensorrt-cu12-libs==10.3.0",
        ),
        ("importing it ends the process with signal 11", "pip install --force-reinstall tensorrt==10.3.0"),
    ],
)
def test_check_tensorrt__cannot_be_loaded(
    installed: Installed, monkeypatch: pytest.MonkeyPatch, problem: str, fix: str
) -> None:
    installed({"tensorrt-cu12": "10.3.0"})
    monkeypatch.setattr(checks, "try_import", lambda module: problem)
    (got,) = checks.check_tensorrt(DESKTOP)
    assert (got.status, got.fix) == ("problem", fix)
    assert problem in got.detail


def test_check_pycuda__there_absent_and_broken(
    installed: Installed, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("shutil.which", lambda name: None)
    installed({"tensorrt": "10.3.0", "pycuda": "2026.1"})
    assert [got.status for got in checks.check_tensorrt(DESKTOP)] == ["ok", "ok"]
    monkeypatch.setattr(checks, "try_import", lambda module: "ImportError: libcuda.so.1")
    assert "cannot be loaded: ImportError" in checks.check_pycuda().detail
    installed({})
    assert checks.check_pycuda("", tmp_path).fix == (
        "sudo apt-get install nvidia-cuda-toolkit python3-dev g++ && pip install pycuda"
    )
    assert "nvidia-jetpack" in checks.check_pycuda(JETPACK_6, tmp_path).fix
    (tmp_path / "usr/local/cuda/bin").mkdir(parents=True)
    (tmp_path / "usr/local/cuda/bin/nvcc").touch()
    assert checks.check_pycuda("", tmp_path).fix == f"PATH={tmp_path}/usr/local/cuda/bin:$PATH pip install pycuda"
