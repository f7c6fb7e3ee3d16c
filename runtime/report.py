"""How a run went: as JSON, and as lines for a person."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ptedge.files import shown_name
from ptedge.signals import Stop

from .counters import RunCounters
from .sinks.choose import left_out, written
from .sinks.collect import FieldSink
from .sinks.files import Sink
from .sinks.push import PushSink
from .slot import ModelSlot

SKIPPED_SHOWN = 10


def run_report(
    counters: RunCounters,
    models: ModelSlot,
    sinks: Sequence[Sink],
    collector: FieldSink | None,
    push: PushSink | None,
    stop: Stop,
) -> dict[str, Any]:
    """What ``ptedge run --json`` prints."""
    predictor = models.predictor
    report: dict[str, Any] = {
        "frames": counters.frames,
        "detections": counters.detections,
        "dropped": counters.dropped,
        "skipped": [
            {"file": shown_name(name), "reason": shown_name(reason)}
            for about in counters.sources
            for name, reason in about.skipped
        ],
        "seconds": round(counters.seconds, 3),
        "fps": round(counters.fps, 3),
        "age_ms": counters.ages.milliseconds(),
        "infer_ms": counters.infer.milliseconds(),
        "sources": [about.to_json() for about in counters.sources],
        "backend": predictor.runner.backend,
        "reason": predictor.runner.reason,
        "model_hash": predictor.model_hash,
        "unconverged": models.unconverged,
        "drift": counters.drift_json(),
        "interrupted": stop.signal != 0,
        "outputs": written(sinks),
        "left_out": {name: {"frames": left.count, "first": left.first} for name, left in left_out(sinks).items()},
    }
    if collector is not None:
        report["collected"] = {"folder": str(collector.path), "images": collector.kept, **dict(collector.counters)}
    if push is not None:
        report["push"] = push.to_json()
    return report


def tell(report: dict[str, Any], realtime: bool) -> None:
    """Say on stderr how it went."""
    skipped, sources = report["skipped"], report["sources"]
    for entry in skipped[:SKIPPED_SHOWN]:
        log(f"skipped: {entry['reason']}")
    if len(skipped) > SKIPPED_SHOWN:
        log(f"skipped: {len(skipped) - SKIPPED_SHOWN} more")
    for about in sources:
        if about["error"]:
            log(f"failed: {about['error']}")
    if len(sources) > 1:
        for about in sources:
            log(f"{about['name']}: {about['frames']} frames, {about['detections']} detections")
    dim = sum(about["dim"] for about in sources)
    if dim:
        log(f"{dim} images of 16 bits use only the lowest 12 and came out nearly black; ptedge data check names such")
    line = f"{report['frames']} frames, {report['detections']} detections, {report['fps']:.1f} frames/s"
    line += f", {len(skipped)} skipped" if skipped else ""
    line += f", {report['dropped']} dropped to keep up" if report["dropped"] else ""
    if realtime and report["age_ms"]:
        line += f", detected {report['age_ms']['p50']:.0f} ms after arrival (99 %: {report['age_ms']['p99']:.0f} ms)"
    log(("interrupted: " if report["interrupted"] else "") + line)
    if report["unconverged"]:
        log(f"in {report['unconverged']} frames suppression stopped early; overlapping boxes may remain there")
    _tell_drift(report["drift"])
    _tell_outputs(report)


def _tell_drift(drift: dict[str, Any]) -> None:
    """What became of the alarms; each was told when it began."""
    for source in drift.get("sources", []):
        if source["alarms"]:
            still = "one is still on" if source["alarm"] else "all are over"
            log(f"drift of {source['name']}: {source['alarms']} alarms in {source['frames']} frames looked at; {still}")


def _tell_outputs(report: dict[str, Any]) -> None:
    for name, left in report["left_out"].items():
        log(f"{name} lacks {left['frames']} frames that could not be written; the first: {left['first']}")
    if "collected" in report:
        log(f"collected {report['collected']['images']} images into {report['collected']['folder']}")
    if "push" in report:
        push = report["push"]
        why = "".join(f"; {count} {reason}" for reason, count in push["why"].items())
        last = f"; the last fault: {push['error']}" if push["dropped"] and push["error"] else ""
        log(f"pushed {push['sent']} results to {push['to']}{why}{last}")
    if report["outputs"]:
        log("wrote " + ", ".join(report["outputs"]))


def log(text: str) -> None:
    """A line on stderr."""
    click.echo(text, err=True)
