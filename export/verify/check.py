"""One line of the report of ``ptedge verify``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

EXTRA_PACKAGES = ("torch", "torchvision", "timm", "onnx")  # of the export extra; no device needs them


@dataclass(frozen=True)
class BundleCheck:
    """What was checked, whether it holds, and the numbers.

    Attributes:
        name: what was checked, for the reader.
        passed: it holds, or was not judged.
        detail: numbers, or why it was not judged.
        judged: false for what is not there, and for numbers that are told only.
        backend: ``cpu``, ``cuda`` or ``tensorrt`` whose answers were checked; empty for the bundle itself.
        compared: detections, of both sides, that were held against each other; ``None`` for what compares no answers.
    """

    name: str
    passed: bool
    detail: str
    judged: bool = True
    backend: str = ""
    compared: int | None = None


def failed(checks: Sequence[BundleCheck]) -> list[BundleCheck]:
    """Those that do not hold."""
    return [check for check in checks if not check.passed]


def without_package(name: str, error: ModuleNotFoundError, backend: str = "") -> BundleCheck:
    """What cannot be checked because a package of the ``export`` extra is not installed here.

    Args:
        name: of the check.
        error: of the import.
        backend: whose answers were to be checked.

    Raises:
        ModuleNotFoundError: the same, when it is about no such package.
    """
    package = (error.name or "").partition(".")[0]
    if package not in EXTRA_PACKAGES:
        raise error
    detail = f'not checked: it takes {package}, which is not installed (pip install "ptedge[export]")'
    return BundleCheck(name, True, detail, judged=False, backend=backend)
