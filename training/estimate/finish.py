"""The last step of ``train`` and ``adapt``: learn to estimate without labels, and estimate; and the same on a file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import torch

from ptedge.artifacts.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from ptedge.artifacts.estimate import LabelFreeEstimate, LabelFreeFit
from ptedge.calibration import CalibrationOrigin, SideCalibration
from ptedge.config import to_dict
from ptedge.data import open_dataset
from ptedge.data.dataset import Dataset
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.errors import InputError
from ptedge.files import sha256_file
from ptedge.frames.source import FrameIndex
from ptedge.scores.label_free_fit import estimate

from .sets import learn, look_at_frames


def learn_estimate(model: Path, val: Path, images: int, seed: int) -> dict[str, Any]:
    """Keep in a model's file what labelled images teach; where they teach nothing that is said, and no fault.

    Args:
        model: checkpoint.
        val: labelled DATA of the source that the model was not trained on.
        images: in each of the corrupted sets.
        seed: of the draws.

    Returns:
        ``label_free`` for summary.json; empty where nothing was learned.
    """
    checkpoint = load_checkpoint(model)
    dataset = open_dataset(val, class_names=checkpoint.class_names, use="score")
    try:
        fit = learn_fit(checkpoint, dataset, images, seed)
    except InputError as error:
        click.echo(f"no estimates without labels: {error}", err=True)
        return {}
    save_checkpoint(model, replace(checkpoint, label_free=fit))
    return {"label_free": to_dict(fit)}


def estimate_target(model: Path, frames: FrameIndex, count: int, seed: int, *, scale: bool) -> dict[str, Any]:
    """Estimate a model on its target frames, and keep that in its file.

    Args:
        model: checkpoint.
        frames: of the target.
        count: how many to look at, at most.
        seed: of the draw.
        scale: multiply sigma by the estimated scale.

    Returns:
        ``estimate`` for summary.json; empty where the model has not learned to estimate.
    """
    checkpoint = load_checkpoint(model)
    if checkpoint.label_free is None:
        return {}
    judged = with_estimate(checkpoint, frames, count, seed, scale_by=sha256_file(model) if scale else None)
    save_checkpoint(model, judged)
    return {"estimate": to_dict(judged.estimate)}


def learn_fit(checkpoint: Checkpoint, dataset: Dataset, images: int, seed: int) -> LabelFreeFit:
    """Learn from labelled images, and tell how well.

    Args:
        checkpoint: the model.
        dataset: labelled images that it has not learned from.
        images: in each of the corrupted sets.
        seed: of the draws.

    Raises:
        InputError: unreadable images, or too few objects found to learn from.
    """

    def told(done: int, total: int) -> None:
        if done % 10 == 0 or done == total:
            click.echo(f"{done} of {total} corrupted sets", err=True)

    fit = learn(_model(checkpoint), dataset, images, seed, progress=told)
    sides = ", ".join(f"{side.error:.2f}" for side in fit.sides)
    click.echo(
        f"estimates without labels, on kinds of corruption left out: AP50 within {fit.ap50.error:.3f}, "
        f"AP75 within {fit.ap75.error:.3f}, log of the scale of sigma within {sides}",
        err=True,
    )
    return fit


def with_estimate(
    checkpoint: Checkpoint, frames: FrameIndex, count: int, seed: int, *, scale_by: str | None = None
) -> Checkpoint:
    """A checkpoint with what is thought of it on frames.

    Args:
        checkpoint: with ``label_free``.
        frames: without labels.
        count: how many of them to look at, at most.
        seed: of the draw.
        scale_by: sha256 of the checkpoint's file, to have sigma multiplied by the scale; ``None`` leaves sigma.

    Raises:
        InputError: the checkpoint has not learned to estimate, or no frame can be read.
    """
    if checkpoint.label_free is None:
        raise InputError(
            "this checkpoint has not learned to estimate without labels. Give labelled images of the source: "
            "ptedge estimate MODEL --source DATA --out FILE"
        )
    signs, skipped = look_at_frames(_model(checkpoint), frames, count, seed)
    for reason in skipped.values():
        click.echo(f"skipped: {reason}", err=True)
    if not signs.frames:
        raise InputError(f"none of the frames in {frames.spec} can be read")
    rule, learned = checkpoint.config.sigma_rule, checkpoint.label_free.sigma_rule
    judged = estimate(checkpoint.label_free, signs, rule)
    click.echo(judged.describe(), err=True)
    if rule != learned:
        click.echo(
            f"no scale of sigma: it was learned for sigma by the rule {learned}, this model has {rule}", err=True
        )
    if scale_by is None:
        return replace(checkpoint, estimate=judged)
    calibration = _calibration(checkpoint, judged, scale_by)
    reference = checkpoint.reference
    if reference is not None and calibration != checkpoint.calibration:
        reference = reference.without("sigma")
    return replace(checkpoint, estimate=judged, calibration=calibration, reference=reference)


def _calibration(checkpoint: Checkpoint, judged: LabelFreeEstimate, model_hash: str) -> SideCalibration | None:
    """By the estimated scale; one that labels gave stays, as labels know better."""
    present = checkpoint.calibration
    if judged.scale is None or (present is not None and present.origin.how == "labels"):
        return present
    origin = CalibrationOrigin(how="label_free", boxes=judged.pairs, images=judged.frames, model=model_hash)
    return SideCalibration(scale=judged.scale, origin=origin)


def _model(checkpoint: Checkpoint) -> ProbabilisticFasterRCNN:
    """The detector's own answers: the scale is of sigma as it comes, so a calibration is left out."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model: ProbabilisticFasterRCNN = replace(checkpoint, calibration=None).build().to(device)
    return model
