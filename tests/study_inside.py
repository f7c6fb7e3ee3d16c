"""``ptedge study`` with all its commands inside this process, for tests."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ptedge import cli as ptedge_cli
from ptedge.training.study import score
from ptedge.training.study.process import Processes
from ptedge.training.study.timing import graphs, untrained


def main(words: Sequence[Any], function: Any = ptedge_cli.main) -> tuple[int, str, str]:
    """A command inside this process: exit status, stdout, stderr."""
    before, sys.argv = sys.argv, ["ptedge", *map(str, words)]
    out, err, status = io.StringIO(), io.StringIO(), 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            function()
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        err.write(f"{stop.code}\n" if isinstance(stop.code, str) else "")
    finally:
        sys.argv = before
    return status, out.getvalue(), err.getvalue()


def run_inside(self: Processes, words: Sequence[str], log: Path) -> tuple[int, str, float]:
    modules = {module.__name__: module.main for module in (score, graphs, untrained)}
    function = modules.get(words[1], ptedge_cli.main)
    status, out, err = main(words[2:], function)
    log.parent.mkdir(parents=True, exist_ok=True)
    with open(log, "a", encoding="utf-8") as file:
        file.write(err)
    return status, out, 1.0
