"""What a benchmark tells of the machine, on made-up file trees and answers of nvidia-smi."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ptedge.runtime.benchmark.machine import environment, reading


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


def test_reading__of_a_machine_that_tells_nothing(tmp_path: Path) -> None:
    assert set(reading(tmp_path, nothing)) <= {"load"}
