"""The state of a run at this moment, for the live page (JSON) and for Prometheus (text)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ptedge import __version__
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.machine.memory import resident_memory

from ..counters import BOUNDS, RunCounters, RunSource, Times
from ..deployment.follow import Follower
from ..sinks.collect import FieldSink
from ..sinks.push import PushSink
from ..slot import LoadedModel

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass
class RunStatus:
    """What can be asked about a run.

    Attributes:
        counters: its counters.
        model: ``hash``, ``classes``, ``backend``, ``reason``, ``input_size``, ``precision``.
        realtime: frames are dropped to keep up.
        collector: field folder, or ``None``.
        push: push sink, or ``None``.
        waiting: tells how many items wait between the stages now.
        began: Unix seconds.
        follower: of a deployment, or ``None``.
    """

    counters: RunCounters
    model: Mapping[str, Any]
    realtime: bool
    collector: FieldSink | None = None
    push: PushSink | None = None
    waiting: Callable[[], Mapping[str, int]] = dict
    began: float = field(default_factory=time.time)
    follower: Follower | None = None

    def take_model(self, model: LoadedModel) -> None:
        """Another model runs from now on."""
        self.model = model_facts(model.predictor)

    def to_json(self) -> dict[str, Any]:
        """What ``/status.json`` says."""
        counters = self.counters
        return {
            "ptedge": __version__,
            "model": dict(self.model),
            "deployment": self.follower.to_json() if self.follower is not None else None,
            "began": round(self.began, 3),
            "seconds": round(counters.clock() - counters.started, 1),
            "realtime": self.realtime,
            "rates": {"in": round(counters.rate_in.value, 2), "inferred": round(counters.rate_out.value, 2)},
            "frames": counters.frames,
            "detections": counters.detections,
            "dropped": counters.dropped,
            "age_ms": counters.ages.milliseconds(),
            "infer_ms": counters.infer.milliseconds(),
            "waiting": dict(self.waiting()),
            "classes": dict(counters.classes),
            "drift": counters.drift_json(),
            "sources": [about.to_json() for about in counters.sources],
            "collected": _collected(self.collector),
            "push": self.push.to_json() if self.push is not None else None,
            "memory_mb": round(resident_memory() / 1e6, 1),
        }

    def metrics(self) -> str:
        """What ``/metrics`` says, in Prometheus' text format."""
        return "".join(self._families())

    def _families(self) -> Iterator[str]:
        counters = self.counters
        about = {key: str(self.model[key]) for key in ("hash", "backend", "precision")}
        yield _family("build_info", "gauge", "The model that runs.", [({"version": __version__, **about}, 1)])
        yield _family("start_time_seconds", "gauge", "When the run began, Unix time.", [({}, self.began)])
        yield _family("memory_resident_bytes", "gauge", "Resident memory of the process.", [({}, resident_memory())])
        yield from _source_families(counters.sources)
        classes = [({"class": name}, count) for name, count in sorted(dict(counters.classes).items())]
        yield _family("detections_total", "counter", "Detections by class.", classes)
        yield _histogram("result_age_seconds", "From a frame's arrival to its detections.", counters.ages)
        yield _histogram("inference_seconds", "The model alone, one call.", counters.infer)
        waiting = [({"stage": name}, count) for name, count in self.waiting().items()]
        yield _family("waiting", "gauge", "Items that wait between two stages.", waiting)
        changes = [
            ({"measure": name}, value["change"])
            for name, value in counters.drift.to_json().items()
            if isinstance(value, dict) and value["change"] is not None
        ]
        text = "Relative change of a running mean against the first minutes of the run; see docs/runtime.md."
        yield _family("drift_change_ratio", "gauge", text, changes)
        if counters.watch is not None:
            yield from _drift_families(counters.watch.to_json())
        if self.collector is not None:
            kept = [({"why": why}, count) for why, count in sorted(dict(self.collector.counters).items())]
            yield _family("collected_frames_total", "counter", "Frames by what the collector did with them.", kept)
            evicted = [({"strategy": name}, count["evicted"]) for name, count in self.collector.strategies.items()]
            yield _family("evicted_frames_total", "counter", "Frames that made way, by strategy.", evicted)
            yield _family("field_images", "gauge", "Images in the field folder.", [({}, self.collector.images)])
            yield _family("field_bytes", "gauge", "Bytes of those images.", [({}, self.collector.size)])
        if self.push is not None:
            for key in ("sent", "dropped", "refused", "retries"):
                yield _family(f"push_{key}_total", "counter", f"Push: {key}.", [({}, getattr(self.push, key))])


