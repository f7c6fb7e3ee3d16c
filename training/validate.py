"""AP50 on labelled data, for reports only: nothing in training reads what this returns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ptedge.checkpoint import CheckpointPredictor
from ptedge.commands.evaluate import evaluate_model
from ptedge.data import open_dataset


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
