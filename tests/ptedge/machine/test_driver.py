from __future__ import annotations

import ctypes

import pytest

from ptedge.machine import driver
from ptedge.machine.driver import Driver, ask_driver, cuda_device_count


def test_ask_driver__never_raises() -> None:
    found = ask_driver()
    assert found.cuda is None or found.cuda[0] >= 9


def test_ask_driver__without_a_library(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> ctypes.CDLL:
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr(driver, "load_driver", absent)
    assert ask_driver() == Driver(None, (), 0)
    assert cuda_device_count() == 0
