"""TensorRT and pycuda as far as ptedge uses them, on main memory: for tests on machines without a GPU.

"Device memory" is numpy arrays found by made-up addresses, so a wrong address, size or copy shows as a wrong answer or
a KeyError. The engine's work is a Python function.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

from ptedge.graph_contract import input_signature, output_signature

Tensors = dict[str, tuple[tuple[int, ...], str, bool]]  # name -> shape, TensorRT type, is input


def graph_tensors(batch: int, input_size: tuple[int, int], max_detections: int) -> Tensors:
    """The tensors of an engine built from a bundle's graph."""
    kinds = {"float32": "FLOAT", "int32": "INT32", "uint8": "UINT8"}
    inputs, outputs = input_signature(batch, input_size), output_signature(batch, max_detections)
    return {name: (shape, kinds[kind.name], name in inputs) for name, (shape, kind) in (inputs | outputs).items()}


class FakeDriver(types.ModuleType):
    """``pycuda.driver``."""

    class Error(Exception):
        pass

    def __init__(self, *, integrated: bool = False, capability: tuple[int, int] = (8, 7)) -> None:
        super().__init__("pycuda.driver")
        self.memory: dict[int, np.ndarray] = {}
        self.next_address = 0x10000
        self.depth = 0  # contexts pushed and not popped
        self.freed: list[int] = []
        self.released = 0
        self.integrated, self.capability = integrated, capability
        self.kernels_made = 0  # by TensorRT-RTX, for contexts that found none in their cache
        fake = self
        self.device_attribute = types.SimpleNamespace(INTEGRATED="integrated")
        self.host_alloc_flags = types.SimpleNamespace(DEVICEMAP=2)

        class Context:
            def push(self) -> None:
                fake.depth += 1

            @staticmethod
            def pop() -> None:
                fake.depth -= 1

            def detach(self) -> None:
                fake.released += 1

        class Device:
            def __init__(self, index: int) -> None:
                if index > 0:
                    raise fake.Error("invalid device ordinal")

            def name(self) -> str:
                return "Orin"

            def compute_capability(self) -> tuple[int, int]:
                return fake.capability

            def get_attribute(self, what: str) -> int:
                return int(fake.integrated)

            def retain_primary_context(self) -> Context:
                return Context()

        class Allocation:
            def __init__(self, size: int) -> None:
                self.address = fake.next_address
                fake.next_address += 0x100000
                fake.memory[self.address] = np.full(size, 0xCD, np.uint8)

            def __int__(self) -> int:
                return self.address

            def free(self) -> None:
                fake.freed.append(self.address)
                del fake.memory[self.address]

        class Stream:
            handle = 77

            def synchronize(self) -> None:
                fake.must_be_current()

        class Event:
            def record(self, stream: Stream) -> None:
                fake.must_be_current()

            def time_till(self, other: Event) -> float:
                return 0.5

        self.Context, self.Device, self.Stream, self.Event, self.mem_alloc = Context, Device, Stream, Event, Allocation

    def must_be_current(self) -> None:
        assert self.depth > 0, "no context is current in this thread"

    def init(self) -> None:
        pass

    def get_driver_version(self) -> int:
        return 12060

    def mem_get_info(self) -> tuple[int, int]:
        self.must_be_current()
        return 6 << 30, 8 << 30

    def pagelocked_empty(self, size: int, dtype: Any, mem_flags: int = 0) -> np.ndarray:
        self.must_be_current()
        if not mem_flags:
            return np.full(size, 0xCD, dtype)
        address = self.next_address
        self.next_address += 0x100000
        base = MappedMemory(size, address)
        array = np.frombuffer(base.data, np.uint8).view(HostArray)
        array.holder = base
        self.memory[address] = array
        return array

    def memcpy_htod_async(self, address: int, array: np.ndarray, stream: Any) -> None:
        self.must_be_current()
        self.memory[address][: array.nbytes] = array.view(np.uint8)

    def memcpy_dtoh_async(self, array: np.ndarray, address: int, stream: Any) -> None:
        self.must_be_current()
        array.view(np.uint8)[:] = self.memory[address][: array.nbytes]

    def view(self, address: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Device memory from an address inside some allocation."""
        start = max(base for base in self.memory if base <= address)
        nbytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
        return self.memory[start][address - start : address - start + nbytes].view(dtype).reshape(shape)


class MappedMemory:
    """Page-locked memory that the device sees at an address."""

    def __init__(self, size: int, address: int) -> None:
        self.data, self.address = bytearray(size), address

    def get_device_pointer(self) -> int:
        return self.address


class HostArray(np.ndarray):
    """An array whose ``base`` is the page-locked allocation, as pycuda's are."""

    holder: Any = None

    @property
    def base(self) -> Any:  # type: ignore[override]
        return self.holder


def fake_tensorrt(
    driver: FakeDriver, tensors: Tensors, work: Callable[..., dict[str, Any]], version: str = "10.3.0"
) -> types.ModuleType:
    """The module ``tensorrt``.

    Args:
        driver: holds the memory.
        tensors: inputs and outputs of every engine.
        work: input arrays by name -> output arrays by name.
        version: of TensorRT.
    """
    module = types.ModuleType("tensorrt")
    kinds = Enum("DataType", ["FLOAT", "HALF", "INT8", "INT32", "BOOL", "UINT8", "INT64"])
    modes = Enum("TensorIOMode", ["INPUT", "OUTPUT"])
    numpy_types = {"FLOAT": np.float32, "INT32": np.int32, "UINT8": np.uint8, "HALF": np.float16}

    class ILogger:
        INTERNAL_ERROR, ERROR, WARNING, INFO = range(4)

        def log(self, severity: int, text: str) -> None:
            raise NotImplementedError

    class ExecutionContext:
        def __init__(self) -> None:
            self.addresses: dict[str, int] = {}

        def set_tensor_address(self, name: str, address: int) -> bool:
            self.addresses[name] = address
            return address % 256 == 0

        def execute_async_v3(self, stream: int) -> bool:
            driver.must_be_current()
            assert stream == 77
            arrays = {
                name: driver.view(self.addresses[name], shape, numpy_types[kind])
                for name, (shape, kind, _) in tensors.items()
            }
            found = work(**{name: arrays[name] for name, (_, _, is_input) in tensors.items() if is_input})
            for name, value in found.items():
                arrays[name][...] = value
            return True

    class Engine:
        num_io_tensors = len(tensors)

        def get_tensor_name(self, i: int) -> str:
            return list(tensors)[i]

        def get_tensor_shape(self, name: str) -> tuple[int, ...]:
            return tensors[name][0]

        def get_tensor_dtype(self, name: str) -> Any:
            return kinds[tensors[name][1]]

        def get_tensor_mode(self, name: str) -> Any:
            return modes.INPUT if tensors[name][2] else modes.OUTPUT

        def create_execution_context(self, settings: Any = None) -> ExecutionContext:
            if settings is not None and not settings.cache.loaded:
                driver.kernels_made += 1
                settings.cache.made += 1
            return ExecutionContext()

        def create_runtime_config(self) -> Any:  # of TensorRT-RTX
            settings = types.SimpleNamespace(cache=None, create_runtime_cache=RuntimeCache)
            settings.set_runtime_cache = lambda cache: setattr(settings, "cache", cache)
            return settings

    class RuntimeCache:
        def __init__(self) -> None:
            self.made, self.loaded = 0, b""

        def deserialize(self, content: bytes) -> bool:
            driver.must_be_current()
            self.loaded = content if content.startswith(_kernels().encode()) else b""
            return bool(self.loaded)

        def serialize(self) -> bytes:
            return self.loaded or f"{_kernels()} {self.made}".encode()

    def _kernels() -> str:
        return "kernels " + ".".join(map(str, driver.capability))

    class Runtime:
        def __init__(self, log: ILogger) -> None:
            self.log = log

        def deserialize_cuda_engine(self, content: bytes) -> Engine | None:
            if content.startswith(b"engine"):
                return Engine()
            self.log.log(ILogger.ERROR, "The engine plan file is not compatible with this version of TensorRT")
            return None

    module.__version__ = version  # type: ignore[attr-defined]
    module.ILogger, module.Runtime, module.TensorIOMode = ILogger, Runtime, modes  # type: ignore[attr-defined]
    return module


def install(monkeypatch: Any, driver: FakeDriver, tensors: Tensors, work: Callable[..., dict[str, Any]]) -> FakeDriver:
    """Put pycuda and tensorrt on simulated memory in place of the real ones, for one test."""
    package = types.ModuleType("pycuda")
    package.driver = driver  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pycuda", package)
    monkeypatch.setitem(sys.modules, "pycuda.driver", driver)
    monkeypatch.setitem(sys.modules, "tensorrt", fake_tensorrt(driver, tensors, work))
    return driver
