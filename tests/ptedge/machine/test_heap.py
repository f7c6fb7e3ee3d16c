"""What glibc is told of the heap, in processes of their own: it cannot be taken back."""

from __future__ import annotations

import subprocess
import sys

import pytest

LARGE = """
import contextlib, resource, sys
import psutil
from ptedge.machine import heap
def fetched(): return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
with heap.keeping_freed_memory() if sys.argv[1] == "keep" else contextlib.nullcontext():
    bytearray(b"x") * (100 << 20)
    before = fetched()
    for _ in range(5):
        bytearray(b"x") * (100 << 20)
    print(fetched() - before)
print(psutil.Process().memory_info().rss >> 20)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mallopt is glibc's")
def test_keeping_freed_memory__large_blocks_are_used_again_and_go_back_at_the_end() -> None:
    def run(how: str) -> tuple[int, int]:
        said = subprocess.run([sys.executable, "-c", LARGE, how], capture_output=True, text=True, check=True).stdout
        faults, megabytes = said.split()
        return int(faults), int(megabytes)

    (kept, held), (given_back, _) = run("keep"), run("usual")
    assert kept < 0.1 * given_back
    assert held < 100  # of the 100 MB that were kept inside
