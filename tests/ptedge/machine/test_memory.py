from __future__ import annotations

import sys
from types import SimpleNamespace

import psutil
import pytest

from ptedge.machine.memory import main_memory, peak_memory, peak_of, resident_memory


def test_main_memory__in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=2048 << 10, total=8000 << 10))
    assert main_memory() == (2048 << 10, 8000 << 10)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not say the peak this way")
def test_peak_memory__at_least_what_is_held_now() -> None:
    held = bytearray(32 << 20)
    now, peak = resident_memory(), peak_memory()
    assert peak is not None and len(held) < now
    # the kernel counts both in pages, and batches the counting
    assert peak > 0.95 * now


@pytest.mark.parametrize(("system", "expected"), [("linux", 512 << 10), ("darwin", 512)])
def test_peak_of__unit_of_the_system(monkeypatch: pytest.MonkeyPatch, system: str, expected: int) -> None:
    monkeypatch.setattr(sys, "platform", system)
    assert peak_of(SimpleNamespace(ru_maxrss=512)) == expected  # type: ignore[arg-type]
