"""What this machine is: driver, GPUs, memory, packages; every question to it is asked here.

Others may ask any module named below; nothing here loads a model or needs torch.
"""

__all__ = [
    "cpu",
    "driver",
    "finding",
    "gpu",
    "heap",
    "host",
    "jetson",
    "kernel_files",
    "memory",
    "nvidia_smi",
    "packages",
    "tensorrt_install",
    "video",
]
