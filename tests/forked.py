"""Work in a fork that is killed at a chosen moment: all is imported once, so many can be begun and killed."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import psutil

LONGEST = 120.0  # seconds for an attempt that is not to be killed


def run_killed(
    work: Callable[[], object], log: Path, after: float | None, *, longest: float = LONGEST, children: bool = False
) -> int:
    """Run something in a fork, and kill that (SIGKILL) where it has not ended by itself.

    Args:
        work: the work; SystemExit gives its status, any other exception 1.
        log: takes what it says on stderr; what it says on stdout is lost.
        after: seconds until the kill; ``None`` for ``longest``.
        longest: see ``after``.
        children: kill its own processes with it, as a lost power would.

    Returns:
        Exit status, negative for the signal.
    """
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            work()
            status = 0
        except SystemExit as stop:
            status = stop.code if isinstance(stop.code, int) else 1
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    end = time.monotonic() + (longest if after is None else after)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() >= end:
            below = psutil.Process(pid).children(recursive=True) if children else []
            os.kill(pid, signal.SIGKILL)
            for child in below:
                child.kill()
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        time.sleep(0.001)


def command(*words: object) -> Callable[[], None]:
    """``ptedge WORDS`` as work for :func:`run_killed`."""

    def work() -> None:
        sys.argv = ["ptedge", *map(str, words)]
        from ptedge.cli import main

        main()

    return work
