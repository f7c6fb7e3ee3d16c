"""``ptedge calibrate``: correct the sides of a model's boxes, and its sigma, by a few labelled frames."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ptedge.artifacts.signature import read_signing_key
from ptedge.artifacts.trust import Trust
from ptedge.commands.calibrated_model import CalibratedModel, open_calibrated
from ptedge.commands.model_options import BACKEND, JSON, THREADS, TRUST
from ptedge.data import open_dataset
from ptedge.progress import Progress
from ptedge.scores.calibrate import measure_calibration
from ptedge.scores.evaluation import detect_all
from ptedge.scores.sides import SIDES
from ptedge.scores.sigma_quality import SHARES

PATH = click.Path(path_type=Path)


@click.command()
@click.argument("model", type=PATH)
@click.argument("data", type=PATH, required=False)
@click.option(
    "--coverage",
    "coverages",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    multiple=True,
    metavar="SHARE",
    help="Also give intervals that hold this share of labelled sides, for example 0.9; again for more.",
)
@click.option("--out", type=PATH, help="Write here, and leave MODEL as it is.")
@click.option("--undo", is_flag=True, help="Take the calibration off; takes no DATA.")
@click.option("--dry-run", is_flag=True, help="Measure and tell, write nothing.")
@click.option("--split", help="Part of DATA to take, where it has several; val, else test, when left out.")
@BACKEND
@THREADS
@TRUST
@click.option("--sign", type=PATH, metavar="KEY", help="Private Ed25519 key to sign the new bundle with.")
@JSON
def calibrate(
    model: Path,
    data: Path | None,
    coverages: tuple[float, ...],
    out: Path | None,
    undo: bool,
    dry_run: bool,
    split: str | None,
    backend: str,
    threads: int | None,
    keys: tuple[Path, ...],
    sign: Path | None,
    as_json: bool,
) -> None:
    """Correct MODEL (checkpoint or bundle folder) by the labelled DATA: 10 boxes already help, 50 are plenty.

    An offset and a factor of sigma for each side of the box, shrunk towards none where labels are few; the offset is
    left out where it does not help images that had no part in it. They are written into MODEL; of a checkpoint the file
    before is kept as NAME.earlier-1.

    \b
    Example: ptedge calibrate runs/adapted/model.pt few.json --coverage 0.9
             ptedge calibrate bundle --undo
    """
    if undo == (data is not None) or (undo and (coverages or split)):
        raise click.UsageError("give DATA to calibrate on, or --undo without it")
    opened = open_calibrated(model, Trust.read(keys), read_signing_key(sign) if sign is not None else None)
    if data is None:
        _take_off(opened, out, dry_run, as_json)
        return
    with opened.predictor(backend, threads) as predictor:
        dataset = open_dataset(data, class_names=predictor.class_names, split=split, use="score")
        with Progress("detecting", len(dataset)) as progress:
            found = detect_all(predictor, dataset, lambda done, _: progress(done))
        result = measure_calibration(found, dataset, sorted(set(coverages)), opened.model_hash)
    lines = [] if dry_run else opened.write(result.calibration, out)
    document = {
        **result.to_json(),
        "model": str(model),
        "model_hash": opened.model_hash,
        "data": str(data),
        "data_hash": result.calibration.origin.data,
        "dropped": dataset.dropped,
        "passed_over": dataset.passed_over,
        "written": None if dry_run else str(out or model),
    }
    click.echo(json.dumps(document, indent=2, ensure_ascii=False) if as_json else format_table(document))
    for line in lines:
        click.echo(line, err=True)


def _take_off(model: CalibratedModel, out: Path | None, dry_run: bool, as_json: bool) -> None:
    had = model.calibration
    lines = [] if had is None or dry_run else model.write(None, out)
    if as_json:
        written = str(out or model.path) if lines else None
        click.echo(json.dumps({"model": str(model.path), "had_calibration": had is not None, "written": written}))
    if had is None:
        lines = [f"{model.path} has no calibration: nothing to undo"]
    for line in lines:
        click.echo(line, err=True)


def format_table(document: dict[str, Any]) -> str:
    """The result as text.

    Args:
        document: what ``--json`` prints.
    """
    lines = [
        f"model  {document['model']}  (sha256 {document['model_hash'][:12]})",
        f"data   {document['data']}: {document['images']} images, {document['labelled_boxes']} boxes, "
        f"{document['found_boxes']} of them found",
    ]
    for title, counts in (("left out while reading", "dropped"), ("passed over", "passed_over")):
        lines += [f"       {title}: {count} {why}" for why, count in document[counts].items()]
    return "\n".join([*lines, "", *_side_lines(document), "", *_effect_lines(document), *_interval_lines(document)])


def _side_lines(document: dict[str, Any]) -> Sequence[str]:
    sides = [document["sides"][side] for side in SIDES]
    rows = [
        ("offset measured", [f"{side['measured']:>+9.3f}" for side in sides], "shares of the box"),
        ("  standard error", [f"{side['error']:>9.3f}" for side in sides], ""),
        ("  kept of it", [f"{side['weight']:>9.2f}" for side in sides], "shrunk towards none"),
        ("offset applied", [f"{side['offset']:>+9.3f}" for side in sides], _why(document)),
        ("sigma times", [f"{side['scale']:>9.3f}" for side in sides], ""),
    ]
    for level in sides[0]["intervals"]:
        factors = [f"{side['intervals'][level]:>9.3f}" for side in sides]
        rows.append((f"interval {level}", factors, "side +- this * sigma"))
    head = f"{'':<18}{''.join(f'{side:>9}' for side in SIDES)}"
    return [head, *(f"{name:<18}{''.join(values)}  {note}".rstrip() for name, values, note in rows)]


def _why(document: dict[str, Any]) -> str:
    gain = document["offset_gain"]
    text = f"{gain['iou']:+.3f} (+- {gain['error']:.3f}) IoU on images left out"
    return text if document["offset_applied"] else f"none: {text}"


def _effect_lines(document: dict[str, Any]) -> Sequence[str]:
    names = ["AP50", "AP75", "AP", *(f"coverage_{share}" for share in SHARES)]
    shown = [*names[:3], *(f"in {share} %" for share in SHARES)]
    rows = [
        ("as it is", document["before"]),
        ("calibrated", document["after"]),
        ("if sigma is true", {f"coverage_{share}": share / 100 for share in SHARES}),
    ]
    return [
        f"{'':<18}{''.join(f'{name:>9}' for name in shown)}",
        *(f"{title:<18}{''.join(_number(row.get(name)) for name in names)}" for title, row in rows),
        "calibrated: every image by what the other images give",
    ]


def _interval_lines(document: dict[str, Any]) -> Sequence[str]:
    held = [
        f"interval {level}: holds {share:.3f} of the sides of images left out"
        for level, share in document["intervals_held"].items()
    ]
    few = [
        f"interval {level}: none, it takes {needed} boxes that are found, and there are {document['found_boxes']}"
        for level, needed in document["intervals_too_few"].items()
    ]
    return ["", *held, *few] if held or few else []


def _number(value: float | None) -> str:
    return f"{'-':>9}" if value is None else f"{value:>9.3f}"


__all__ = ["calibrate", "format_table"]
