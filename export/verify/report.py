"""The checks of a bundle as a table, as JSON, and as one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .check import BundleCheck, failed


def to_lines(checks: Sequence[BundleCheck]) -> list[str]:
    """A line a check: what came of it, its name, its numbers."""
    width = max(len(check.name) for check in checks)
    return [f"{_mark(check)}  {check.name:{width}}  {check.detail}" for check in checks]


def _mark(check: BundleCheck) -> str:
    if not check.passed:
        return "FAIL"
    return "ok  " if check.judged else "--  "


def to_document(checks: Sequence[BundleCheck], bundle: Path, checkpoint: Path | None, limits: str) -> dict[str, Any]:
    """For JSON.

    Args:
        checks: of the bundle.
        bundle: as the user named it.
        checkpoint: what it was compared with; ``None`` for nothing.
        limits: what was allowed, in words.
    """
    return {
        "bundle": str(bundle),
        "against": str(checkpoint) if checkpoint else None,
        "passed": not failed(checks),
        "limits": limits,
        "checks": [{"check": c.name, "passed": c.passed, "judged": c.judged, "detail": c.detail} for c in checks],
    }


def failure(checks: Sequence[BundleCheck], bundle: Path, checkpoint: Path | None) -> str:
    """What failed and how to repair it, in a sentence or two; at least one check has failed.

    Args:
        checks: of the bundle.
        bundle: as the user named it.
        checkpoint: what it was compared with; ``None`` for nothing.
    """
    bad = failed(checks)
    first = bad[0]
    if first.backend == "tensorrt":
        repair = f"Build it again: ptedge build {bundle} --force; if that does not help, export in a higher precision"
    else:
        repair = f"Write it again: ptedge export {checkpoint or 'CHECKPOINT'} --out {bundle}"
    return f"{bundle} fails {len(bad)} of {len(checks)} checks, first: {first.name} ({first.detail}). {repair}"
