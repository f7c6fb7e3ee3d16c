from __future__ import annotations

import pytest
from pretend import forbid_import, pretend_installed

from ptedge.commands.onnxruntime_check import PROBE_MODEL, check_onnxruntime


def test_probe_model__is_valid_onnx() -> None:
    import onnx

    model = onnx.load_from_string(PROBE_MODEL)
    onnx.checker.check_model(model)
    assert [node.op_type for node in model.graph.node] == ["Identity"]


def test_check_onnxruntime__absent(monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_import(monkeypatch, "onnxruntime", "No module named 'onnxruntime'")
    got = check_onnxruntime(0, on_jetson=False)
    assert (got.status, got.fix) == ("problem", "pip install onnxruntime")


def test_check_onnxruntime__both_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    pretend_installed(monkeypatch, {"onnxruntime": "1.20", "onnxruntime-gpu": "1.20"})
    got = check_onnxruntime(0, on_jetson=False)
    assert got.status == "problem"
    assert got.fix.endswith("pip install onnxruntime-gpu")


@pytest.mark.parametrize(
    ("package", "on_jetson", "fix"),
    [
        ("onnxruntime-gpu", False, 'pip install "onnxruntime-gpu[cuda,cudnn]"'),
        ("onnxruntime", False, 'pip uninstall -y onnxruntime && pip install "onnxruntime-gpu[cuda,cudnn]"'),
        (
            "onnxruntime",
            True,
            "pip install onnxruntime-gpu from the package index NVIDIA names for this JetPack",
        ),
    ],
)
def test_check_onnxruntime__gpu_that_it_does_not_use(
    monkeypatch: pytest.MonkeyPatch,
    package: str,
    on_jetson: bool,
    fix: str,
) -> None:
    monkeypatch.setattr("ptedge.backends.ort.cuda_device_count", lambda: 0)  # so the probe runs on the CPU
    pretend_installed(monkeypatch, {package: "1.20"})
    got = check_onnxruntime(1, on_jetson)
    assert (got.status, got.fix) == ("problem", fix)
