"""The last step of ``train`` and ``adapt``: what frames and detections are like where the model is meant to work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ptedge.artifacts.checkpoint import load_checkpoint, save_checkpoint
from ptedge.backends.checkpoint_predictor import CheckpointPredictor
from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset
from ptedge.drift.reference import look_at
from ptedge.errors import InputError
from ptedge.frames.source import FrameIndex


def keep_reference_of(model: Path, data: Path | Dataset, count: int, origin: str) -> dict[str, Any]:
    """As :func:`keep_reference`, of labelled images, whose labels are not looked at.

    Args:
        model: checkpoint.
        data: DATA, or what was opened from it.
        count: how many images to look at, at most.
        origin: ``val`` or ``train``.
    """
    if isinstance(data, Path):
        data = open_dataset(data, use="score")
    frames = FrameIndex(str(data.root), [sample.path for sample in data.samples])
    return keep_reference(model, frames, count, origin)


def keep_reference(model: Path, frames: FrameIndex, count: int, origin: str) -> dict[str, Any]:
    """Keep in a model's file what frames are like; where they are too few that is said, and no fault.

    Args:
        model: checkpoint.
        frames: of the place, in the order of their time where they have one.
        count: how many of them to look at, at most; they are evenly spaced.
        origin: one of ``ptedge.drift.reference.ORIGINS``.

    Returns:
        ``reference`` for summary.json; empty where there is none.
    """
    predictor = CheckpointPredictor(model)
    try:
        size, classes = predictor.input_size, len(predictor.class_names)
        reference = look_at(frames.spaced(count), predictor.detect, size, classes, origin)
    except InputError as error:
        click.echo(f"no reference for drift: {error}", err=True)
        return {}
    save_checkpoint(model, replace(load_checkpoint(model), reference=reference))
    return {"reference": {"frames": reference.frames, "origin": origin}}
