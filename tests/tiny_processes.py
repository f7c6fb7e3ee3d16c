"""Real processes of ``ptedge train`` and ``ptedge adapt`` with the tiny detector: several that train together, or one
that is killed. PyTorch is imported once, by a program that then forks, so a process starts in a fraction of a second.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Job:
    """One run of ``ptedge``.

    Attributes:
        words: of the command line.
        processes: that train together.
        sends: signal that they get, or one of them; 0 for none.
        to: number of the process that gets it; -1 for all.
        when: file with content that must be there first; empty for none.
        later: after so much more time, as a share of what the first job took.
    """

    words: list[str]
    processes: int = 1
    sends: int = 0
    to: int = -1
    when: str = ""
    later: float = 0.0


def run(*jobs: Job, timeout: float = 300) -> list[dict[str, Any]]:
    """Do jobs one after another in a fresh program.

    Returns:
        For each job: ``status`` (exit status of each process; negative for a signal), ``err`` (what each said on
        stderr) and ``seconds``.
    """
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), json.dumps([asdict(job) for job in jobs])],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    answer: list[dict[str, Any]] = json.loads(done.stdout)
    return answer


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _child(words: list[str], rank: int, count: int, port: int, err: int) -> None:
    os.dup2(err, 2)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if count > 1:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(count), LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(count))
        os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), GLOO_SOCKET_IFNAME="lo")
    sys.argv = ["ptedge", *words]
    from ptedge.cli import main

    status = 1
    try:
        main()
        status = 0
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _has_content(path: str) -> bool:
    return os.path.exists(path) and os.path.getsize(path) > 0


def _do(job: dict[str, Any], usual: float) -> dict[str, Any]:
    count, port, begin = job["processes"], free_port(), time.monotonic()
    pids, files = [], []
    for rank in range(count):
        file = os.memfd_create("stderr")
        pid = os.fork()
        if pid == 0:
            _child(job["words"], rank, count, port, file)
        pids.append(pid)
        files.append(file)
    if job["sends"]:
        while job["when"] and not _has_content(job["when"]) and time.monotonic() < begin + 120:
            time.sleep(0.005)
        time.sleep(job["later"] * usual)
        for pid in pids if job["to"] < 0 else [pids[job["to"]]]:
            os.kill(pid, job["sends"])
    status = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    err = [os.pread(file, 1 << 20, 0).decode() for file in files]
    for file in files:
        os.close(file)
    return {"status": status, "err": err, "seconds": time.monotonic() - begin}


def _serve() -> None:
    import ptedge.cli  # before this folder is searched: it has one of that name

    sys.path.append(str(Path(__file__).parent))
    import pytest
    import torch
    import torchvision  # noqa: F401
    from tiny_detector import use_tiny_detector

    import ptedge.training.adapt
    import ptedge.training.update  # noqa: F401

    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        use_tiny_detector(patch)
        answers: list[dict[str, Any]] = []
        for job in json.loads(sys.argv[1]):
            answers.append(_do(job, answers[0]["seconds"] if answers else 0.0))
        print(json.dumps(answers))


if __name__ == "__main__":
    here = str(Path(__file__).parent)
    sys.path[:] = [path for path in sys.path if path != here]
    _serve()
