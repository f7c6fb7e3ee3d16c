"""What the CUDA driver says of itself and its GPUs, asked through ctypes: no package is needed, nothing is printed."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass

MISMATCH = (803, 804)  # the library in user space is not that of the kernel module
MAJOR, MINOR = 75, 76  # CUdevice_attribute: compute capability


@dataclass(frozen=True)
class Gpu:
    """One device.

    Attributes:
        name: as the driver reports it.
        compute_capability: for example ``8.7``.
    """

    name: str
    compute_capability: str


@dataclass(frozen=True)
class Driver:
    """The CUDA driver.

    Attributes:
        cuda: newest CUDA version it supports, (major, minor); ``None`` where there is no driver library.
        gpus: the devices that answer.
        error: its number when it does not start, else 0.
    """

    cuda: tuple[int, int] | None = None
    gpus: tuple[Gpu, ...] = ()
    error: int = 0


def ask_driver() -> Driver:
    """Ask the driver; without one, an empty answer."""
    try:
        library = load_driver()
        number = ctypes.c_int(0)
        library.cuDriverGetVersion(ctypes.byref(number))
        cuda = (number.value // 1000, number.value % 1000 // 10)
        error = int(library.cuInit(0))
        if error:
            return Driver(cuda, error=error)
        library.cuDeviceGetCount(ctypes.byref(number))
        return Driver(cuda, tuple(_gpu(library, index) for index in range(number.value)))
    except (OSError, AttributeError):
        return Driver()


def cuda_device_count() -> int:
    """GPUs that the CUDA driver reports; 0 without a driver."""
    return len(ask_driver().gpus)


def load_driver() -> ctypes.CDLL:
    """The CUDA driver's library.

    Raises:
        OSError: there is none.
    """
    return ctypes.CDLL("libcuda.so.1")


def _gpu(library: ctypes.CDLL, index: int) -> Gpu:
    device, name = ctypes.c_int(0), ctypes.create_string_buffer(256)
    library.cuDeviceGet(ctypes.byref(device), index)
    library.cuDeviceGetName(name, 256, device)
    numbers = []
    for attribute in (MAJOR, MINOR):
        value = ctypes.c_int(0)
        library.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        numbers.append(value.value)
    return Gpu(name.value.decode("utf-8", "replace"), f"{numbers[0]}.{numbers[1]}")
