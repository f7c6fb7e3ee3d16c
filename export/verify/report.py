"""The checks of a bundle as a table, as JSON, and as one sentence that says what to do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ptedge.artifacts.engine_file import PRODUCTS, build_command

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
    nothing = nothing_compared(checks, bundle)
    return {
        "bundle": str(bundle),
        "against": str(checkpoint) if checkpoint else None,
        "passed": not failed(checks) and nothing is None,
        "compared_detections": compared_detections(checks),
        "compared_nothing": nothing,
        "limits": limits,
        "checks": [{"check": c.name, "passed": c.passed, "judged": c.judged, "detail": c.detail} for c in checks],
    }


def compared_detections(checks: Sequence[BundleCheck]) -> int:
    """Detections, of both sides, in all comparisons that were judged."""
    return sum(check.compared or 0 for check in checks if check.judged)


def nothing_compared(checks: Sequence[BundleCheck], bundle: Path) -> str | None:
    """Why the checks compared no detection and what to do about it, in words; ``None`` when they compared some.

    Args:
        checks: of the bundle.
        bundle: as the user named it.
    """
    comparisons = [check for check in checks if check.compared is not None]
    if compared_detections(checks) or failed(comparisons):
        return None
    if not comparisons:
        return f"{bundle}: nothing was compared, as {_one_alone(checks, bundle)}"
    if not any(check.judged for check in comparisons):
        why = "an int8 bundle is judged on frames, and none were given"
    else:
        why = "no image gave a detection that counts, on either side"
    return f"{bundle}: nothing was compared, as {why}. Give frames that show objects: --frames FRAMES"


def _one_alone(checks: Sequence[BundleCheck], bundle: Path) -> str:
    """What there was, which is too little to compare, and what would add to it."""
    tried = {check.backend for check in checks if check.backend}
    ran = sorted({check.backend for check in checks if check.backend and check.judged})
    if not ran:
        return "no backend runs here. The lines above say why"
    had = f"only one backend ran ({', '.join(ran)}), and no checkpoint"
    if "cpu" not in ran:
        return f"{had}. Let the CPU answer as well: ptedge verify {bundle} --backend {','.join(['cpu', *ran])}"
    engine = f"Build an engine for this device (ptedge build {bundle})"
    if not tried & set(PRODUCTS):
        engine = "Leave --backend out, which takes what is there"
    return (
        f"{had}. {engine}, or compare with the checkpoint where torch is installed: "
        f"ptedge verify {bundle} --against CHECKPOINT"
    )


def failure(checks: Sequence[BundleCheck], bundle: Path, checkpoint: Path | None) -> str:
    """What failed and how to repair it, in a sentence or two; at least one check has failed.

    Args:
        checks: of the bundle.
        bundle: as the user named it.
        checkpoint: what it was compared with; ``None`` for nothing.
    """
    bad = failed(checks)
    first = bad[0]
    if first.backend in PRODUCTS:
        build = build_command(bundle, first.backend)
        repair = f"Build it again: {build} --force; if that does not help, export in a higher precision"
    else:
        repair = f"Write it again: ptedge export {checkpoint or 'CHECKPOINT'} --out {bundle}"
    return f"{bundle} fails {len(bad)} of {len(checks)} checks, first: {first.name} ({first.detail}). {repair}"
