"""Ctrl-C, SIGTERM and SIGKILL of a real run with worker processes, sent as a terminal or a service manager does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from training_shell import ADAPT_FILES, FILES, LOOP, MODEL, Shell, lines, summary

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="process lists are read from /proc")

# ptedge first: beside these tests lies a folder of its name
PROGRAM = """
import sys
from ptedge.cli import main
sys.path.append(sys.argv.pop(1))
import pytest
from tiny_detector import use_tiny_detector
with pytest.MonkeyPatch.context() as patch:
    use_tiny_detector(patch)
    main()
"""


def start(tmp_path: Path, *words: Any, sets: list[str]) -> subprocess.Popen[str]:
    """``ptedge`` with the tiny detector, in a process group of its own."""
    options = [word for value in [*sets, "workers=2", "optim.steps=100000"] for word in ("--set", value)]
    tests = str(Path(__file__).resolve().parents[1])
    with open(tmp_path / "stderr", "w", encoding="utf-8") as err:
        return subprocess.Popen(
            [sys.executable, "-c", PROGRAM, tests, *map(str, words), *options],
            env={**os.environ, "OMP_NUM_THREADS": "1"},
            stderr=err,
            text=True,
            start_new_session=True,
        )


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[str], seconds: float = 600) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end and process.poll() is None, "it did not come to that"
        time.sleep(0.05)


def children(process: subprocess.Popen[str]) -> list[int]:
    text = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(word) for word in text.split()]


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def interrupt(process: subprocess.Popen[str], run: Path, number: signal.Signals) -> list[int]:
    """Send a signal to the whole group after the first logged step; returns the workers."""
    try:
        wait_for(lambda: (run / "metrics.jsonl").is_file() and len(lines(run)) > 0, process)
        workers = children(process)
        os.killpg(process.pid, number) if number != signal.SIGKILL else process.kill()
        process.wait(300)
        return workers
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_train__ctrl_c_with_workers_writes_the_run(source_data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    process = start(tmp_path, "train", source_data, "--out", run, sets=[*LOOP, *MODEL])
    workers = interrupt(process, run, signal.SIGINT)
    err = (tmp_path / "stderr").read_text("utf-8")
    assert process.returncode == 130, err
    assert "Traceback" not in err and "--resume" in err
    assert {path.name for path in run.iterdir()} == FILES
    assert summary(run)["interrupted"] is True and summary(run)["last"]["step"] >= 1
    assert len(workers) >= 2 and not any(alive(worker) for worker in workers)


def test_adapt__sigterm_with_workers_writes_the_run(
    ptedge: Shell, pretrained: Path, source_data: Path, target_frames: Path, tmp_path: Path
) -> None:
    run, words = tmp_path / "run", ["--target", target_frames, "--source", source_data]
    process = start(tmp_path, "adapt", pretrained, *words, "--out", run, sets=LOOP)
    workers = interrupt(process, run, signal.SIGTERM)
    err = (tmp_path / "stderr").read_text("utf-8")
    assert process.returncode == 143, err
    assert "Traceback" not in err
    assert {path.name for path in run.iterdir()} == ADAPT_FILES
    assert len(workers) >= 4 and not any(alive(worker) for worker in workers)


def test_train__workers_do_not_outlive_a_killed_run(source_data: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    workers = interrupt(start(tmp_path, "train", source_data, "--out", run, sets=[*LOOP, *MODEL]), run, signal.SIGKILL)
    end = time.monotonic() + 60  # they look for their parent every few seconds
    while any(alive(worker) for worker in workers):
        assert time.monotonic() < end
        time.sleep(0.1)
    assert len(workers) >= 2
