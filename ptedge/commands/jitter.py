"""``ptedge jitter``: a lower bound of sigma from the trembling of boxes in a video, without labels."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from ptedge.artifacts.trust import Trust
from ptedge.backends.predictor import Predictor, open_predictor
from ptedge.commands.model_options import BACKEND, JSON, THREADS, TRUST
from ptedge.detections import Detections
from ptedge.errors import InputError
from ptedge.frames.source import FrameSource, open_frames
from ptedge.progress import tracked
from ptedge.scores.jitter import FEWEST_WINDOWS, measure_jitter
from ptedge.scores.sides import SIDES
from ptedge.scores.tracking import link_detections


@click.command()
@click.argument("model", type=click.Path(path_type=Path))
@click.argument("frames")
@click.option(
    "--min-score",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="Detections below are not tracked.",
)
@click.option("--stride", type=click.IntRange(min=1), default=1, show_default=True, help="Take every N-th frame.")
@click.option("--limit", type=click.IntRange(min=1), help="At most N frames.")
@BACKEND
@THREADS
@TRUST
@JSON
def jitter(
    model: Path,
    frames: str,
    min_score: float,
    stride: int,
    limit: int | None,
    backend: str,
    threads: int | None,
    keys: tuple[Path, ...],
    as_json: bool,
) -> None:
    """How much boxes of MODEL (checkpoint, bundle, model.onnx or engine) tremble in FRAMES, beside its sigma.

    FRAMES is a video, or a folder of its frames in order. Things move smoothly, so what a side does beside that is
    error, and sigma must be at least as large. It needs no labels and changes nothing. What many frames get wrong alike
    is not seen: a factor below 1 says nothing against sigma, and nothing for it.

    \b
    Example:
      ptedge jitter bundle drive.mp4 --limit 1000
    """
    predictor = open_predictor(model, backend=backend, threads=threads, trust=Trust.read(keys))
    try:
        source = open_frames(frames, stride=stride, limit=limit, live=False)
        found, (width, height) = detect_in_order(predictor, source)
        model_hash = predictor.model_hash
    finally:
        predictor.close()
    for name, reason in source.skipped:
        click.echo(f"left out: {name} ({reason})", err=True)
    measured = measure_jitter(found, link_detections(found, least_score=min_score), width, height)
    document = {
        "model": str(model),
        "model_hash": model_hash,
        "source": source.spec,
        "frames": len(found),
        "stride": stride,
        "min_score": min_score,
        "skipped": len(source.skipped),
        **measured.to_json(),
    }
    click.echo(json.dumps(document, indent=2, ensure_ascii=False) if as_json else format_table(document))


def detect_in_order(predictor: Predictor, source: FrameSource) -> tuple[list[Detections], tuple[int, int]]:
    """Detections of every frame in its place, none where a frame cannot be read; and the (width, height) of all.

    Args:
        predictor: the model.
        source: frames.

    Raises:
        InputError: no frames, or frames of several sizes, which are no video.
    """
    found: list[Detections] = []
    size: tuple[int, int] | None = None
    for frame in tracked(source, "detecting", "frames", source.count):
        shape = (frame.image.shape[1], frame.image.shape[0])
        if size is not None and shape != size:
            raise InputError(
                f"{source.spec} has frames of {size[0]} x {size[1]} and of {shape[0]} x {shape[1]} pixels. "
                "Give one video, or frames of one video"
            )
        size = shape
        found += [Detections.empty()] * (frame.index // source.stride - len(found))
        found.append(predictor.detect(frame.image))
    if size is None:
        raise InputError(f"{source.spec} has no frames")
    return found, size


def format_table(document: dict[str, Any]) -> str:
    """The result as text.

    Args:
        document: what ``--json`` prints.
    """
    lines = [
        f"model  {document['model']}  (sha256 {document['model_hash'][:12]})",
        f"video  {document['source']}: {document['frames']} frames, {document['tracks']} tracks, "
        f"{document['windows']} times three frames in a row",
        "",
    ]
    if document["windows"] < FEWEST_WINDOWS:
        return "\n".join([*lines, f"too few to say anything: {FEWEST_WINDOWS} are needed. Give more frames"])
    rows = [
        ("trembles by", "jitter", "shares of the box, new in every frame"),
        ("sigma", "sigma", "median of the same boxes, shares of the box"),
        ("sigma times, at least", "least_scale", "what sigma would need to cover the trembling alone"),
        ("  standard error", "error", "tracks left out in turn"),
    ]
    lines.append(f"{'':<22}{''.join(f'{side:>9}' for side in SIDES)}")
    for title, key, meaning in rows:
        values = "".join(f"{document['sides'][side][key]:>9.3f}" for side in SIDES)
        lines.append(f"{title:<22}{values}  {meaning}")
    small = ", ".join(document["too_small"])
    verdict = f"sigma of {small} is too small" if small else "nothing against sigma; it may be too small all the same"
    return "\n".join([*lines, "", verdict])


__all__ = ["detect_in_order", "format_table", "jitter"]
