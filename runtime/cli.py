"""The commands of the runtime: run and field; benchmark is in bench_cli.py."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Literal

import click

SAVES = ("jsonl", "coco", "csv", "video", "images")
BACKEND = click.option(
    "--backend",
    type=click.Choice(["auto", "tensorrt", "cuda", "cpu"]),
    default="auto",
    show_default=True,
    help="What runs the model; auto takes a GPU when one answers.",
)
THREADS = click.option("--threads", type=click.IntRange(1), help="CPU threads of the model.  [default: one a core]")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
FIELD = click.argument("folder", metavar="FIELD", type=click.Path(path_type=Path))


def _parse_saves(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
    if not names or any(name not in SAVES for name in names):
        raise click.BadParameter(f"{value!r}: choose from {','.join(SAVES)}, separated by commas")
    return names


def _parse_size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    if value is None:
        return None
    text = value.strip().upper().removesuffix("B")
    factor = {"K": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:], 1)
    try:
        size = int(float(text[:-1] if factor > 1 else text) * factor)
    except (ValueError, OverflowError):
        size = 0
    if size < 1:
        raise click.BadParameter(f"{value!r}: write a number of bytes, as 500MB or 2GB")
    return size


@click.command()
@click.argument("bundle", type=click.Path(path_type=Path))
@click.argument("frames", nargs=-1, required=True)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for results.  [default: runs/detect]")
@click.option(
    "--save",
    callback=_parse_saves,
    metavar="LIST",
    help="jsonl,coco,csv,video,images  [default: jsonl and video, or jsonl and images; jsonl if live]",
)
@click.option("--collect", type=click.Path(path_type=Path), help="Field folder for frames worth adapting to.")
@click.option(
    "--realtime/--lossless", default=None, help="Drop frames to keep up, or none.  [default: realtime if live]"
)
@click.option("--limit", type=click.IntRange(1), help="Stop after so many frames of each source.")
@click.option("--start", type=click.IntRange(0), default=0, help="Frames of each source to pass over first.")
@click.option("--stride", type=click.IntRange(1), default=1, help="Take every so-many-th frame.")
@click.option("--rate", type=click.FloatRange(0, min_open=True), help="Frames a second of each source at most.")
@click.option("--loop", is_flag=True, help="Begin files again at their end.")
@click.option(
    "--flip", type=click.Choice(["horizontal", "vertical", "both"]), help="Mirror; both turns by 180 degrees."
)
@click.option("--strict", is_flag=True, help="Exit status 1 when one of several sources fails.")
@BACKEND
@THREADS
@click.option("--min-score", type=click.FloatRange(0, 1), default=0.0, help="Leave out detections scored lower.")
@click.option(
    "--draw-score", type=click.FloatRange(0, 1), default=0.3, show_default=True, help="The same, in pictures."
)
@click.option(
    "--collect-random", type=click.FloatRange(0, 1), default=0.02, show_default=True, help="Share kept by chance."
)
@click.option(
    "--collect-quantile",
    type=click.FloatRange(0, 1),
    default=0.9,
    show_default=True,
    help="Keep frames less sure than this share of the frames so far.",
)
@click.option(
    "--collect-interval", type=click.IntRange(0), default=5, show_default=True, help="Frames between two kept."
)
@click.option("--collect-seconds", type=click.FloatRange(0), default=0.0, help="Seconds between two kept.")
@click.option("--collect-images", type=click.IntRange(1), default=5000, show_default=True, help="Images kept at most.")
@click.option(
    "--collect-bytes",
    callback=_parse_size,
    metavar="SIZE",
    default="2GB",
    show_default=True,
    help="Size of the images at most.",
)
@click.option("--seed", type=int, default=0, help="Of the random choice.")
@click.option("--push", metavar="URL", help="Send results to http://, https://, or mqtt://host/topic.")
@click.option("--push-token", envvar="PTEDGE_PUSH_TOKEN", show_envvar=True, help="Bearer token for --push over HTTP.")
@click.option(
    "--serve", metavar="[HOST:]PORT", help="Live page and Prometheus' /metrics; this machine alone by default."
)
@click.option("--serve-token", envvar="PTEDGE_SERVE_TOKEN", show_envvar=True, help="What visitors must show.")
@JSON
def run(
    bundle: Path,
    frames: tuple[str, ...],
    out: Path | None,
    save: tuple[str, ...] | None,
    collect: Path | None,
    realtime: bool | None,
    limit: int | None,
    start: int,
    stride: int,
    rate: float | None,
    loop: bool,
    flip: Literal["horizontal", "vertical", "both"] | None,
    strict: bool,
    backend: str,
    threads: int | None,
    min_score: float,
    draw_score: float,
    collect_random: float,
    collect_quantile: float,
    collect_interval: int,
    collect_seconds: float,
    collect_images: int,
    collect_bytes: int,
    seed: int,
    push: str | None,
    push_token: str | None,
    serve: str | None,
    serve_token: str | None,
    as_json: bool,
) -> None:
    """Detect on FRAMES with BUNDLE; every box side gets a standard deviation.

    FRAMES is an image, folder, glob, list file, video or field folder, or live: a camera index, rtsp://, http://,
    csi:// or a GStreamer pipeline. Unreadable images are named and passed over. Of several FRAMES, each is a source of
    its own; one that fails does not end the others.

    Ctrl-C or SIGTERM ends the run, finishes all files and gives exit status 130 or 143; a second one aborts.

    \b
    Example:
      ptedge run car.bundle drive.mp4 --out results --save jsonl,video --collect field
      ptedge run car.bundle rtsp://camera/1 rtsp://camera/2 --collect field --serve 8080
    """
    from .run import RunOptions, run_bundle
    from .sinks.collect import Policy

    policy = Policy(
        random_share=collect_random,
        uncertain_quantile=collect_quantile,
        min_seconds=collect_seconds,
        min_frames=collect_interval,
        max_images=collect_images,
        max_bytes=collect_bytes,
        seed=seed,
    )
    options = RunOptions(
        *(out, save, collect, realtime, limit, backend, threads, min_score, draw_score, policy, strict),
        *(start, stride, rate, loop, flip, push, push_token or None, serve, serve_token or None),
    )
    report, status = run_bundle(bundle, list(frames), options)
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False))
    if status:
        sys.exit(status)


@click.group()
def field() -> None:
    """Look into, export or prune a field folder, as ptedge run --collect writes it.

    \b
    Example:
      ptedge field summary field
    """


@field.command()
@FIELD
@JSON
def summary(folder: Path, as_json: bool) -> None:
    """Count images, why they were kept, and what was detected.

    \b
    Example:
      ptedge field summary field --json
    """
    from .field import open_field, summarize

    counts = summarize(open_field(folder))
    if as_json:
        click.echo(json.dumps(counts, ensure_ascii=False))
        return
    click.echo(f"{counts['images']} images, {counts['bytes'] / 1e6:.1f} MB in {folder}")
    for title in ("why", "detections", "cameras", "models", "counters"):
        if counts[title]:
            click.echo(f"{title:<11}" + ", ".join(f"{name} {count}" for name, count in counts[title].items()))


@field.command()
@FIELD
@click.option("--out", type=click.Path(path_type=Path), required=True, help="COCO json to write.")
@click.option(
    "--min-score", type=click.FloatRange(0, 1), default=0.3, show_default=True, help="Leave out lower scores."
)
@click.option("--license", "license_name", default="unknown", show_default=True, help="Licence of the images.")
def export(folder: Path, out: Path, min_score: float, license_name: str) -> None:
    """Write the detections as COCO pre-labels, to correct in an annotation tool.

    \b
    Example:
      ptedge field export field --out prelabels.json --min-score 0.5
    """
    from .field import export_coco, open_field

    count = export_coco(open_field(folder), out, min_score, license_name)
    click.echo(f"wrote {out}: {count} images of {folder / 'images'}", err=True)


@field.command()
@FIELD
@click.option("--max-bytes", callback=_parse_size, metavar="SIZE", help="Size of the images that may stay, as 500MB.")
@click.option("--max-images", type=click.IntRange(0), help="Images that may stay.")
def prune(folder: Path, max_bytes: int | None, max_images: int | None) -> None:
    """Remove the least informative images until the folder is small enough.

    \b
    Example:
      ptedge field prune field --max-bytes 500MB
    """
    from .field import open_field
    from .field import prune as prune_field

    if max_bytes is None and max_images is None:
        raise click.UsageError("give --max-bytes or --max-images")
    opened = open_field(folder)
    removed = prune_field(opened, max_bytes, max_images)
    click.echo(f"removed {removed} images; {opened.images} stay, {opened.size / 1e6:.1f} MB", err=True)
