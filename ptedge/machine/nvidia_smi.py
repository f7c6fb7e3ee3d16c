"""What nvidia-smi tells of the GPUs: model, driver, limits; clocks, heat, power, throttling."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

FACTS = {
    "name": "name",
    "driver": "driver_version",
    "memory_mb": "memory.total",
    "power_limit_w": "power.limit",
    "sm_mhz_max": "clocks.max.sm",
    "persistence": "persistence_mode",
}
TEXTS = ("name", "driver", "persistence")
READINGS = {
    "gpu_c": "temperature.gpu",
    "gpu_w": "power.draw",
    "gpu_sm_mhz": "clocks.sm",
    "gpu_memory_mhz": "clocks.mem",
    "gpu_memory_used_mb": "memory.used",
}
# the second is the name that drivers before 535 know
THROTTLE_FIELDS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
# bits of NVML that mean slower than asked for; idle and clocks set by the user are none
THROTTLE = {
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}
Ask = Callable[[Sequence[str]], "list[str] | None"]


def ask_nvidia_smi(fields: Sequence[str]) -> list[str] | None:
    """Values of the GPU in use, in the fields' order.

    Args:
        fields: as ``nvidia-smi --help-query-gpu`` names them.

    Returns:
        One text a field; ``None`` without nvidia-smi or GPU, or when this version does not know a field.
    """
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES", "").partition(",")[0].strip()
    which = ["-i", chosen] if chosen and not chosen.startswith("MIG") else []
    values = [value.strip() for value in _query(fields, "csv,noheader,nounits", *which).partition("\n")[0].split(",")]
    return values if len(values) == len(fields) and any(values) else None


def gpu_list() -> str:
    """Name, memory and driver of every GPU, as ``NVIDIA L4, 23034 MiB, 550.54; ...``; empty without nvidia-smi."""
    lines = _query(("name", "memory.total", "driver_version"), "csv,noheader").splitlines()
    return "; ".join(line.strip() for line in lines if line.strip())


def gpu_facts(ask: Ask = ask_nvidia_smi) -> dict[str, Any] | None:
    """What stays the same while a model runs; ``None`` without a GPU that nvidia-smi knows.

    Args:
        ask: answers a list of fields.
    """
    values = ask(list(FACTS.values()))
    if values is None:
        return None
    named = dict(zip(FACTS, values, strict=True))
    return {name: _text(text) if name in TEXTS else _number(text) for name, text in named.items()}


def gpu_reading(ask: Ask = ask_nvidia_smi) -> dict[str, Any]:
    """What changes: temperature in degrees Celsius, power in W, clocks in MHz, reasons for throttling.

    Args:
        ask: answers a list of fields.

    Returns:
        Without what this GPU does not tell; empty without one.
    """
    for field in THROTTLE_FIELDS:
        values = ask([*READINGS.values(), field])
        if values is not None:
            *numbers, mask = values
            found = dict(zip(READINGS, map(_number, numbers), strict=True))
            return {name: v for name, v in found.items() if v is not None} | {"gpu_throttle": throttle_reasons(mask)}
    return {}


def throttle_reasons(mask: str) -> list[str]:
    """Names of the bits that are set.

    Args:
        mask: hexadecimal, as nvidia-smi prints it.
    """
    try:
        bits = int(mask, 16)
    except ValueError:  # "[N/A]" on some boards
        return []
    return [name for bit, name in THROTTLE.items() if bits & bit]


def _query(fields: Sequence[str], form: str, *options: str) -> str:
    """A line a GPU; empty without nvidia-smi, without a GPU, or where this version does not know a field."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    command = [program, f"--query-gpu={','.join(fields)}", f"--format={form}", *options]
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _text(text: str) -> str | None:
    return None if not text or text.startswith(("[", "N/A")) else text


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
