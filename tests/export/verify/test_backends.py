"""Backends that are and are not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptedge.artifacts.bundle import open_bundle
from ptedge.errors import BackendError
from ptedge.export.verify.backends import try_backends


def test_try_backends__absent_ones_say_why_and_asked_ones_raise(bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.backends.ort.cuda_device_count", lambda: 0)
    opened = open_bundle(bundle)
    found = {tried.name: tried.reason for tried in try_backends(opened, None)}
    assert list(found) == ["onnxruntime cpu", "onnxruntime cuda", "tensorrt"]
    assert found["onnxruntime cpu"] == ""
    assert found["onnxruntime cuda"]
    assert "ptedge build" in found["tensorrt"]
    assert [tried.backend for tried in try_backends(opened, ("cpu",))] == ["cpu"]
    with pytest.raises(BackendError, match=r"tensorrt was asked for: .*holds no TensorRT engine"):
        list(try_backends(opened, ("tensorrt",)))
