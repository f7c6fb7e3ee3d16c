"""What a machine tells of itself, on made-up file trees and answers of nvidia-smi."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ptedge.runtime.benchmark import gpu as bench_gpu
from ptedge.runtime.benchmark.gpu import FACTS, READINGS, ask_nvidia_smi, gpu_facts, gpu_reading, throttle_reasons
from ptedge.runtime.benchmark.machine import (
    cpu_model,
    cpu_quota,
    environment,
    over_current_events,
    power_mode,
    rail_power,
    reading,
    temperatures,
)


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def nothing(fields: Sequence[str]) -> None:
    return None


ORIN = {
    "proc/device-tree/model": "NVIDIA Jetson Orin Nano Developer Kit\0",
    "proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 62.50\n",
    "etc/nv_tegra_release": "# R36 (release), REVISION: 4.0, GCID: 37537400, BOARD: generic\n",
    "var/lib/nvpmodel/status": "pmode:0002\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "schedutil\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq": "1510400\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_cur_freq": "729600\n",
    "sys/devices/system/cpu/cpufreq/policy4/scaling_governor": "schedutil\n",
    "sys/devices/system/cpu/cpufreq/policy4/scaling_cur_freq": "1510400\n",
    "sys/class/devfreq/17000000.gpu/cur_freq": "624750000\n",
    "sys/class/devfreq/15340000.vic/cur_freq": "435200000\n",
    "sys/class/thermal/thermal_zone0/type": "cpu-thermal\n",
    "sys/class/thermal/thermal_zone0/temp": "48250\n",
    "sys/class/thermal/thermal_zone1/type": "cv0-thermal\n",
    "sys/class/thermal/thermal_zone1/temp": "-256000\n",
    "sys/class/hwmon/hwmon1/name": "ina3221\n",
    "sys/class/hwmon/hwmon1/in1_label": "VDD_IN\n",
    "sys/class/hwmon/hwmon1/in1_input": "5000\n",
    "sys/class/hwmon/hwmon1/curr1_input": "1200\n",
    "sys/class/hwmon/hwmon1/in2_label": "VDD_CPU_GPU_CV\n",
    "sys/class/hwmon/hwmon1/in2_input": "4992\n",
    "sys/class/hwmon/hwmon2/name": "soctherm_oc\n",
    "sys/class/hwmon/hwmon2/oc1_event_cnt": "3\n",
    "sys/class/hwmon/hwmon2/oc3_event_cnt": "1\n",
}


def test_environment__of_a_jetson(tmp_path: Path) -> None:
    found = environment(4, tree(tmp_path, ORIN), nothing)
    assert found["machine"] == found["cpu"] == "NVIDIA Jetson Orin Nano Developer Kit"
    assert found["jetson_release"] == "R36 (release), REVISION: 4.0"
    assert (found["power_mode"], found["cpu_governor"], found["cpu_mhz_max"]) == ("2", "schedutil", 1510)
    assert (found["threads"], found["gpu"], found["cpu_quota"]) == (4, None, None)
    assert found["versions"]["onnxruntime"] and found["versions"]["opencv"]


def test_reading__of_a_jetson(tmp_path: Path) -> None:
    found = reading(tree(tmp_path, ORIN), nothing)
    found.pop("load")
    assert found == {
        "cpu_mhz": 1510,
        "gpu_mhz": 625,
        "temperature_c": {"cpu-thermal": 48.2},
        "rail_w": {"VDD_IN": 6.0},  # the other channel has no current
        "over_current_events": 4,
    }


def test_rail_power__of_jetpack_4(tmp_path: Path) -> None:
    folder = "sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0/"
    files = {f"{folder}rail_name_0": "POM_5V_IN\n", f"{folder}in_power0_input": "2345\n"}
    assert rail_power(tree(tmp_path, files)) == {"POM_5V_IN": 2.345}


def test_machine__that_tells_nothing(tmp_path: Path) -> None:
    assert (temperatures(tmp_path), rail_power(tmp_path), over_current_events(tmp_path)) == ({}, {}, 0)
    assert (power_mode(tmp_path), cpu_quota(tmp_path)) == (None, None)
    assert set(reading(tmp_path, nothing)) <= {"load"}
    assert cpu_model(tmp_path)


@pytest.mark.parametrize(("text", "cores"), [("150000 100000\n", 1.5), ("max 100000\n", None), ("", None)])
def test_cpu_quota__of_a_container(tmp_path: Path, text: str, cores: float | None) -> None:
    assert cpu_quota(tree(tmp_path, {"sys/fs/cgroup/cpu.max": text})) == cores


def test_gpu__facts_and_readings() -> None:
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
    monkeypatch.setattr(bench_gpu.shutil, "which", lambda name: None)
    assert ask_nvidia_smi(["name", "power.limit"]) is None
