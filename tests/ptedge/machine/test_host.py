from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from ptedge.machine import host
from ptedge.machine.host import check_host, check_jetson, in_container


def test_check_jetson__release_and_model() -> None:
    assert check_jetson("", "") is None
    assert check_jetson("Raspberry Pi 5", "") is None
    got = check_jetson("NVIDIA Jetson Orin Nano", "R36 (release), REVISION: 4.0")
    assert got is not None
    assert got.detail == "NVIDIA Jetson Orin Nano, R36 (release), REVISION: 4.0"
    assert check_jetson("", "R36 (release), REVISION: 4.0") is not None


def test_check_host__says_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "cores" in check_host(tmp_path).detail
    monkeypatch.setattr(host.shutil, "disk_usage", lambda folder: SimpleNamespace(free=10))
    assert check_host(tmp_path).status == "problem"


def test_in_container__by_files(tmp_path: Path) -> None:
    assert not in_container(tmp_path)
    (tmp_path / "proc/1").mkdir(parents=True)
    (tmp_path / "proc/1/cgroup").write_text("0::/kubepods/pod1\n")
    assert in_container(tmp_path)
