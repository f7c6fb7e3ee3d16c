"""``ptedge run``: puts sources, model and sinks together around the pipeline."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2

from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.errors import PtedgeError
from ptedge.files import make_output_folder
from ptedge.frames.address import is_live
from ptedge.frames.source import Flip, FrameSource, open_frames
from ptedge.frames.status import LiveOptions, SourceEvent

from .inputs import choose_realtime, open_sources
from .memory import limit_arenas
from .page.serve import LiveServer, parse_address
from .page.status import Status
from .page.view import LiveView
from .pipeline import Pipeline, Rules
from .report import Progress, log, make_report, tell
from .signals import stop_on_signals
from .sinks.choose import default_saves, open_sinks
from .sinks.collect import FieldSink, Policy
from .sinks.push import open_push
from .stats import SourceStats, Stats

DEFAULT_OUT = Path("runs/detect")
LIVE_FILL = 0.05  # seconds that a batch waits for frames of live sources in lossless mode


@dataclass(frozen=True)
class RunOptions:
    """What ``ptedge run`` was told; see its ``--help``.

    Attributes:
        out: folder for results; ``None`` for the default.
        save: names of sinks; ``None`` for the default of the kind of source.
        collect: field folder, or ``None``.
        realtime: drop frames; ``None`` for live sources only.
        limit: frames of each source at most.
        backend: ``auto``, ``tensorrt``, ``cuda`` or ``cpu``.
        threads: CPU threads of the model.
        min_score: detections below are left out.
        draw_score: detections below are left out of pictures.
        policy: what to collect.
        strict: one failing source of several makes the exit status 1.
        start: frames of each source passed over at the beginning.
        stride: every so-many-th from there.
        rate: frames a second of each source at most.
        loop: begin files again at their end.
        flip: ``horizontal``, ``vertical`` or ``both``.
        push: address to send results to, or ``None``.
        push_token: for it.
        serve: ``[HOST:]PORT`` of the live page, or ``None``.
        serve_token: what its visitors must show.
    """

    out: Path | None = None
    save: tuple[str, ...] | None = None
    collect: Path | None = None
    realtime: bool | None = None
    limit: int | None = None
    backend: str = "auto"
    threads: int | None = None
    min_score: float = 0.0
    draw_score: float = 0.3
    policy: Policy = field(default_factory=Policy)
    strict: bool = False
    start: int = 0
    stride: int = 1
    rate: float | None = None
    loop: bool = False
    flip: Flip | None = None
    push: str | None = None
    push_token: str | None = None
    serve: str | None = None
    serve_token: str | None = None


def run_bundle(bundle: Path, specs: list[str], options: RunOptions) -> tuple[dict[str, Any], int]:
    """Detect on frames and write the results.

    Args:
        bundle: folder or ``.onnx`` file.
        specs: sources of frames, at least one.
        options: everything else.

    Returns:
        (report, exit status): the status is 0; 128 + signal when a signal ended the run (the files are whole then); 1
        when sources failed and ``strict`` is set.

    Raises:
        PtedgeError: all sources, the output or the bundle are at fault; files written so far are finished.
    """
    limit_arenas()
    where = parse_address(options.serve, options.serve_token) if options.serve is not None else None
    with contextlib.ExitStack() as opened:
        sources = open_sources(specs, lambda spec: _open(spec, options))
        for about in sources:
            if about.source is not None:
                opened.callback(about.source.close)
        realtime = choose_realtime(sources, options.realtime)
        kinds = [about.kind for about in sources]
        save = options.save or (() if options.collect and not options.out else default_saves(kinds))
        out = make_output_folder(options.out or DEFAULT_OUT) if save else None
        if options.collect is not None:
            make_output_folder(options.collect)
        predictor = opened.enter_context(contextlib.closing(BundlePredictor(bundle, options.backend, options.threads)))
        if predictor.runner.backend == "cpu":
            # OpenCV's own threads would take turns with the model's; the stages already run beside each other
            cv2.setNumThreads(1)
        for about in sources:
            log(f"{about.shown}: {about.kind if about.source else about.error}")
        log(f"on {predictor.runner.backend} ({predictor.runner.reason})")
        # whatever may refuse comes before results of an earlier run are overwritten
        collector = _open_collector(options, predictor)
        push = open_push(options.push, options.push_token, predictor.model_hash) if options.push else None
        stats, view = Stats(sources), LiveView()
        status = Status(stats, describe(predictor), realtime, collector, push)
        if where is not None:
            server = LiveServer(*where, options.serve_token, status, view, [about.name for about in sources])
            opened.callback(server.close)
            log(f"live view at {server.address}" + ("?token=TOKEN" if options.serve_token else ""))
        sinks = open_sinks(save, out, sources, predictor.class_names) if out is not None else []
        sinks += [sink for sink in (collector, push, view if where is not None else None) if sink is not None]
        stop = opened.enter_context(stop_on_signals())
        progress = Progress(_count(sources)) if sys.stderr.isatty() else None
        frames = [about.source if about.source is not None else () for about in sources]
        pipeline = Pipeline(frames, predictor, sinks, stats, _rules(sources, options, realtime), stop.event, progress)
        status.waiting = lambda: pipeline.waiting
        try:
            pipeline.run()
        except PtedgeError:
            lost = stats.ages.count - stats.frames
            log(f"ended early: {stats.frames} frames written, {lost} detected but not written")
            raise
    report = make_report(stats, predictor, sinks, collector, push, stop)
    tell(report, realtime)
    failed = options.strict and any(about.error for about in sources)
    return report, stop.exit_status or int(failed)


def _open(spec: str, options: RunOptions) -> FrameSource:
    # a camera's reader keeps the newest frame by itself, unless every frame is wanted
    live = LiveOptions(newest=options.realtime is not False, on_event=_tell_event)
    return open_frames(
        spec,
        start=options.start,
        stride=options.stride,
        limit=options.limit,
        loop=options.loop and not is_live(spec),
        rate=options.rate,
        flip=options.flip,
        live=live,
    )


def _tell_event(event: SourceEvent) -> None:
    if event.kind in ("lost", "stalled", "reconnected", "resized"):
        log(event.text)


def _rules(sources: list[SourceStats], options: RunOptions, realtime: bool) -> Rules:
    live = any(about.kind == "live" for about in sources)
    paced = frozenset(i for i, about in enumerate(sources) if realtime and about.kind != "live")
    fill = 0.0 if realtime else LIVE_FILL if live else None
    return Rules(realtime, paced, fill, options.min_score, options.draw_score)


def _count(sources: list[SourceStats]) -> int | None:
    counts = [about.source.count for about in sources if about.source is not None]
    return sum(count or 0 for count in counts) if None not in counts else None


def describe(predictor: BundlePredictor) -> dict[str, Any]:
    """What the live page says of the model."""
    return {
        "hash": predictor.model_hash,
        "classes": list(predictor.class_names),
        "backend": predictor.runner.backend,
        "reason": predictor.runner.reason,
        "input_size": list(predictor.input_size),
        "precision": predictor.manifest.precision,
    }


def _open_collector(options: RunOptions, predictor: BundlePredictor) -> FieldSink | None:
    if options.collect is None:
        return None
    manifest = predictor.manifest
    preprocessing = {"letterbox": manifest.letterbox, "input_size": list(manifest.input_size), "color": manifest.color}
    return FieldSink(options.collect, options.policy, predictor.class_names, predictor.model_hash, preprocessing)
