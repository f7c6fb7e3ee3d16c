"""Time and memory of ``ptedge inspect`` on hostile files: ``python tests/bench/inspect_hostile.py [--strict]``.

Each file is inspected in a process of its own, with a limit of 4 GB and 30 seconds. ``--strict`` fails beyond 2 seconds
or 500 MB, or at anything but an answer or one sentence. ``--package FOLDER`` takes ptedge from there, to compare.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
# in a process of its own: torch, which some are made with, would count as memory of every child
MAKE = f"""import sys, ptedge, pathlib
sys.path.append({str(TESTS)!r})
from hostile_files import make_all
make_all(pathlib.Path(sys.argv[1]))"""
MOST_SECONDS, MOST_MB = 2.0, 500
PROGRAM = """import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
from ptedge.cli import main
sys.argv[0] = "ptedge"
main()"""


def inspect(path: Path, package: str | None) -> tuple[float, float, float, int | str, str]:
    """Seconds, those of the processor, peak in MB, exit status or the signal's name, and the last line it said."""

    start = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, "inspect", str(path)],
            stdout=said,
            stderr=said,
            cwd=path.parent,  # not where a folder is called ptedge
            env={**os.environ, "PYTHONPATH": package} if package else None,
        )
        status: int | str = "over 30 s"
        while time.perf_counter() - start < 30:
            done, code, usage = os.wait4(child.pid, os.WNOHANG)
            if done:
                status = os.waitstatus_to_exitcode(code)
                break
            time.sleep(0.005)
        else:
            child.kill()
            _, _, usage = os.wait4(child.pid, 0)
        child.returncode = 0
        took = time.perf_counter() - start
        said.seek(0)
        text = said.read().decode("utf-8", "replace").strip()
    if "Traceback" in text:
        status = "traceback"
    return took, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, status, text.splitlines()[-1] if text else ""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--package", help="Folder with another ptedge.")
    options = parser.parse_args()
    bad = []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", MAKE, folder], check=True)
        paths = sorted(Path(folder).glob("*/*"))
        for path in [path for path in paths if path.name == path.parent.name]:
            took, cpu, peak, status, text = inspect(path, options.package)
            fine = status in (0, 1) and took <= MOST_SECONDS and peak <= MOST_MB
            bad += [] if fine else [path.name]
            text = text.replace(f"{path.parent}/", "")[:100]
            print(f"{path.name:22} {took:6.2f} s {cpu:6.2f} s cpu {peak:6.0f} MB  {status!s:10} {text}", flush=True)
    print(f"{len(bad)} files beyond {MOST_SECONDS:g} s, {MOST_MB} MB or one sentence: {', '.join(bad)}")
    sys.exit(bool(options.strict and bad))


if __name__ == "__main__":
    main()
