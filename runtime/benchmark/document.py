"""A benchmark's report as it is read back from its file; ``benchmark.schema.json`` says the same to other programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeAlias

from ptedge.config import from_dict, require, require_one_of
from ptedge.errors import ConfigError, InputError
from ptedge.files import read_bounded

from .measure import MEASURED, STAGES
from .report import SCHEMA

Number: TypeAlias = int | float
MOST_BYTES = 64 << 20  # of a report; one of a minute has 50 kB
PRECISIONS = ("fp32", "fp16", "int8")


@dataclass(frozen=True)
class Frames:
    """What was shown to the models: where from, how many, (height, width) of the first."""

    source: str
    count: int
    size: tuple[int, int]

    def __post_init__(self) -> None:
        for name, value in (("count", self.count), ("size", min(self.size))):
            require(name, value, 1)


@dataclass(frozen=True)
class Gpu:
    """As nvidia-smi tells."""

    name: str | None
    driver: str | None
    memory_mb: Number | None
    power_limit_w: Number | None
    sm_mhz_max: Number | None
    persistence: str | None


@dataclass(frozen=True)
class Environment:
    """The machine and its settings, as :func:`ptedge.runtime.benchmark.machine.environment` gives them."""

    system: str
    machine: str | None
    cpu: str
    cores: int | None
    cores_usable: int | None
    cpu_quota: Number | None
    cpu_governor: str | None
    cpu_mhz_max: Number | None
    load: Number | None
    threads: int | None
    gpu: Gpu | None
    jetson_release: str | None
    power_mode: str | None
    cuda: str | None
    versions: dict[str, str | None]


@dataclass(frozen=True)
class Reading:
    """What changed meanwhile, ``at`` seconds after the models were loaded; ``None`` where the machine does not tell."""

    at: Number
    load: Number | None = None
    cpu_mhz: Number | None = None
    gpu_mhz: Number | None = None
    temperature_c: dict[str, Number] | None = None
    rail_w: dict[str, Number] | None = None
    over_current_events: int | None = None
    gpu_c: Number | None = None
    gpu_w: Number | None = None
    gpu_sm_mhz: Number | None = None
    gpu_memory_mhz: Number | None = None
    gpu_memory_used_mb: Number | None = None
    gpu_throttle: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Throughput:
    """Of all turns; of the engine alone where that was measured."""

    images_per_second: Number
    calls_per_second: Number
    engine_images_per_second: Number | None

    def __post_init__(self) -> None:
        _require_not_negative(self)


@dataclass(frozen=True)
class StageTimes:
    """Location and spread of a stage in ms a call; ``cv`` is the standard deviation divided by the mean."""

    min: Number
    mean: Number
    median: Number
    p90: Number
    p95: Number
    p99: Number
    max: Number
    cv: Number

    def __post_init__(self) -> None:
        _require_not_negative(self)


@dataclass(frozen=True)
class RoundTimes:
    """One turn: what comparisons need of it."""

    calls: int
    seconds: Number
    images_per_second: Number
    median_ms: dict[str, Number]

    def __post_init__(self) -> None:
        _require_not_negative(self)


@dataclass(frozen=True)
class RatioOf:
    """A run by the first one; the bounds are ``None`` with too few rounds."""

    ratio: Number
    low: Number | None
    high: Number | None
    differs: bool | None

    def __post_init__(self) -> None:
        _require_not_negative(self)


@dataclass(frozen=True)
class AgainstFirst:
    """A run compared with the first one of its report, which is named."""

    name: str
    ms_per_image: RatioOf
    images_per_second: RatioOf


@dataclass(frozen=True)
class Run:
    """A bundle on a backend, as :func:`ptedge.runtime.benchmark.report.run_entry` gives it."""

    name: str
    model_hash: str
    precision: str
    input_size: tuple[int, int]
    batch: int
    backend: str
    reason: str
    engine: str | None
    launch: str | None
    memory: str | None
    slots: int
    load_seconds: Number
    warm_up_calls: int
    calls: int
    seconds: Number
    throughput: Throughput
    latency_ms: dict[str, StageTimes | None]
    ms_per_image: Number
    detections_per_image: Number
    cpu_cores: Number
    per_round: tuple[RoundTimes, ...]
    unstable: tuple[str, ...]
    absent: dict[str, str]
    warnings: tuple[str, ...]
    against_first: AgainstFirst | None

    def __post_init__(self) -> None:
        require_one_of("precision", self.precision, PRECISIONS)
        require_one_of("backend", self.backend, MEASURED)
        for name in ("batch", "slots", "calls"):
            require(name, getattr(self, name), 1)
        require("input_size", min(self.input_size), 1)
        _require_not_negative(self)
        for name in self.unstable:
            require_one_of("unstable", name, STAGES)
        if set(self.latency_ms) != set(STAGES):
            raise ValueError(
                f"latency_ms has the stages {', '.join(self.latency_ms)}; it must have {', '.join(STAGES)}"
            )
        if not self.per_round:
            raise ValueError("per_round is empty: a run without rounds")


@dataclass(frozen=True)
class Skipped:
    """What could not be measured, and why."""

    bundle: str
    backend: str
    why: str


@dataclass(frozen=True)
class Report:
    """Everything measured, as :func:`ptedge.runtime.benchmark.report.benchmark_report` gives it."""

    schema: str
    created: str
    seconds: Number
    warm_up: Number
    frames: Frames
    rounds: int
    included: dict[str, str]
    environment: Environment
    readings: tuple[Reading, ...]
    runs: tuple[Run, ...]
    skipped: tuple[Skipped, ...]
    warnings: tuple[str, ...]

    def __post_init__(self) -> None:
        require("rounds", self.rounds, 1)
        _require_not_negative(self)
        if not self.runs:
            raise ValueError("runs is empty: nothing was measured")


def read_report(path: Path) -> Report:
    """A report that ``ptedge benchmark --json`` or ``--out`` wrote.

    Args:
        path: file.

    Raises:
        InputError: unreadable, no JSON, or not such a report.
    """
    again = "Write one: ptedge benchmark BUNDLE --out FILE"
    try:
        values = json.loads(read_bounded(path, MOST_BYTES), parse_constant=_refuse)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}. {again}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not a JSON document: {error}. {again}") from None
    if not isinstance(values, dict) or not str(values.get("schema", "")).startswith("ptedge.benchmark/"):
        raise InputError(f"{path} is no report of ptedge benchmark. {again}")
    if values["schema"] != SCHEMA:
        raise InputError(f"{path} is of schema {values['schema']}, this ptedge reads {SCHEMA}. Measure again")
    try:
        return parse_report(values, str(path))
    except ConfigError as error:
        raise InputError(
            f"{path} is a damaged report: {error}. Measure again: ptedge benchmark BUNDLE --out FILE"
        ) from None


def parse_report(values: Mapping[str, Any], where: str) -> Report:
    """A report from plain values, as JSON gives them.

    Args:
        values: of the document.
        where: file, for messages.

    Raises:
        ConfigError: unknown or missing key, wrong type or value out of range.
    """
    return from_dict(Report, values, where)


def _require_not_negative(part: Any) -> None:
    """Times, rates and counts are not below 0; NaN is neither."""
    for field in fields(part):
        value = getattr(part, field.name)
        for number in value.values() if isinstance(value, dict) else (value,):
            if isinstance(number, (int, float)):
                require(field.name, number, 0)


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number")
