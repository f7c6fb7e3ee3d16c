"""Commands in processes of their own: a signal to stop is passed on to them, and their end is waited for."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from ptedge.signals import finishing

LOOK_EVERY = 0.2  # seconds between looks at whether to stop


def run_command(
    command: Sequence[str], stderr: IO[Any], *, folder: Path | None = None, keep: Sequence[int] = ()
) -> tuple[int, str]:
    """Run a command to its end.

    Args:
        command: program and arguments.
        stderr: takes what it says there.
        folder: that it runs in; ``None`` for the present one.
        keep: file descriptors that it inherits, as a lock that is to be held until the last of them ends.

    Returns:
        Exit status, negative for a signal, and what it wrote to stdout.

    Raises:
        SystemExit: a signal came to this process; the command has finished its files.
        OSError: it cannot be started.
    """
    child = subprocess.Popen(
        list(command),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        encoding="utf-8",
        errors="replace",
        cwd=folder,
        pass_fds=tuple(keep),
        start_new_session=True,  # Ctrl-C reaches the caller alone, which passes it on once
    )
    passed_on = False
    with finishing(again=child.terminate) as stop:
        while True:
            if stop.event.is_set() and not passed_on:
                child.terminate()
                passed_on = True
            try:
                said, _ = child.communicate(timeout=LOOK_EVERY)
            except subprocess.TimeoutExpired:
                continue
            if stop.signal:
                raise SystemExit(stop.exit_status)
            return child.returncode, said
