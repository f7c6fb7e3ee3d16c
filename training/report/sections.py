"""The parts of the page that need numbers only: curves, anchors, speed, lineage, settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..curves.read import Curves
from ..curves.terms import ALIGNMENT, DISTILLATION, SUPERVISED, TARGET
from .anchors import anchor_drawing
from .charts import Trace, chart
from .gather import Facts, table_of
from .markup import Markup, element, join, number, table

MONITORS = {  # names in metrics.jsonl: title, unit, the chart begins and ends at
    "monitor/consistency": ("Teacher on weak and strong view", "agreement", 0.0, 1.0),
    "monitor/source_agreement": ("Teacher and the model it started from", "agreement", 0.0, 1.0),
    "monitor/student_agreement": ("Teacher and student", "agreement", 0.0, 1.0),
    "monitor/boxes": ("Boxes a watched frame", "boxes", 0.0, None),
    "monitor/sigma": ("Sigma on watched frames", "share of √area", 0.0, None),
    "class_entropy": ("Entropy of pseudo boxes", "nats", 0.0, None),
}
OF_THE_RUN = {"lr": ("Learning rate", ""), "grad_norm": ("Gradient norm before clipping", "")}
STAGES = {
    "preprocess": "prepare the image",
    "infer": "the network",
    "postprocess": "boxes to pixels",
    "end_to_end": "in all",
}


def missing(what: str, command: str) -> Markup:
    """A sentence on what is not here, and the command that makes it."""
    return element("p", what, " ", element("code", command), class_="missing")


def loss_charts(curves: Curves) -> list[Markup]:
    """Total loss and its terms, source beside target."""
    draw = _over_steps(curves)
    charts = [draw("Total loss", "", [_trace(curves, "loss", "")])]
    for name, (title, unit) in SUPERVISED.items():
        traces = [_trace(curves, name, "source", "before"), _trace(curves, TARGET + name, "target", "after")]
        charts.append(draw(title, unit, traces))
    charts += [draw(title, "", [_trace(curves, name, "")]) for name, title in (DISTILLATION | ALIGNMENT).items()]
    return [drawn for drawn in charts if drawn is not None]


def monitor_charts(curves: Curves) -> list[Markup]:
    """What was watched without labels, pseudo boxes, and the run itself."""
    draw = _over_steps(curves)
    boxes = [_trace(curves, "pseudo_boxes", "all", "1"), _trace(curves, "pseudo_foreground", "objects", "2")]
    charts = [draw("Pseudo boxes an image", "boxes", boxes, low=0)]
    for name, (title, unit, low, high) in MONITORS.items():
        charts.append(draw(title, unit, [_trace(curves, name, "")], low=low, high=high))
    charts += [draw(t, unit, [_trace(curves, name, "")]) for name, (t, unit) in OF_THE_RUN.items()]
    return [drawn for drawn in charts if drawn is not None]


def anchor_part(facts: Facts) -> Markup | None:
    """Anchors of the first and the last logged step, drawn and in numbers."""
    shapes = facts.curves.anchors()[1].tolist() if facts.curves is not None else []
    after = facts.model.get("anchors") or facts.manifest.get("anchors")
    start = facts.start.get("anchors")
    first = start if start else (shapes[0] if len(shapes) else None)
    last = after if after else (shapes[-1] if len(shapes) else None)
    if not first or not last or len(first) != len(last):
        return None
    rows = [
        (
            str(i),
            f"{a[0]:.1f} x {a[1]:.1f}",
            f"{b[0]:.1f} x {b[1]:.1f}",
            f"{100 * (b[0] * b[1] / (a[0] * a[1]) - 1):+.1f} %",
        )
        for i, (a, b) in enumerate(zip(first, last, strict=True), start=1)
        if a[0] * a[1] > 0
    ]
    numbers = table(("anchor", "before", "after", "area"), rows, "Anchors, width x height in input pixels")
    return element("div", anchor_drawing(first, last), numbers, class_="charts")


def speed_part(facts: Facts) -> Markup | None:
    """Latency of each measured bundle and backend."""
    parts = []
    for path, report in facts.benchmarks:
        rows = []
        for run in _tables(report.get("runs")):
            times = table_of(run, "latency_ms")
            cells = [number(table_of(times, stage).get("median"), 1) for stage in STAGES]
            tail = number(table_of(times, "end_to_end").get("p95"), 1)
            rate = number(table_of(run, "throughput").get("images_per_second"), 1)
            rows.append((measured_on(run), *cells, tail, rate))
        heads = ("model and backend", *STAGES.values(), "in all, 95th of 100", "images a second")
        machine = table_of(report, "environment")
        where = machine.get("machine") or machine.get("cpu") or "an unnamed machine"
        gpu = table_of(machine, "gpu").get("name")
        caption = f"Median ms a call on {where}{f', {gpu}' if gpu else ''} ({path.name}, {report.get('created', '')})"
        parts.append(table(heads, rows, caption))
    return join(parts) if parts else None


def measured_on(run: Mapping[str, Any]) -> str:
    """What was measured, in words: its name, where it is no more than the backend's, is left out."""
    words = (run.get("name"), run.get("backend"), run.get("precision"))
    return ", ".join(dict.fromkeys(str(word) for word in words if word))


