"""One line of the report of ``ptedge verify``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class BundleCheck:
    """What was checked, whether it holds, and the numbers.

    Attributes:
        name: what was checked, for the reader.
        passed: it holds, or was not judged.
        detail: numbers, or why it was not judged.
        judged: false for what is not there, and for numbers that are told only.
        backend: ``cpu``, ``cuda`` or ``tensorrt`` whose answers were checked; empty for the bundle itself.
    """

    name: str
    passed: bool
    detail: str
    judged: bool = True
    backend: str = ""


def failed(checks: Sequence[BundleCheck]) -> list[BundleCheck]:
    """Those that do not hold."""
    return [check for check in checks if not check.passed]
