"""``ptedge run``: puts sources, model and sinks together around the pipeline."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cv2

from ptedge.files import make_output_folder
from ptedge.frames import FrameSource, open_frames
from ptedge.runner import BundlePredictor

from .collect import FieldSink, Policy
from .inputs import choose_realtime, open_sources
from .outputs import default_saves, open_sinks
from .pipeline import Pipeline, Rules
from .report import Progress, log, make_report, tell
from .signals import stop_on_signals
from .sinks import Sink
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
    sources = open_sources(specs, lambda spec: _open(spec, options))
    realtime = choose_realtime(sources, options.realtime)
    kinds = [about.kind for about in sources]
    save = options.save or (() if options.collect and not options.out else default_saves(kinds))
    out = make_output_folder(options.out or DEFAULT_OUT) if save else None
    if options.collect is not None:
        make_output_folder(options.collect)
    # OpenCV's own threads would take turns with the model's; the stages already run beside each other
    cv2.setNumThreads(1)
    stats = Stats(sources)
    with contextlib.closing(BundlePredictor(bundle, options.backend, options.threads)) as predictor:
        for about in sources:
            log(f"{about.shown}: {about.kind if about.source else about.error}")
        log(f"on {predictor.runner.backend} ({predictor.runner.reason})")
        collector = _open_collector(options, predictor)  # it may refuse its folder, so before results are overwritten
        sinks = open_sinks(save, out, sources, predictor.class_names) if out is not None else []
        sinks += [collector] if collector is not None else []
        with stop_on_signals() as stop:
            pipeline = Pipeline(
                [about.source if about.source is not None else () for about in sources],
                predictor,
                sinks,
                stats,
                _rules(sources, options, realtime),
                stop.event,
                Progress(_count(sources)) if sys.stderr.isatty() else None,
            )
            pipeline.run()
    report = make_report(stats, predictor, sinks, collector, stop)
    tell(report, realtime)
    failed = options.strict and any(about.error for about in sources)
    return report, stop.exit_status or int(failed)


def _open(spec: str, options: RunOptions) -> FrameSource:
    return open_frames(spec, limit=options.limit)


def _rules(sources: list[SourceStats], options: RunOptions, realtime: bool) -> Rules:
    live = any(about.kind == "live" for about in sources)
    paced = frozenset(i for i, about in enumerate(sources) if realtime and about.kind == "video")
    fill = 0.0 if realtime else LIVE_FILL if live else None
    return Rules(realtime, paced, fill, options.min_score, options.draw_score)


def _count(sources: list[SourceStats]) -> int | None:
    counts = [about.source.count for about in sources if about.source is not None]
    return sum(count or 0 for count in counts) if None not in counts else None


def _open_collector(options: RunOptions, predictor: BundlePredictor) -> FieldSink | None:
    if options.collect is None:
        return None
    manifest = predictor.manifest
    preprocessing = {"letterbox": manifest.letterbox, "input_size": list(manifest.input_size), "color": manifest.color}
    return FieldSink(options.collect, options.policy, predictor.class_names, predictor.model_hash, preprocessing)


__all__ = ["RunOptions", "Sink", "run_bundle"]