def training_speed(facts: Facts) -> str | None:
    """How long the run took, in words."""
    seconds, steps = facts.summary.get("seconds"), facts.summary.get("steps")
    if not isinstance(seconds, (int, float)) or not isinstance(steps, int):
        return None
    text = f"The run took {duration(seconds)} for {steps:,} steps"
    host = table_of(facts.summary, "peak_memory_mib").get("host")
    return text + (f" and at most {host / 1024:.1f} GB of memory." if isinstance(host, (int, float)) else ".")


def lineage_part(facts: Facts) -> Markup:
    """From the first checkpoint to the bundle, with hashes."""
    lineage = facts.lineage
    steps = []
    for parent in _list(lineage.get("parents")):
        about = [("sha256", str(parent))]
        if parent == facts.start.get("sha256"):
            about += [("file", str(facts.start.get("path"))), ("trained on", _names(table_of(facts.start, "lineage")))]
        steps.append(_station("source" if parent != facts.start.get("sha256") else "source model", about))
    if facts.model:
        about = [("file", str(facts.model.get("path"))), ("sha256", str(facts.model.get("sha256")))]
        about += [("kind", str(lineage.get("kind"))), ("step", str(lineage.get("step"))), ("from", _names(lineage))]
        steps.append(_station("this run", about))
    if facts.bundle is not None:
        parent = table_of(facts.manifest, "lineage").get("checkpoint")
        about = [("folder", str(facts.bundle)), ("sha256 of the model", facts.bundle_hash)]
        about += [("precision", str(facts.manifest.get("precision"))), ("made from", str(parent))]
        if facts.model and parent and parent != facts.model.get("sha256"):
            about.append(("note", "this bundle was not made from the run's model.pt"))
        steps.append(_station("bundle", about))
    return element("ol", *steps, class_="lineage")


def settings_part(facts: Facts) -> Markup | None:
    """config.toml as it is."""
    if not facts.config:
        return None
    return element("details", element("summary", "config.toml, every setting of the run"), element("pre", facts.config))


def estimate_part(facts: Facts) -> Markup | None:
    """What was estimated without labels, and calibrations: whatever is recorded under such a name."""
    found: dict[str, Any] = {}
    for source in (facts.summary, facts.model, facts.manifest):
        found |= {key: value for key, value in source.items() if _is_estimate(key) and not _is_nothing(value)}
    if not found:
        return None
    rows = [(name, _plain(value)) for key, value in found.items() for name, value in _flat(key, value)]
    return table(("what", "value"), rows, "Estimated without labels, and calibration of sigma")


def duration(seconds: float) -> str:
    """Seconds for people."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def _is_estimate(key: str) -> bool:
    return any(word in key for word in ("estimate", "sigma_scale", "side_offset", "calibrat", "intervals"))


def _is_nothing(value: Any) -> bool:
    """Not known, or a calibration that changes nothing."""
    return value in (None, {}, []) or (
        isinstance(value, (list, tuple)) and len(set(map(str, value)) - {"0.0", "1.0"}) == 0
    )


def _flat(name: str, value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [pair for key, inner in value.items() for pair in _flat(f"{name} {key}", inner)]
    return [(name.replace("_", " "), value)]


def _plain(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(_plain(v) for v in value)
    return f"{value:.4g}" if isinstance(value, float) else value if isinstance(value, str) else json.dumps(value)


def _station(title: str, about: Sequence[tuple[str, str]]) -> Markup:
    rows = [
        element("div", element("dt", name), element("dd", value)) for name, value in about if value not in ("", "None")
    ]
    return element("li", element("b", title), element("dl", *rows))


def _names(lineage: Mapping[str, Any]) -> str:
    return ", ".join(str(Path(name)) for name in map(str, _list(lineage.get("data"))))


def _over_steps(curves: Curves) -> Callable[..., Markup | None]:
    """:func:`chart` with all steps of the run across and its guards marked."""
    steps = [float(line["step"]) for line in curves.lines]
    marks = [(float(trip.step), trip.text) for trip in curves.trips]
    return partial(chart, span=(min(steps), max(steps)) if steps else None, marks=marks)


def _trace(curves: Curves, name: str, label: str, tone: str = "1") -> Trace:
    series = curves.series(name)
    return Trace(label, series.steps, series.values, tone)


def _tables(value: Any) -> list[Mapping[str, Any]]:
    return [entry for entry in _list(value) if isinstance(entry, Mapping)]


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []
