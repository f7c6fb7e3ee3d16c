"""What ``ptedge eval`` does, for the command line and for Python: score a model on data, write files if asked."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.backends.predictor import Predictor
from ptedge.commands.evaluation_files import SIDES_PLOT, make_room, write_evaluation
from ptedge.commands.sides_plot import plot_sides
from ptedge.data import open_dataset
from ptedge.errors import InputError
from ptedge.figures import NO_MATPLOTLIB, can_draw
from ptedge.folders import hold_folder
from ptedge.progress import Progress
from ptedge.scores.convention import VOC, convention_named
from ptedge.scores.evaluation import EvaluationResult, evaluate_model


@dataclass(frozen=True)
class EvaluationOptions:
    """What is scored, and what is written.

    Attributes:
        split: part of the data; ``None`` for val, else test.
        out: existing folder for results.json, detections.json, pictures and sides.png; ``None`` writes nothing.
        limit: images at most.
        pictures: of the worst images, at most.
        convention: rule of AP, a key of :data:`ptedge.scores.convention.CONVENTIONS`.
    """

    split: str | None = None
    out: Path | None = None
    limit: int | None = None
    pictures: int = 12
    convention: str = VOC.name


def score_model(
    predictor: Predictor, model: Path, data: Path, options: EvaluationOptions
) -> tuple[dict[str, Any], EvaluationResult]:
    """Score a model on labelled data.

    Args:
        predictor: the model.
        model: where it came from.
        data: labelled DATA.
        options: what is scored and written.

    Returns:
        What ``ptedge eval --json`` prints, and the result with its detections.

    Raises:
        PtedgeError: the data or the output are at fault.
    """
    if isinstance(predictor, BundlePredictor):
        click.echo(f"signature: {predictor.signature}", err=True)
    try:
        rule = convention_named(options.convention)
    except ValueError as error:
        raise InputError(str(error)) from None
    dataset = open_dataset(data, class_names=predictor.class_names, split=options.split, use="score")
    if options.limit is not None:
        dataset = dataclasses.replace(dataset, samples=dataset.samples[: options.limit])
    with Progress("scoring", len(dataset)) as progress:
        result = evaluate_model(predictor, dataset, lambda done, _: progress(done), rule)
    document = {
        **result.to_json(),
        "model": str(model),
        "model_hash": predictor.model_hash,
        "input_size": list(predictor.input_size),
        "data": str(data),
        "data_format": dataset.format,
        "split": dataset.split,
        "dropped": dataset.dropped,
        "passed_over": dataset.passed_over,
        "notes": dataset.notes,
    }
    if (out := options.out) is not None:
        with hold_folder(out, "ptedge eval"):
            if (moved := make_room(out)) is not None:
                click.echo(f"{out} held an earlier evaluation; it is in {moved} now", err=True)
            write_evaluation(out, document, result.detections, dataset, options.pictures)
            _draw_sides(result, f"Sides of boxes: {model} on {data}", out / SIDES_PLOT)
        click.echo(f"wrote {out}", err=True)
    return document, result


def _draw_sides(result: EvaluationResult, title: str, path: Path) -> None:
    if not can_draw():
        click.echo(f"no {path.name}: {NO_MATPLOTLIB}", err=True)
    elif plot_sides(result, title, path) is None:
        click.echo(f"no {path.name}: no detection found its box", err=True)
