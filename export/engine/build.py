"""``ptedge build``: a TensorRT engine from a bundle, on the device that will run it, entered into the manifest."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ptedge.artifacts.bundle import MANIFEST_NAME, Bundle, open_bundle
from ptedge.artifacts.engine_file import EngineRecord, Platform, add_record, engine_name, same_build
from ptedge.backends.cuda import CudaDevice
from ptedge.backends.trt import load_tensorrt
from ptedge.errors import BackendError, InputError
from ptedge.files import make_output_folder, sha256_file
from ptedge.machine.memory import main_memory

from .worker import BuildOptions

BUILDER_MB = 2500  # host memory of the builder itself: libraries, kernels of all kinds, timing (measured, TensorRT 8.5)
MODEL_COPIES = 4  # of the weights that are held at once: file, parsed, packed, serialised


def build_engine(
    path: Path,
    options: BuildOptions,
    *,
    timing_cache: Path | None = None,
    force: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> tuple[EngineRecord, bool]:
    """Build an engine of a bundle for this device.

    Args:
        path: bundle folder.
        options: what the builder is told.
        timing_cache: file with measured kernel times; ``None`` for none.
        force: build even if nothing changed.
        tell: takes lines of progress.

    Returns:
        The record that stands in the manifest, and whether it was built now (else it was there already).

    Raises:
        InputError: ``path`` is no bundle folder, or an option does not fit the device.
        ArtifactError: broken bundle.
        BackendError: no device, TensorRT refuses, or the builder was killed.
        MissingExtraError: no TensorRT or pycuda.
        OutputError: the engine cannot be written.
    """
    bundle = open_bundle(path)
    if bundle.path == bundle.model_path:
        raise InputError(f"{path} is an ONNX file; an engine goes into a bundle folder. Give the folder")
    here, free_gpu = _look_around()
    record = _planned(bundle, here, options)
    for known in bundle.manifest.engines:
        engine = bundle.path / known.file
        if same_build(known, record) and not force and engine.is_file() and sha256_file(engine) == known.sha256:
            return known, False
    tell(f"TensorRT {here.tensorrt} on {here.gpu} (compute capability {here.compute_capability}), CUDA {here.cuda}")
    tell(memory_advice(bundle.model_path.stat().st_size, options.workspace_mb, free_gpu, main_memory().available))
    make_output_folder(bundle.path)
    temporary = bundle.path / f".{record.file}.{os.getpid()}.tmp"
    job = {
        "model": str(bundle.model_path),
        "out": str(temporary),
        "precision": record.precision,
        "timing_cache": str(timing_cache) if timing_cache is not None else None,
        "options": asdict(options),
    }
    try:
        done = run_worker(job, tell)
        digest = sha256_file(temporary)
        os.replace(temporary, bundle.path / record.file)
    finally:
        temporary.unlink(missing_ok=True)
    record = replace(
        record,
        sha256=digest,
        built=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        seconds=float(done["seconds"]),
        memory_mb=int(done["memory_mb"]),
    )
    add_record(bundle.path / MANIFEST_NAME, record)
    return record, True


def memory_advice(model_bytes: int, workspace_mb: int, free_gpu: int, available: int) -> str:
    """What building needs, against what is there, in a sentence.

    Args:
        model_bytes: size of the ONNX file.
        workspace_mb: limit of scratch memory in MiB, 0 for none.
        free_gpu: free device memory in bytes.
        available: free main memory in bytes.
    """
    host = BUILDER_MB + MODEL_COPIES * (model_bytes >> 20)
    text = f"building needs about {host} MB of memory"
    text += f", and up to {workspace_mb} MB of scratch memory on the GPU" if workspace_mb else ""
    text += f"; free are {available >> 20} and {free_gpu >> 20} MB"
    if available >> 20 < host or free_gpu >> 20 < workspace_mb:
        text += ". That may not be enough: close other programs, add swap, or lower --workspace"
    return text


def run_worker(job: dict[str, Any], tell: Callable[[str], None], command: list[str] | None = None) -> dict[str, Any]:
    """Run the builder in its own process and wait.

    Args:
        job: of :func:`ptedge.export.engine.worker.main`.
        tell: takes lines of progress.
        command: program that takes the job's file; the worker by default.

    Returns:
        What the worker says it did.

    Raises:
        BackendError: it failed, with its reason; or it was killed, with what to do.
    """
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "job.json"
        file.write_text(json.dumps(job), "utf-8")
        with (
            open(Path(folder) / "log", "w+b") as log,
            subprocess.Popen(
                [*(command or [sys.executable, "-m", "ptedge.export.engine.worker"]), str(file)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            ) as child,
        ):
            try:
                last = _follow(child, tell, started)
                status = child.wait()
            except BaseException:
                child.kill()
                raise
            log.seek(0)
            words = log.read().decode("utf-8", "replace").strip().splitlines()
    if "done" in last:
        return dict(last["done"])
    if "error" in last:
        raise BackendError(str(last["error"]))
    if status == -signal.SIGKILL:
        raise BackendError(
            f"the builder was killed after {time.monotonic() - started:.0f} s, most likely because memory ran out. "
            "Close other programs, add swap, lower --workspace or --optimization-level, or export a smaller --size"
        )
    reason = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    raise BackendError(
        f"the builder ended with {reason}: {words[-1] if words else 'it said nothing'}. See ptedge doctor"
    )


def _follow(child: subprocess.Popen[str], tell: Callable[[str], None], started: float) -> dict[str, Any]:
    """Pass the worker's steps on, with the time, also while it is silent; its last line."""
    last: dict[str, Any] = {}
    step = "starting"
    silent = threading.Event()

    def remind() -> None:
        while not silent.wait(15.0):
            tell(f"{time.monotonic() - started:5.0f} s  {step}, still at it")

    reminder = threading.Thread(target=remind, daemon=True)
    reminder.start()
    try:
        assert child.stdout is not None
        for line in child.stdout:
            try:
                last = dict(json.loads(line))
            except (ValueError, TypeError):
                continue  # something a library printed
            if "step" in last:
                step = str(last["step"])
                tell(f"{time.monotonic() - started:5.0f} s  {step}")
    finally:
        silent.set()
        reminder.join()
    return last


def _look_around() -> tuple[Platform, int]:
    """This machine, and free device memory in bytes."""
    version = str(load_tensorrt().__version__)
    device = CudaDevice()
    try:
        return device.platform(version), device.free_memory()[0]
    finally:
        device.close()


def _planned(bundle: Bundle, here: Platform, options: BuildOptions) -> EngineRecord:
    return EngineRecord(
        file=engine_name(here.gpu, here.tensorrt, bundle.manifest.precision),
        sha256="",
        onnx_sha256=bundle.model_hash,
        precision=bundle.manifest.precision,
        tensorrt=here.tensorrt,
        cuda=here.cuda,
        gpu=here.gpu,
        compute_capability=here.compute_capability,
        flags=options.flags(),
        workspace_mb=options.workspace_mb,
        optimization_level=-1 if options.optimization_level is None else options.optimization_level,
    )


def default_timing_cache(folder: Path | None = None) -> Path:
    """Where measured kernel times are kept between builds: the user's cache folder.

    Args:
        folder: instead of ``$XDG_CACHE_HOME`` or ``~/.cache``.
    """
    base = folder or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "ptedge" / "tensorrt-timing.cache"
