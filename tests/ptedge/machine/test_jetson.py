"""What a Jetson tells of itself, on made-up file trees. (A whole one is in the benchmark's tests.)"""

from __future__ import annotations

from pathlib import Path

import pytest

from ptedge.machine import jetson
from ptedge.machine.jetson import (
    board_model,
    gpu_mhz,
    jetson_release,
    over_current_events,
    power_mode,
    rail_power,
    temperatures,
)


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_temperatures__the_warmest_of_a_name_and_none_that_is_off(tmp_path: Path) -> None:
    zones = {"0": ("cpu-thermal", "48250"), "1": ("cv0-thermal", "-256000"), "2": ("cpu-thermal", "50100")}
    for number, (name, value) in zones.items():
        folder = f"sys/class/thermal/thermal_zone{number}"
        tree(tmp_path, {f"{folder}/type": f"{name}\n", f"{folder}/temp": f"{value}\n"})
    assert temperatures(tmp_path) == {"cpu-thermal": 50.1}


def test_rail_power__of_jetpack_4(tmp_path: Path) -> None:
    folder = "sys/bus/i2c/drivers/ina3221x/6-0040/iio:device0/"
    files = {f"{folder}rail_name_0": "POM_5V_IN\n", f"{folder}in_power0_input": "2345\n"}
    assert rail_power(tree(tmp_path, files)) == {"POM_5V_IN": 2.345}


@pytest.mark.parametrize("name", ["17000000.gpu", "17000000.ga10b", "57000000.gpu", "17000000.gv11b"])
def test_gpu_mhz__by_names_of_all_generations(tmp_path: Path, name: str) -> None:
    tree(tmp_path, {"sys/class/devfreq/15340000.vic/cur_freq": "435200000\n"})
    assert gpu_mhz(tmp_path) is None
    assert gpu_mhz(tree(tmp_path, {f"sys/class/devfreq/{name}/cur_freq": "624750000\n"})) == 625


def test_power_mode__by_number_where_nvpmodel_is_not_asked(tmp_path: Path) -> None:
    assert power_mode(tree(tmp_path, {"var/lib/nvpmodel/status": "pmode:0002\n"})) == "2"


def test_power_mode__by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvpmodel"
    program.write_text('#!/bin/sh\necho "NV Power Mode: MAXN_SUPER"\necho 2\n')
    program.chmod(0o755)
    monkeypatch.setattr(jetson.shutil, "which", lambda name: str(program))
    assert power_mode() == "MAXN_SUPER"


def test_jetson__another_machine_tells_nothing(tmp_path: Path) -> None:
    assert (temperatures(tmp_path), rail_power(tmp_path), over_current_events(tmp_path)) == ({}, {}, 0)
    assert (power_mode(tmp_path), gpu_mhz(tmp_path)) == (None, None)
    assert jetson_release(tmp_path) == board_model(tmp_path) == ""
