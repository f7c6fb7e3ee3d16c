"""The command ``ptedge run``; ``field`` and ``benchmark`` have files of their own."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from ptedge.errors import OutputError
from ptedge.frames.login import with_login

from .click_options import BACKEND, JSON, THREADS, TRUST, Decorator, byte_size, grouped, seconds_apart, secret
from .collection.policy import Quota, Shares, Spacing, read_policy
from .options import (
    FLIPS,
    SAVES,
    CollectOptions,
    DriftOptions,
    ModelOptions,
    OutputOptions,
    PushOptions,
    RunOptions,
    ServeOptions,
    SourceOptions,
)

NOTHING = "none"  # --save none
Part = TypeVar("Part", Shares, Spacing, Quota)


def _parse_saves(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    if value.strip() == NOTHING:
        return ()
    names = tuple(dict.fromkeys(name.strip() for name in value.split(",") if name.strip()))
    if not names or any(name not in SAVES for name in names):
        raise click.BadParameter(f"{value!r}: choose from {','.join(SAVES)}, separated by commas, or {NOTHING}")
    return names


def _collect(
    collect: Path | None,
    collect_policy: Path | None,
    collect_random: float | None,
    collect_quantile: float | None,
    collect_interval: int | None,
    collect_seconds: float | None,
    collect_triples: bool,
    collect_images: int | None,
    collect_bytes: int | None,
    seed: int | None,
) -> CollectOptions | None:
    if collect is None:
        return None
    policy = read_policy(collect_policy)
    unsure = None if collect_quantile is None else 1 - collect_quantile
    return CollectOptions(
        folder=collect,
        policy=replace(
            policy,
            shares=_told(policy.shares, random=collect_random, entropy=unsure, sigma=unsure),
            spacing=_told(policy.spacing, frames=collect_interval, seconds=collect_seconds),
            quota=_told(policy.quota, images=collect_images, bytes=collect_bytes),
            triples=policy.triples or collect_triples,
            seed=policy.seed if seed is None else seed,
        ),
    )


def _told(part: Part, **values: Any) -> Part:
    """A part of a policy with what was said on the command line, which counts more than the file."""
    return replace(part, **{name: value for name, value in values.items() if value is not None})


def _push(push: str | None, push_token: str | None, push_token_file: str | None) -> PushOptions | None:
    if not push:
        return None
    return PushOptions(to=with_login(push, variable=PUSH_LOGIN), token=push_token or push_token_file)


def _serve(serve: str | None, serve_token: str | None, serve_token_file: str | None) -> ServeOptions | None:
    return ServeOptions.parse(serve, serve_token or serve_token_file) if serve is not None else None


def _token_file(name: str, text: str) -> Decorator:
    """The option that a token is read by from a file, so that it stands in no list of processes."""
    return click.option(
        f"--{name}",
        type=click.Path(path_type=Path),
        callback=secret,
        envvar=f"PTEDGE_{name.upper().replace('-', '_')}",
        show_envvar=True,
        help=text,
    )


PUSH_LOGIN = "PTEDGE_PUSH_AUTH"  # and ..._FILE, see ptedge.frames.login
SHARE = click.FloatRange(0, 1)
OUTPUT = grouped(
    "output",
    OutputOptions,
    click.option(
        "--out",
        "folder",
        type=click.Path(path_type=Path),
        help="Folder for results; earlier ones there step aside.  [default: runs/detect, runs/detect-2...]",
    ),
    click.option("--append", is_flag=True, help="Go on with what is in --out; for services that are restarted."),
    click.option(
        "--save",
        callback=_parse_saves,
        metavar="LIST",
        help="jsonl,coco,csv,video,images, or none  [default: jsonl and video, or jsonl and images; jsonl if live]",
    ),
    click.option(
        "--rotate-bytes",
        callback=byte_size,
        metavar="SIZE",
        help="Size from which detections.jsonl and .csv get a number (detections.1.jsonl) and begin anew, as 100MB.",
    ),
    click.option("--min-score", type=SHARE, default=0.0, help="Leave out detections scored lower."),
    click.option("--draw-score", type=SHARE, default=0.3, show_default=True, help="The same, in pictures."),
    click.option(
        "--mask",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="TOML file of polygons that no picture shows, whether written or on the live page.",
    ),
)
SOURCE = grouped(
    "source",
    SourceOptions,
    click.option(
        "--realtime/--lossless", default=None, help="Drop frames to keep up, or none.  [default: realtime if live]"
    ),
    click.option("--limit", type=click.IntRange(1), help="Stop after so many frames of each source."),
    click.option("--start", type=click.IntRange(0), default=0, help="Frames of each source to pass over first."),
    click.option("--stride", type=click.IntRange(1), default=1, help="Take every so-many-th frame."),
    click.option("--rate", type=click.FloatRange(0, min_open=True), help="Frames a second of each source at most."),
    click.option("--loop", is_flag=True, help="Begin files again at their end."),
    click.option("--flip", type=click.Choice(FLIPS), help="Mirror; both turns by 180 degrees."),
    click.option("--strict", is_flag=True, help="Exit status 1 when one of several sources fails."),
    click.option(
        "--source-auth",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Logins of live sources, as .netrc has them.  [default: PTEDGE_SOURCE_AUTH_FILE, PTEDGE_SOURCE_AUTH]",
    ),
)
MODEL = grouped(
    "model",
    ModelOptions,
    BACKEND,
    THREADS,
    TRUST,
    click.option("--quick-shrink", is_flag=True, help="Shrink large frames in a quarter of the time, nearly the same."),
    click.option(
        "--probation",
        type=click.FloatRange(0),
        default=600.0,
        show_default=True,
        help="Seconds in which a new version of a deployment is compared with the one before; 0: not.",
    ),
    click.option(
        "--poll",
        type=click.FloatRange(0, min_open=True),
        help="Seconds between two looks at a deployment.  [default: 2 at a folder, 60 at a bucket]",
    ),
    click.option(
        "--cache",
        type=click.Path(path_type=Path),
        metavar="FOLDER",
        help="For the copy of a deployment in a bucket.  [default: one below ~/.cache/ptedge]",
    ),
)
COLLECT = grouped(
    "collect",
    _collect,
    click.option("--collect", type=click.Path(path_type=Path), help="Field folder for frames worth adapting to."),
    click.option(
        "--collect-policy",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="TOML file: strategies, quotas by hour and day, what is left free; options here count more.",
    ),
    click.option("--collect-random", type=SHARE, help="Share of all frames kept by chance.  [default: 0.02]"),
    click.option(
        "--collect-quantile",
        type=SHARE,
        help="Keep frames less sure than this share of the frames so far.  [default: 0.9]",
    ),
    click.option("--collect-interval", type=click.IntRange(0), help="Frames between two kept.  [default: 5]"),
    click.option("--collect-seconds", type=click.FloatRange(0), help="Seconds between two kept.  [default: 0]"),
    click.option("--collect-triples", is_flag=True, help="Keep the frames before and after each, too."),
    click.option("--collect-images", type=click.IntRange(1), help="Images kept at most.  [default: 5000]"),
    click.option(
        "--collect-bytes", callback=byte_size, metavar="SIZE", help="Size of the images at most.  [default: 2GB]"
    ),
    click.option("--seed", type=int, help="Of the random choice.  [default: 0]"),
)
PUSH = grouped(
    "push",
    _push,
    click.option("--push", metavar="URL", help="Send results to http://, https://, or mqtt://host/topic."),
    click.option(
        "--push-token", envvar="PTEDGE_PUSH_TOKEN", show_envvar=True, help="Bearer token for --push over HTTP."
    ),
    _token_file("push-token-file", "File that holds it; a login is read from PTEDGE_PUSH_AUTH, or a file as .netrc."),
)
SERVE = grouped(
    "serve",
    _serve,
    click.option(
        "--serve", metavar="[HOST:]PORT", help="Live page and Prometheus' /metrics; this machine alone by default."
    ),
    click.option("--serve-token", envvar="PTEDGE_SERVE_TOKEN", show_envvar=True, help="What visitors must show."),
    _token_file("serve-token-file", "File that holds it."),
)


DRIFT = grouped(
    "drift",
    DriftOptions,
    click.option(
        "--drift-false-alarms",
        "seconds_between",
        callback=seconds_apart,
        default="1 in 7 d",
        show_default=True,
        metavar="RATE",
        help="False alarms of drift to bear with, of all sources together, as 1 in 24 h.",
    ),
)


@click.command()
@click.argument("bundle", type=click.Path())
@click.argument("frames", nargs=-1, required=True)
@OUTPUT
@SOURCE
@MODEL
@COLLECT
@PUSH
@SERVE
@DRIFT
@JSON
def run(
    bundle: str,
    frames: tuple[str, ...],
    output: OutputOptions,
    source: SourceOptions,
    model: ModelOptions,
    collect: CollectOptions | None,
    push: PushOptions | None,
    serve: ServeOptions | None,
    drift: DriftOptions,
    as_json: bool,
) -> None:
    """Detect on FRAMES with BUNDLE, or with what a deployment runs; every box side gets a standard deviation.

    FRAMES is an image, folder, glob, list file, video or field folder, or live: a camera index, rtsp://, http://,
    csi:// or a GStreamer pipeline. Unreadable images are named and passed over. Of several FRAMES, each is a source of
    its own; one that fails does not end the others.

    Ctrl-C, SIGTERM or a lost terminal (SIGHUP) ends the run, finishes all files and gives exit status 130, 143 or 129;
    a second signal ends it at once.

    \b
    Example:
      ptedge run car.bundle drive.mp4 --out results --save jsonl,video --collect field
      ptedge run car.bundle rtsp://camera/1 rtsp://camera/2 --collect field --serve 8080
      ptedge run deployment rtsp://camera/1 --probation 3600
      ptedge run s3://fleet/north rtsp://camera/1 --trust owner.pub
    """
    from .run import run_bundle

    options = RunOptions(
        source=source, model=model, output=output, collect=collect, push=push, serve=serve, drift=drift
    )
    report, status = run_bundle(bundle, list(frames), options)
    try:
        if as_json:
            click.echo(json.dumps(report, ensure_ascii=False))
    except (OSError, OutputError) as error:
        if not status:
            raise
        click.echo(f"without a report: {error}", err=True)  # the status says more
    if status:
        sys.exit(status)
