"""GPUs by name and by what nvidia-smi says."""

from __future__ import annotations

import pytest

from ptedge.errors import ConfigError
from ptedge.training.study.gpus import gpu_here, gpu_named


@pytest.mark.parametrize(
    ("name", "found"),
    [("a100", "A100"), ("rtx 3090", "RTX 3090"), ("L40S", "L40S"), ("NVIDIA RTX A6000", "RTX A6000"), ("l4", "L4")],
)
def test_gpu_named__whatever_the_capitals(name: str, found: str) -> None:
    assert gpu_named(name).name == found


def test_gpu_named__refuses_others_and_lists_those_there_are() -> None:
    for name in ("A1000", "3090 maybe", ""):
        with pytest.raises(ConfigError, match="there are T4, V100"):
            gpu_named(name)


def test_gpu_here__has_its_own_memory_and_the_peaks_of_its_kind() -> None:
    gpu = gpu_here(lambda fields: ["NVIDIA A100-SXM4-80GB", "81920"])
    assert gpu is not None
    assert (gpu.name, gpu.memory, gpu.half) == ("NVIDIA A100-SXM4-80GB", 80.0, 312)
    unknown = gpu_here(lambda fields: ["NVIDIA Tomorrow", "2048"])
    assert unknown is not None and (unknown.memory, unknown.half, unknown.single) == (2.0, 0.0, 0.0)
    assert gpu_here(lambda fields: None) is None
