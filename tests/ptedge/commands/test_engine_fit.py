from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from pretend import Installed, pretend_installed
from tiny_model import tiny_bundle

from ptedge.artifacts.engine_file import EngineRecord, add_record
from ptedge.commands.engine_fit import check_engines
from ptedge.machine.driver import Driver, Gpu

DESKTOP = Driver((12, 4), (Gpu("NVIDIA L4", "8.9"),))
ORIN = Driver((12, 6), (Gpu("Orin", "8.7"),))


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Installed:
    return partial(pretend_installed, monkeypatch)


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
    (got,) = check_engines(folder, ORIN)
    assert (got.status, got.fix) == ("ok", "")
    installed({"tensorrt": "10.7.0"})
    (got,) = check_engines(folder, DESKTOP)
    assert (got.status, got.fix) == ("problem", f"ptedge build {folder}")
    assert "built with TensorRT 10.3.0, here is 10.7.0" in got.detail
    assert "here is NVIDIA L4 (8.9)" in got.detail
    (got,) = check_engines(folder, Driver())
    assert "no GPU answers: model.orin-10.3.0-fp32.engine is for TensorRT 10.3.0 on Orin" in got.detail


def test_check_engines__none_in_the_bundle(installed: Installed, tmp_path: Path) -> None:
    tiny_bundle(tmp_path / "bundle")
    installed({"tensorrt": "10.3.0"})
    (got,) = check_engines(tmp_path / "bundle", ORIN)
    assert (got.status, got.fix) == ("missing", f"ptedge build {tmp_path / 'bundle'}")


def test_doctor__with_a_bundle(tmp_path: Path) -> None:
    folder = bundle_with_engine(tmp_path / "bundle")
    command = [sys.executable, "-m", "ptedge", "doctor", str(folder), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    assert any("orin" in check["detail"] for check in json.loads(done.stdout)["checks"])
