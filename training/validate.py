"""AP50 on labelled data, for reports only: nothing in training reads what this returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ptedge.backends.checkpoint_predictor import CheckpointPredictor
from ptedge.data import open_dataset
from ptedge.data.locate import require_images
from ptedge.machine.memory import peak_memory
from ptedge.scores.convention import CONVENTIONS, VOC
from ptedge.scores.evaluation import evaluate_model

from . import distributed
from .curves.quality import QUALITY_FILE, quality_pairs
from .loop import LoopResult
from .run_folder import RunFolder


def check_val(val: Path | None, class_names: tuple[str, ...]) -> None:
    """Refuse a bad ``--val`` before the first step rather than after hours.

    Raises:
        InputError: unreadable labels or missing image files.
        ClassMismatchError: other classes than ``class_names``.
    """
    if val is not None:
        require_images(open_dataset(val, class_names=class_names, use="score"))


def report(
    folder: RunFolder, result: LoopResult, summary: dict[str, Any], val: Path | None, convention: str = VOC.name
) -> None:
    """Write summary.json, and once more with ``val`` when there is something to validate on.

    Args:
        folder: of the run.
        result: how its loop ended.
        summary: what the command reports.
        val: DATA; an interrupted run is not validated.
        convention: of ``CONVENTIONS``.
    """
    summary = {**summary, "steps": result.step, "interrupted": result.interrupted}
    summary.update(skipped_images=result.skipped, speed=result.speed, peak_memory_mib=peak_memory_mib())
    summary.update(result.supervision)
    summary["last"] = {**result.last, **result.supervision.get("last", {"step": result.step})}
    summary.setdefault("chosen", {"step": result.step})
    if result.idle:
        before = folder.read_summary()
        if before.get("steps") == result.step:
            summary = {**before, "interrupted": result.interrupted}
    folder.write_summary(summary)
    if val is not None and not result.interrupted and distributed.is_main():
        chosen = last = validate(folder.model, val, convention, folder.path / QUALITY_FILE if folder.curves else None)
        if summary["chosen"]["step"] != summary["last"]["step"]:
            last = validate(folder.last_model, val, convention)
        for name, scores in (("chosen", chosen), ("last", last)):
            summary[name] = {**summary[name], **{key: scores[key] for key in ("AP50", "AP75", "AP")}}
        folder.write_summary({**summary, "val": chosen})
    folder.finish_curves()


def peak_memory_mib() -> dict[str, float]:
    """The most memory that this process has held so far: ``host``, and ``gpu`` where there is one."""
    peak: dict[str, float] = {}
    if (host := peak_memory()) is not None:
        peak["host"] = round(host / 2**20, 1)
    if torch.cuda.is_available():
        peak["gpu"] = round(torch.cuda.max_memory_allocated() / 2**20, 1)
    return peak


def validate(checkpoint: Path, val: Path, convention: str = VOC.name, boxes: Path | None = None) -> dict[str, Any]:
    """Evaluate a checkpoint file.

    Args:
        checkpoint: ``model.pt``.
        val: DATA.
        convention: what AP50 and AP75 mean, of ``CONVENTIONS``.
        boxes: file for IoU, score and sigma of every box, from which plots are drawn; ``None`` for none.

    Returns:
        As ``ptedge eval --json`` prints.
    """
    predictor = CheckpointPredictor(checkpoint)
    dataset = open_dataset(val, class_names=predictor.class_names, use="score")
    result = evaluate_model(predictor, dataset, convention=CONVENTIONS[convention])
    if boxes is not None:
        quality_pairs(result.detections, dataset.samples).write(boxes)
    return result.to_json()
