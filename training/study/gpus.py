"""GPUs by name: memory and peak throughput, for the estimates of a dry run."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ptedge.errors import ConfigError
from ptedge.machine.nvidia_smi import Ask, ask_nvidia_smi


@dataclass(frozen=True)
class Gpu:
    """What a GPU has.

    Attributes:
        name: for people.
        memory: GiB.
        single: peak of fp32 products in TFLOP/s; with TF32 where there is such a thing, as ``ptedge`` uses it.
        half: peak of bf16 or fp16 products in TFLOP/s, summed in fp32; 0 where the GPU is not known.
        has_bf16: it computes in bfloat16.
    """

    name: str
    memory: float
    single: float = 0.0
    half: float = 0.0
    has_bf16: bool = True


# Dense peaks of NVIDIA's data sheets, rounded; the longest name that a GPU's own name holds is it.
_TABLE = (
    Gpu("T4", 16, 8.1, 65, has_bf16=False),
    Gpu("V100", 16, 15.7, 125, has_bf16=False),
    Gpu("RTX 2080 Ti", 11, 13.4, 54, has_bf16=False),
    Gpu("RTX 3060", 12, 12.7, 25),
    Gpu("RTX 3070", 8, 20.3, 41),
    Gpu("RTX 3080", 10, 29.8, 60),
    Gpu("RTX 3090", 24, 35.6, 71),
    Gpu("RTX 4070", 12, 29.1, 58),
    Gpu("RTX 4080", 16, 48.7, 97),
    Gpu("RTX 4090", 24, 82.6, 165),
    Gpu("RTX A6000", 48, 77.4, 155),
    Gpu("A10", 24, 62.5, 125),
    Gpu("A100", 40, 156, 312),
    Gpu("L4", 24, 60, 121),
    Gpu("L40S", 48, 183, 366),
    Gpu("H100", 80, 494, 989),
    Gpu("H200", 141, 494, 989),
)


def gpu_named(name: str) -> Gpu:
    """A GPU of the table.

    Raises:
        ConfigError: it is not in it.
    """
    found = _lookup(name)
    if found is None:
        raise ConfigError(f"--gpu {name!r} is none that is known; there are {', '.join(gpu.name for gpu in _TABLE)}")
    return found


def gpu_here(ask: Ask = ask_nvidia_smi) -> Gpu | None:
    """The GPU in use, with its own memory; its peaks are 0 where the table does not know it.

    Args:
        ask: answers a list of fields.
    """
    values = ask(["name", "memory.total"])
    if values is None:
        return None
    name = values[0]
    memory = float(values[1]) / 1024 if re.fullmatch(r"[\d.]+", values[1]) else 0.0
    known = _lookup(name)
    return Gpu(name, memory) if known is None else replace(known, name=name, memory=memory or known.memory)


def _lookup(name: str) -> Gpu | None:
    words = _words(name)
    found = [gpu for gpu in _TABLE if f" {_words(gpu.name)} " in f" {words} "]
    return max(found, key=lambda gpu: len(gpu.name), default=None)


def _words(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", name.lower()).strip()
