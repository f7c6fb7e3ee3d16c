"""AP50 on labelled data, for reports only: nothing in training reads what this returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ptedge.checkpoint import CheckpointPredictor
from ptedge.commands.evaluate import evaluate_model
from ptedge.data import open_dataset
from ptedge.data.locate import require_images

from .run_folder import RunFolder
from .trainer import LoopResult


def check_val(val: Path | None, class_names: tuple[str, ...]) -> None:
    """Refuse a bad ``--val`` before the first step rather than after hours.

    Raises:
        InputError: unreadable labels or missing image files.
        ClassMismatchError: other classes than ``class_names``.
    """
    if val is not None:
        require_images(open_dataset(val, class_names=class_names))


def report(folder: RunFolder, result: LoopResult, summary: dict[str, Any], val: Path | None) -> None:
    """Write summary.json, and once more with ``val`` when there is something to validate on.

    Args:
        folder: of the run.
        result: how its loop ended.
        summary: what the command reports.
        val: DATA; an interrupted run is not validated.
    """
    summary = {**summary, "steps": result.step, "interrupted": result.interrupted}
    summary.update(skipped_images=result.skipped, last=result.last)
    if result.idle:
        before = folder.read_summary()
        if before.get("steps") == result.step:
            summary.update({key: before[key] for key in ("seconds", "last", "val") if key in before})
    folder.write_summary(summary)
    if val is not None and not result.interrupted:
        folder.write_summary({**summary, "val": validate(folder.model, val)})


def validate(checkpoint: Path, val: Path) -> dict[str, Any]:
    """Evaluate a checkpoint file.

    Args:
        checkpoint: ``model.pt``.
        val: DATA.

    Returns:
        As ``ptedge eval --json`` prints.
    """
    predictor = CheckpointPredictor(checkpoint)
    return evaluate_model(predictor, open_dataset(val, class_names=predictor.class_names)).to_json()
