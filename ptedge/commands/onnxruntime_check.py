"""Whether ONNX Runtime runs models here, and on what; and the command that repairs it."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

from ptedge.errors import PtedgeError
from ptedge.machine.finding import Finding
from ptedge.machine.packages import version_of

# An ONNX model of one Identity node, float x [1] -> y [1], opset 13: opening it tells what really runs on this machine.
PROBE_MODEL = (
    b'\x08\x08\x12\x00:7\n\x10\n\x01x\x12\x01y"\x08Identity\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01'
    b"b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01B\x04\n\x00\x10\r"
)

INSTALL = "pip install onnxruntime"
_finding = partial(Finding, "onnxruntime", "ONNX Runtime")


def check_onnxruntime(gpus: int, on_jetson: bool) -> Finding:
    """What ONNX Runtime really runs a model on, found by opening a tiny one.

    Args:
        gpus: how many answer.
        on_jetson: this is a Jetson.
    """
    both = [d for d in ("onnxruntime", "onnxruntime-gpu") if version_of(d)]
    if len(both) == 2:  # they share a folder: the one installed last wins, in part
        fix = "pip uninstall -y onnxruntime onnxruntime-gpu && pip install onnxruntime-gpu"
        detail = "onnxruntime and onnxruntime-gpu are both installed and spoil each other"
        return _finding("problem", detail, fix)
    try:
        import onnxruntime
    except (ImportError, OSError) as error:
        return _finding("problem", f"cannot be loaded: {error}", INSTALL)
    version = onnxruntime.__version__
    try:
        backend, reason = _run_probe()
    except ImportError as error:  # of NumPy, which has a finding of its own
        return _finding("problem", f"{version}, but {error.name} is missing (see its line)")
    except PtedgeError as error:
        return _finding("problem", f"{version} cannot run a model: {error}", INSTALL)
    detail = f"{version}, runs on {backend} ({reason})"
    if backend == "cuda" or gpus == 0:
        return _finding("ok", detail)
    if on_jetson:
        detail += "; the command is for JetPack 6"
        fix = "pip install onnxruntime-gpu from the package index NVIDIA names for this JetPack"
    elif "onnxruntime-gpu" in both:
        fix = 'pip install "onnxruntime-gpu[cuda,cudnn]"'
    else:
        fix = 'pip uninstall -y onnxruntime && pip install "onnxruntime-gpu[cuda,cudnn]"'
    return _finding("problem", detail, fix)


def _run_probe() -> tuple[str, str]:
    """What the tiny model runs on, and why.

    Raises:
        ImportError: NumPy cannot be loaded.
        PtedgeError: the model cannot be run.
    """
    from ptedge.backends.ort import OrtRunner

    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "probe.onnx"
        model.write_bytes(PROBE_MODEL)
        with OrtRunner(model, "auto", threads=1) as runner:
            return runner.backend, runner.reason
