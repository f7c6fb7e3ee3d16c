"""Run the builder in a process of its own, tell how far it is, and explain how it ended."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ptedge.errors import BackendError


class GraphRefusedError(BackendError):
    """TensorRT cannot make an engine of this graph; of another it may."""


def run_worker(job: dict[str, Any], tell: Callable[[str], None], command: list[str] | None = None) -> dict[str, Any]:
    """Run the builder in its own process and wait.

    Args:
        job: of :func:`ptedge.export.engine.worker.main`.
        tell: takes lines of progress.
        command: program that takes the job's file; the worker by default.

    Returns:
        What the worker says it did.

    Raises:
        GraphRefusedError: TensorRT does not take the graph, or the builder crashed over it.
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
        raise (GraphRefusedError if last.get("refused") else BackendError)(str(last["error"]))
    if status == -signal.SIGKILL:
        raise BackendError(
            f"the builder was killed after {time.monotonic() - started:.0f} s, most likely because memory ran out. "
            "Close other programs, add swap, lower --workspace or --optimization-level, or export a smaller --size"
        )
    reason = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
    raise (GraphRefusedError if status < 0 else BackendError)(
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
