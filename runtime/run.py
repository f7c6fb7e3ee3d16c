"""``ptedge run``: puts source, model and sinks together around the loop, and tells how it went."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from ptedge.errors import InputError
from ptedge.files import make_output_folder
from ptedge.frames import FrameSource, open_frames
from ptedge.runner import BundlePredictor

from .collect import FieldSink, Policy
from .loop import Counters, run_loop
from .signals import Stop, stop_on_signals
from .sinks import CocoSink, CsvSink, ImagesSink, JsonlSink, Sink, without_password
from .video import VideoSink

DEFAULT_OUT = Path("runs/detect")
SKIPPED_SHOWN = 10
PROGRESS_EVERY = 1.0  # seconds


@dataclass(frozen=True)
class RunOptions:
    """What ``ptedge run`` was told; see its ``--help``.

    Attributes:
        out: folder for results; ``None`` for the default.
        save: names of sinks; ``None`` for the default of the kind of source.
        collect: field folder, or ``None``.
        realtime: drop frames; ``None`` for live sources only.
        limit: frames at most.
        backend: ``auto``, ``tensorrt``, ``cuda`` or ``cpu``.
        threads: CPU threads of the model.
        min_score: detections below are left out.
        draw_score: detections below are left out of pictures.
        policy: what to collect.
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


def run_bundle(bundle: Path, spec: str, options: RunOptions) -> tuple[dict[str, Any], int]:
    """Detect on frames and write the results.

    Args:
        bundle: folder or ``.onnx`` file.
        spec: source of frames.
        options: everything else.

    Returns:
        (report, exit status): the status is 0, or 128 + signal when a signal ended the run; the files are whole then.

    Raises:
        PtedgeError: the source, the output or the bundle is at fault; files written so far are finished.
    """
    source = open_frames(spec, limit=options.limit)
    moving = source.kind in ("video", "live")
    realtime = source.kind == "live" if options.realtime is None else options.realtime
    if realtime and not moving:
        raise InputError(f"--realtime needs a video or a live source; {spec} is a {source.kind} without a clock")
    save = options.save or _default_save(moving, options)
    out = make_output_folder(options.out or DEFAULT_OUT) if save else None
    if options.collect is not None:
        make_output_folder(options.collect)
    predictor = BundlePredictor(bundle, options.backend, options.threads)
    try:
        _log(f"{without_password(spec)}: {source.kind}, on {predictor.runner.backend} ({predictor.runner.reason})")
        collector = _open_collector(options, predictor)  # it may refuse its folder, so before results are overwritten
        sinks = [_open_sink(name, out, source, predictor) for name in save] if out is not None else []
        if collector is not None:
            sinks.append(collector)
        with stop_on_signals() as stop:
            counters = run_loop(
                source,
                predictor,
                sinks,
                stop=stop.event,
                realtime=realtime,
                pace=realtime and source.kind == "video",
                min_score=options.min_score,
                draw_score=options.draw_score,
                progress=_Progress(source.count) if sys.stderr.isatty() else None,
            )
    finally:
        predictor.close()
    report = _report(counters, source, predictor, sinks, stop)
    if collector is not None:
        report["collected"] = {"folder": str(collector.path), "images": collector.kept, **dict(collector.counters)}
    _tell(report)
    return report, stop.exit_status


def _default_save(moving: bool, options: RunOptions) -> tuple[str, ...]:
    if options.collect is not None and options.out is None:
        return ()  # who only collects gets no second copy of everything
    return ("jsonl", "video") if moving else ("jsonl", "images")


def _open_sink(name: str, out: Path, source: FrameSource, predictor: BundlePredictor) -> Sink:
    if name == "jsonl":
        return JsonlSink(out / "detections.jsonl")
    if name == "csv":
        return CsvSink(out / "detections.csv")
    if name == "coco":
        return CocoSink(out / "coco.json", predictor.class_names, source.spec)
    if name == "video":
        return VideoSink(out / "video.mp4", source.fps)
    return ImagesSink(out / "images")


def _open_collector(options: RunOptions, predictor: BundlePredictor) -> FieldSink | None:
    if options.collect is None:
        return None
    manifest = predictor.manifest
    preprocessing = {"letterbox": manifest.letterbox, "input_size": list(manifest.input_size), "color": manifest.color}
    return FieldSink(options.collect, options.policy, predictor.class_names, predictor.model_hash, preprocessing)


def _report(
    counters: Counters, source: FrameSource, predictor: BundlePredictor, sinks: list[Sink], stop: Stop
) -> dict[str, Any]:
    return {
        "frames": counters.frames,
        "detections": counters.detections,
        "dropped": counters.dropped,
        "skipped": [{"file": name, "reason": reason} for name, reason in source.skipped],
        "seconds": round(counters.seconds, 3),
        "fps": round(counters.fps, 3),
        "backend": predictor.runner.backend,
        "reason": predictor.runner.reason,
        "model_hash": predictor.model_hash,
        "unconverged": predictor.unconverged,
        "interrupted": stop.signal != 0,
        "outputs": [str(sink.path) for sink in sinks],
    }


def _tell(report: dict[str, Any]) -> None:
    skipped = report["skipped"]
    for entry in skipped[:SKIPPED_SHOWN]:
        _log(f"skipped: {entry['reason']}")
    if len(skipped) > SKIPPED_SHOWN:
        _log(f"skipped: {len(skipped) - SKIPPED_SHOWN} more")
    line = f"{report['frames']} frames, {report['detections']} detections, {report['fps']:.1f} frames/s"
    line += f", {len(skipped)} skipped" if skipped else ""
    line += f", {report['dropped']} dropped to keep up" if report["dropped"] else ""
    _log(("interrupted: " if report["interrupted"] else "") + line)
    if report["unconverged"]:
        _log(f"in {report['unconverged']} frames suppression stopped early; overlapping boxes may remain there")
    if "collected" in report:
        _log(f"collected {report['collected']['images']} images into {report['collected']['folder']}")
    if report["outputs"]:
        _log("wrote " + ", ".join(report["outputs"]))


def _log(text: str) -> None:
    click.echo(text, err=True)


class _Progress:
    """A line on the terminal that is overwritten, once a second at most."""

    def __init__(self, count: int | None) -> None:
        self._of = f"/{count}" if count else ""
        self._last = time.monotonic()
        self._start = self._last

    def __call__(self, counters: Counters) -> None:
        now = time.monotonic()
        if now - self._last >= PROGRESS_EVERY:
            self._last = now
            rate = counters.frames / (now - self._start)
            click.echo(f"\r{counters.frames}{self._of} frames, {rate:.1f} frames/s ", err=True, nl=False)
