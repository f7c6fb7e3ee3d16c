"""``ptedge eval``: average precision, quality of sigma and errors of the sides of any model on any labelled data."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ptedge.artifacts.trust import Trust
from ptedge.backends.predictor import open_predictor
from ptedge.commands.evaluation import EvaluationOptions, score_model
from ptedge.commands.model_options import BACKEND, JSON, THREADS, TRUST
from ptedge.files import make_output_folder
from ptedge.scores.convention import CONVENTIONS, VOC
from ptedge.scores.evaluation import MATCH_IOU
from ptedge.scores.sides import SIDES
from ptedge.scores.sigma_quality import EXPECTED_COVERAGE, SHARES


@click.command("eval")
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--split", help="Part of DATA to score, where it has several; val, else test, when left out.")
@click.option(
    "--convention",
    type=click.Choice(tuple(CONVENTIONS)),
    default=VOC.name,
    show_default=True,
    help="What AP50 and AP75 mean (docs/eval.md).",
)
@JSON
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="Also write results.json, detections.json (COCO results), pictures of the worst images and sides.png here.",
)
@BACKEND
@click.option("--limit", type=click.IntRange(min=1), help="Only the first N images.")
@THREADS
@TRUST
@click.option("--pictures", type=click.IntRange(min=0), default=12, show_default=True, help="Pictures for --out.")
def evaluate(
    model: Path,
    data: Path,
    split: str | None,
    convention: str,
    as_json: bool,
    out: Path | None,
    backend: str,
    limit: int | None,
    threads: int | None,
    keys: tuple[Path, ...],
    pictures: int,
) -> None:
    """Score MODEL (checkpoint, bundle, model.onnx or engine) on the labelled DATA.

    AP50 and AP75 are VOC all-point average precision at IoU 0.5 and 0.75, and images without objects count, unless
    another convention is named; AP is COCO's mean over IoU 0.50 to 0.95. Sigma and the sides are judged on the true
    positives.

    \b
    Example:
      ptedge eval runs/adapted/model.pt data/target/val.json --out runs/adapted/eval
    """
    if out is not None:
        make_output_folder(out)  # what cannot be written is said before the model is loaded
    predictor = open_predictor(model, backend=backend, threads=threads, trust=Trust.read(keys))
    try:
        options = EvaluationOptions(split, out, limit, pictures, convention)
        document, _ = score_model(predictor, model, data, options)
    finally:
        predictor.close()
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
    lines.append(f"AP50, AP75: {CONVENTIONS[document.get('convention', VOC.name)].text}")
    lines += ["", f"{'class':<{name_width}}  {'boxes':>6}  {'AP50':>6}  {'AP75':>6}  {'AP':>6}"]
    lines += [
        f"{name:<{name_width}}  {row['boxes']:>6}  {_number(row['AP50'])}  {_number(row['AP75'])}  {_number(row['AP'])}"
        for name, row in rows
    ]
    lines += ["", *_sigma_lines(document["sigma"])]
    if document["sigma"]["matches"]:
        lines += ["", *_side_lines(document["sides"]), "", *_offset_lines(document)]
    return "\n".join(lines)


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


def _side_lines(sides: dict[str, Any]) -> Sequence[str]:
    rows = [
        ("offset", "median, above 0 is too far right or down"),
        ("spread", "robust deviation from it"),
        ("sigma", "median; as large as the spread if sigma is true"),
    ]
    return [
        f"{'sides, shares of the box':<24}{''.join(f'{side:>9}' for side in SIDES)}",
        *(
            f"  {key:<22}{''.join(_column(sides[side][key], key == 'offset') for side in SIDES)}  {meaning}"
            for key, meaning in rows
        ),
    ]


def _offset_lines(document: dict[str, Any]) -> Sequence[str]:
    shares = [f"coverage_{share}" for share in SHARES]
    scores = ("AP50", "AP75", "AP")
    rows = [
        ("as it is", {**document, **document["sigma"]}),
        ("offset removed", document["offset_removed"]),
        ("if sigma is true", {f"coverage_{share}": share / 100 for share in SHARES}),
    ]
    head = "".join(f"{name:>9}" for name in (*scores, *(f"in {share} %" for share in SHARES)))
    return [
        f"{'what the offset costs':<24}{head}",
        *(f"  {name:<22}{''.join(_column(row.get(key)) for key in (*scores, *shares))}" for name, row in rows),
        "  offset removed: by the medians of these same labels, to find the cause; not a score to report",
    ]


def _column(value: float | None, sign: bool = False) -> str:
    return f"{'-':>9}" if value is None else f"{value:>+9.3f}" if sign else f"{value:>9.3f}"


def _number(value: float | None) -> str:
    return f"{'-':>6}" if value is None else f"{value:>6.3f}"
