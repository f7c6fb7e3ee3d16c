"""What nvidia-smi tells, from made-up answers and from a script in its place."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ptedge.machine import nvidia_smi
from ptedge.machine.nvidia_smi import (
    FACTS,
    READINGS,
    ask_nvidia_smi,
    gpu_facts,
    gpu_list,
    gpu_reading,
    throttle_reasons,
)


def nothing(fields: Sequence[str]) -> None:
    return None


def test_gpu_facts__and_readings() -> None:
    values = {
        **{"name": "NVIDIA H100 80GB HBM3", "driver_version": "535.10", "memory.total": "81559"},
        **{"power.limit": "700.00", "clocks.max.sm": "1980", "persistence_mode": "Enabled"},
        **{"temperature.gpu": "41", "power.draw": "[N/A]", "clocks.sm": "1755", "clocks.mem": "2619"},
        **{"memory.used": "1024", "clocks_event_reasons.active": "0x0000000000000024"},
    }

    def ask(fields: Sequence[str]) -> list[str]:
        return [values[field] for field in fields]

    facts = gpu_facts(ask)
    assert facts is not None and set(facts) == set(FACTS)
    assert (facts["name"], facts["driver"], facts["memory_mb"]) == ("NVIDIA H100 80GB HBM3", "535.10", 81559.0)
    found = gpu_reading(ask)
    assert (found["gpu_c"], found["gpu_sm_mhz"], found["gpu_throttle"]) == (41, 1755, ["power cap", "heat (software)"])
    assert "gpu_w" not in found


def test_gpu_reading__of_an_older_driver() -> None:
    def ask(fields: Sequence[str]) -> list[str] | None:
        return None if "clocks_event_reasons.active" in fields else ["50"] * len(READINGS) + ["0x0000000000000001"]

    assert gpu_reading(ask) == dict.fromkeys(READINGS, 50.0) | {"gpu_throttle": []}
    assert gpu_reading(nothing) == {} and gpu_facts(nothing) is None


def test_throttle_reasons__bits() -> None:
    assert throttle_reasons("0x0") == throttle_reasons("0x1") == throttle_reasons("[N/A]") == []
    assert throttle_reasons("0x8") == ["hardware slowdown"]


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands for nvidia-smi")
def test_ask_nvidia_smi__the_gpu_in_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f'#!/bin/sh\necho "$@" > {tmp_path / "asked"}\necho "NVIDIA L4, 72"\necho "NVIDIA L4, 60"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,4")
    assert ask_nvidia_smi(["name", "power.limit"]) == ["NVIDIA L4", "72"]
    asked = (tmp_path / "asked").read_text().split()
    assert asked == ["--query-gpu=name,power.limit", "--format=csv,noheader,nounits", "-i", "3"]
    assert ask_nvidia_smi(["name"]) is None  # an answer of another shape
    program.write_text("#!/bin/sh\nexit 2\n")
    assert ask_nvidia_smi(["name", "power.limit"]) is None
    monkeypatch.setattr(nvidia_smi.shutil, "which", lambda name: None)
    assert ask_nvidia_smi(["name", "power.limit"]) is None


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands for nvidia-smi")
def test_gpu_list__all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text('#!/bin/sh\necho "NVIDIA L4, 23034 MiB, 550.54"\necho "NVIDIA T4, 15360 MiB, 550.54"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    assert gpu_list() == "NVIDIA L4, 23034 MiB, 550.54; NVIDIA T4, 15360 MiB, 550.54"
    program.write_text("#!/bin/sh\necho no devices\nexit 6\n")
    assert gpu_list() == ""
