"""What doctor finds out by use: a tiny model is run, a bundle is opened. What only asks is in ``ptedge.machine``."""

from __future__ import annotations

import tempfile
from pathlib import Path

from ptedge.errors import PtedgeError
from ptedge.machine.driver import Driver, cuda_device_count
from ptedge.machine.packages import Check, version_of
from ptedge.machine.tensorrt_checks import tensorrt_version

# An ONNX model of one Identity node, float x [1] -> y [1], opset 13: opening it tells what really runs on this machine.
PROBE_MODEL = (
    b'\x08\x08\x12\x00:7\n\x10\n\x01x\x12\x01y"\x08Identity\x12\x01gZ\x0f\n\x01x\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01'
    b"b\x0f\n\x01y\x12\n\n\x08\x08\x01\x12\x04\n\x02\x08\x01B\x04\n\x00\x10\r"
)


def check_onnxruntime(on_jetson: bool) -> Check:
    """What ONNX Runtime really runs a model on, found by opening a tiny one.

    Args:
        on_jetson: this is a Jetson.
    """
    name, plain = "ONNX Runtime", "pip install onnxruntime"
    both = [d for d in ("onnxruntime", "onnxruntime-gpu") if version_of(d)]
    if len(both) == 2:  # they share a folder: the one installed last wins, in part
        fix = "pip uninstall -y onnxruntime onnxruntime-gpu && pip install onnxruntime-gpu"
        return Check(name, "problem", "onnxruntime and onnxruntime-gpu are both installed and spoil each other", fix)
    try:
        import onnxruntime
    except (ImportError, OSError) as error:
        return Check(name, "problem", f"cannot be loaded: {error}", plain)
    try:
        from ptedge.backends.ort import OrtRunner
    except ImportError as error:
        return Check(name, "problem", f"{onnxruntime.__version__}, but {error.name} is missing (see its line)")
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "probe.onnx"
        model.write_bytes(PROBE_MODEL)
        try:
            with OrtRunner(model, "auto", threads=1) as runner:
                backend, reason = runner.backend, runner.reason
        except PtedgeError as error:
            return Check(name, "problem", f"{onnxruntime.__version__} cannot run a model: {error}", plain)
    detail = f"{onnxruntime.__version__}, runs on {backend} ({reason})"
    if backend == "cuda" or cuda_device_count() == 0:
        return Check(name, "ok", detail)
    if on_jetson:
        detail += "; the command is for JetPack 6"
        fix = "pip install onnxruntime-gpu from the package index NVIDIA names for this JetPack"
    elif "onnxruntime-gpu" in both:
        fix = 'pip install "onnxruntime-gpu[cuda,cudnn]"'
    else:
        fix = 'pip uninstall -y onnxruntime && pip install "onnxruntime-gpu[cuda,cudnn]"'
    return Check(name, "problem", detail, fix)


def check_engines(bundle: Path, driver: Driver) -> list[Check]:
    """Whether the engines of a bundle fit this machine.

    Args:
        bundle: folder.
        driver: its first GPU is what they must fit.

    Raises:
        ArtifactError: the bundle is broken.
    """
    from ptedge.artifacts.bundle import open_bundle  # not at the head: doctor must come up where NumPy is missing
    from ptedge.artifacts.engine_file import Platform, differences

    opened = open_bundle(bundle)
    records, folder = opened.manifest.engines, opened.model_path.parent
    build = f"ptedge build {folder}"
    version = tensorrt_version()
    if not records:
        useful = bool(driver.gpus and version)
        return [Check("engines", "missing" if useful else "info", "the bundle holds none", build if useful else "")]
    if not driver.gpus or version is None:
        lack = "no GPU answers" if not driver.gpus else "TensorRT is not installed"
        made = "; ".join(f"{r.file} is for TensorRT {r.tensorrt} on {r.gpu}" for r in records)
        return [Check("engines", "problem", f"{lack}: {made}. Run with --backend cpu, or repair the lines above")]
    cuda = f"{driver.cuda[0]}.{driver.cuda[1]}" if driver.cuda else ""
    here = Platform(version, cuda, driver.gpus[0].name, driver.gpus[0].compute_capability)
    checks = []
    for record in records:
        found = differences(record, here, opened.model_hash)
        if not (folder / record.file).is_file():
            found.append("the file is missing")
        detail = f"{record.file}: {', '.join(found) or 'fits this machine'}"
        checks.append(Check("engine", "problem" if found else "ok", detail, build if found else ""))
    return checks