def model_facts(predictor: BundlePredictor) -> dict[str, Any]:
    """What the live page says of the model."""
    return {
        "hash": predictor.model_hash,
        "classes": list(predictor.class_names),
        "backend": predictor.runner.backend,
        "reason": predictor.runner.reason,
        "input_size": list(predictor.input_size),
        "precision": predictor.manifest.precision,
    }


def _source_families(sources: Sequence[RunSource]) -> Iterator[str]:
    """What is counted of each source."""
    for name, help_text, attribute in (
        ("frames_read_total", "Frames that arrived from the source.", "read"),
        ("frames_total", "Frames detected and written.", "frames"),
        ("frames_dropped_total", "Frames passed over to keep up.", "dropped"),
    ):
        samples = [({"source": s.name}, float(getattr(s, attribute))) for s in sources]
        yield _family(name, "counter", help_text, samples)
    skipped = [({"source": s.name}, len(s.skipped)) for s in sources]
    yield _family("frames_skipped_total", "counter", "Frames that could not be read.", skipped)
    up = [({"source": s.name}, int(not s.ended and s.live.get("state", "running") == "running")) for s in sources]
    yield _family("source_up", "gauge", "1 while the source gives frames.", up)
    live = [(s.name, s.live) for s in sources if s.live]
    for key in ("reconnects", "stalls", "corrupt", "failures"):
        if live:
            samples = [({"source": name}, float(told[key])) for name, told in live]
            yield _family(f"source_{key}_total", "counter", f"{key.capitalize()} of a live source.", samples)


def _drift_families(drift: Mapping[str, Any]) -> Iterator[str]:
    """What is told of drift against the place that the model was made for; nothing without a reference."""
    if drift["reference"] is None:
        return
    sources = drift["sources"]
    on = [({"source": about["name"]}, int(about["alarm"] is not None)) for about in sources]
    yield _family("drift_alarm", "gauge", "1 while frames are not as where the model was made.", on)
    alarms = [({"source": about["name"]}, about["alarms"]) for about in sources]
    yield _family("drift_alarms_total", "counter", "Alarms of drift.", alarms)
    looked = [({"source": about["name"]}, about["frames"]) for about in sources]
    yield _family("drift_frames_total", "counter", "Frames looked at for drift.", looked)
    moved = [
        ({"source": about["name"], "measure": one["measure"], "of": one["of"] or "", "side": one["side"]}, one["share"])
        for about in sources
        if about["alarm"] is not None
        for one in about["alarm"]["moved"]
    ]
    yield _family("drift_moved_ratio", "gauge", "Share of frames that lie beyond what was usual.", moved)


def _collected(collector: FieldSink | None) -> dict[str, Any] | None:
    if collector is None:
        return None
    strategies = {name: dict(counts) for name, counts in dict(collector.strategies).items()}
    counts = {"images": collector.kept, "counters": dict(collector.counters), "strategies": strategies}
    return {"folder": str(collector.path), **counts}


def _family(name: str, kind: str, text: str, samples: Sequence[tuple[dict[str, str], float]]) -> str:
    head = f"# HELP ptedge_{name} {text}\n# TYPE ptedge_{name} {kind}\n"
    return head + "".join(f"ptedge_{name}{_labels(labels)} {_number(value)}\n" for labels, value in samples)


def _histogram(name: str, text: str, times: Times) -> str:
    counts, count, total = times.buckets()
    bounds = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
    lines = [f'ptedge_{name}_bucket{{le="{bound}"}} {value}\n' for bound, value in zip(bounds, counts, strict=True)]
    head = f"# HELP ptedge_{name} {text}\n# TYPE ptedge_{name} histogram\n"
    return head + "".join(lines) + f"ptedge_{name}_sum {_number(total)}\nptedge_{name}_count {count}\n"


def _labels(labels: Mapping[str, str]) -> str:
    parts = [f'{name}="{_escaped(value)}"' for name, value in labels.items()]
    return f"{{{','.join(parts)}}}" if parts else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else repr(float(value))
