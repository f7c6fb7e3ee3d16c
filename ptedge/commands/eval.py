"""``ptedge eval``: average precision and quality of sigma of any model on any labelled data."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ptedge.artifacts.trust import Trust
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.backends.predictor import open_predictor
from ptedge.backends.runner import BACKENDS
from ptedge.commands.evaluation_files import make_room, write_evaluation
from ptedge.data import open_dataset
from ptedge.files import make_output_folder
from ptedge.folders import hold_folder
from ptedge.scores.evaluation import MATCH_IOU, evaluate_model
from ptedge.scores.sigma_quality import EXPECTED_COVERAGE


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--split", help="Part of DATA to score, where it has several; val, else test, when left out.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write results.json, detections.json (COCO results) and pictures of the worst images here.",
)
@click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    default="auto",
    show_default=True,
    help="What runs a bundle or ONNX file.",
)
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N images.")
@click.option("--threads", type=click.IntRange(min=1), help="CPU threads of the model.")
@click.option(
    "--trust",
    "keys",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="KEY",
    help="Public key that a bundle must be signed with; again for more.",
)
@click.option("--pictures", type=click.IntRange(min=0), default=12, show_default=True, help="Pictures for --out.")
def evaluate(
    model: Path,
    data: Path,
    split: str | None,
    as_json: bool,
    out: Path | None,
    backend: str,
    limit: int | None,
    threads: int | None,
    keys: tuple[Path, ...],
    pictures: int,
) -> None:
    """Score MODEL (checkpoint, bundle, model.onnx or engine) on the labelled DATA.

    AP50 and AP75 are VOC all-point average precision at IoU 0.5 and 0.75; AP is COCO's mean over IoU 0.50 to 0.95.
    Images without objects count. Sigma is judged on the true positives.

    \b
    Example:
      ptedge eval runs/adapted/model.pt data/target/val.json --out runs/adapted/eval
    """
    if out is not None:
        make_output_folder(out)  # what cannot be written is said before the work
    predictor = open_predictor(model, backend=backend, threads=threads, trust=Trust.read(keys))
    if isinstance(predictor, BundlePredictor):
        click.echo(f"signature: {predictor.signature}", err=True)
    try:
        dataset = open_dataset(data, class_names=predictor.class_names, split=split, use="score")
        if limit is not None:
            dataset = dataclasses.replace(dataset, samples=dataset.samples[:limit])
        result = evaluate_model(predictor, dataset, _show_progress)
    finally:
        predictor.close()
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
    if out is not None:
        with hold_folder(out, "ptedge eval"):
            if (moved := make_room(out)) is not None:
                click.echo(f"{out} held an earlier evaluation; it is in {moved} now", err=True)
            write_evaluation(out, document, result.detections, dataset, pictures)
        click.echo(f"wrote {out}", err=True)
    click.echo(json.dumps(document, indent=2, ensure_ascii=False) if as_json else format_table(document))


def format_table(document: dict[str, Any]) -> str:
    """The result as text.

    Args:
        document: what ``--json`` prints.
    """
    height, width = document["input_size"]
    part = f", split {document['split']}" if document.get("split") is not None else ""
    lines = [
        f"model  {document['model']}  (input {height} x {width}, sha256 {document['model_hash'][:12]})",
        f"data   {document['data']}  ({document['data_format']}{part}: "
        f"{document['images']} images, {document['boxes']} boxes)",
    ]
    lines += [f"       left out while reading: {count} boxes, {why}" for why, count in document["dropped"].items()]
    lines += [f"       passed over: {count} of {why}" for why, count in document.get("passed_over", {}).items()]
    lines += [f"       note: {count} of {why}" for why, count in document.get("notes", {}).items()]
    rows = [*document["per_class"].items(), ("all", document)]
    name_width = max(len(name) for name, _ in rows)
    lines += ["", f"{'class':<{name_width}}  {'boxes':>6}  {'AP50':>6}  {'AP75':>6}  {'AP':>6}"]
    lines += [
        f"{name:<{name_width}}  {row['boxes']:>6}  {_number(row['AP50'])}  {_number(row['AP75'])}  {_number(row['AP'])}"
        for name, row in rows
    ]
    return "\n".join([*lines, "", *_sigma_lines(document["sigma"])])


def _sigma_lines(sigma: dict[str, Any]) -> Sequence[str]:
    if not sigma["matches"]:
        return [f"sigma: nothing to judge, no detection found its box (IoU {MATCH_IOU:g})"]
    rows = [
        ("within 1 sigma", "coverage_1", f"{EXPECTED_COVERAGE[1]:.3f} if sigma is true"),
        ("within 2 sigma", "coverage_2", f"{EXPECTED_COVERAGE[2]:.3f} if sigma is true"),
        ("mean sigma", "mean_sigma", "pixels"),
        ("RMS error", "rmse", "pixels, prediction against label"),
        ("NLL", "nll", "nats a box side, lower is better"),
        ("ENCE", "ence", "calibration error, 0 if sigma is true"),
        ("rank: sigma", "rank_sigma", "Spearman with 1 - IoU, positive is right"),
        ("rank: sigma / size", "rank_relative_sigma", "the same, sigma relative to the box"),
        ("rank: 1 - score", "rank_score", "the same, for comparison"),
    ]
    head = f"sigma of the box sides, over {sigma['matches']} true positives (IoU {MATCH_IOU:g})"
    return [head, *(f"  {name:<20}{_number(sigma[key])}  {meaning}" for name, key, meaning in rows)]


def _number(value: float | None) -> str:
    return f"{'-':>6}" if value is None else f"{value:>6.3f}"


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty():
        click.echo(f"\r{done}/{total} images", err=True, nl=done == total)
    elif done == total or done % max(1, total // 10) == 0:
        click.echo(f"{done}/{total} images", err=True)
