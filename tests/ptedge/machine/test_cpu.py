"""What a processor tells of itself, on made-up file trees."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ptedge.machine.cpu import cpu_governor, cpu_mhz, cpu_mhz_max, cpu_model, cpu_quota, usable_cores


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_usable_cores__those_of_the_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {3, 5}, raising=False)
    assert usable_cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    assert usable_cores() == 8


def test_cpu_model__of_a_pc_and_of_a_board(tmp_path: Path) -> None:
    assert cpu_model(tmp_path)  # what Python knows
    tree(tmp_path, {"proc/cpuinfo": "processor\t: 0\nBogoMIPS\t: 62.50\n", "proc/device-tree/model": "Orin Nano\0"})
    assert cpu_model(tmp_path) == "Orin Nano"
    tree(tmp_path, {"proc/cpuinfo": "processor\t: 0\nmodel name\t: AMD EPYC 7763\n"})
    assert cpu_model(tmp_path) == "AMD EPYC 7763"


@pytest.mark.parametrize(("text", "cores"), [("150000 100000\n", 1.5), ("max 100000\n", None), ("", None)])
def test_cpu_quota__of_a_container(tmp_path: Path, text: str, cores: float | None) -> None:
    assert cpu_quota(tree(tmp_path, {"sys/fs/cgroup/cpu.max": text})) == cores


def test_clocks__of_the_fastest_core(tmp_path: Path) -> None:
    assert (cpu_mhz(tmp_path), cpu_mhz_max(tmp_path), cpu_governor(tmp_path)) == (None, None, None)
    folder = "sys/devices/system/cpu/cpufreq"
    for core, now, governor in ((0, "729600", "schedutil"), (4, "1510400", "performance")):
        tree(tmp_path, {f"{folder}/policy{core}/scaling_cur_freq": now})
        tree(tmp_path, {f"{folder}/policy{core}/scaling_governor": f"{governor}\n"})
    tree(tmp_path, {f"{folder}/policy0/scaling_max_freq": "1900800\n"})
    assert (cpu_mhz(tmp_path), cpu_mhz_max(tmp_path)) == (1510, 1901)
    assert cpu_governor(tmp_path) == "performance, schedutil"
