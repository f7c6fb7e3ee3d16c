"""The runs of a study: which command makes each, where it lies, what it starts from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from ptedge.config import read_toml
from ptedge.errors import ConfigError, InputError

from .load import settings_of, unknown_row
from .plan import Row, Study, slug

_PARTS = {"train": ("source",), "oracle": ("oracle",), "adapt": ("source", "frames"), "source_free": ("frames",)}
NO_MATTER = ("workers", "curves")  # settings that change no weight


@dataclass(frozen=True)
class Job:
    """One run: a row with a seed.

    Attributes:
        row: of the study.
        seed: of the run.
        folder: its RUN folder.
        start: its start's job, or ``None``.
        words: the ``ptedge`` command without ``--resume``.
        steps: optimiser steps; long runs begin first.
        labels: the labelled frames that it is given, made by the ``ptedge`` command ``draw``; ``None`` for none.
        draw: words of that command.
        fingerprint: of all settings that make it what it is, its start's included.
    """

    row: Row
    seed: int
    folder: Path
    start: Job | None
    words: tuple[str, ...]
    steps: int
    fingerprint: str
    labels: Path | None = None
    draw: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.row.name}, seed {self.seed}"

    @property
    def result(self) -> Path:
        """Scores, written when it is finished."""
        return self.folder.with_name(f"{self.folder.name}.json")

    @property
    def record(self) -> Path:
        """Fingerprint and command, written before it begins."""
        return self.folder.with_name(f"{self.folder.name}.plan.json")

    @property
    def log(self) -> Path:
        """All that its command says on stderr."""
        return self.folder.with_name(f"{self.folder.name}.log")


def list_jobs(study: Study, out: Path, names: Sequence[str] = (), *, check_data: bool = True) -> list[Job]:
    """All runs, each after the one it starts from.

    Args:
        study: checked.
        out: folder of the study.
        names: only rows of these names or patterns (``SF tau*``), and what they start from; empty for all.
        check_data: see that their data is there.

    Raises:
        ConfigError: unknown row, or data that a row needs is not named.
        InputError: data that is named is not there.
    """
    rows = {row.name: row for row in study.row}
    for name in names:
        if not any(fnmatchcase(row, name) for row in rows) and name not in rows:
            raise ConfigError(f"--rows {name!r}: {unknown_row(name, rows)}")
    wanted: list[Row] = []

    def want(row: Row) -> None:
        if row.adapts:
            want(rows[row.start or study.start])
        if row not in wanted:
            wanted.append(row)

    for row in study.row:
        if not names or any(row.name == name or fnmatchcase(row.name, name) for name in names):
            want(row)
    if check_data:
        _check_data(study, wanted)
    jobs: dict[tuple[str, int], Job] = {}
    for seed in study.seeds:
        for row in wanted:
            jobs[row.name, seed] = _job(study, row, seed, out, jobs)
    return list(jobs.values())


def place(study: Study, name: str) -> Path:
    """Where a part of the data is: ``source``, ``frames``, ``val``, ``oracle`` or ``source_val``."""
    return Path(study.data.root, str(getattr(study.data, name)))


def _job(study: Study, row: Row, seed: int, out: Path, jobs: dict[tuple[str, int], Job]) -> Job:
    folder = out / "runs" / slug(row.name) / f"seed_{seed}"
    start = jobs[row.start or study.start, seed] if row.adapts else None
    config = row.config or getattr(study.config, row.kind)
    sets = [*study.set, *row.set, f"seed={seed}"]
    data = {kind: str(place(study, kind)) for kind in ("source", "frames", "oracle")}
    if start is None:
        words = ["train", data["oracle" if row.kind == "oracle" else "source"]]
    else:
        words = ["adapt", str(start.folder / "model.pt"), "--target", data["frames"]]
        words += ["--source", data["source"]] if row.kind == "adapt" else ["--source-free"]
    labels, draw = None, []
    if row.labels:
        labels = folder.with_name(f"{folder.name}.labels.json")
        draw = ["data", "convert", data["oracle"], "--draw", str(row.labels), "--seed", str(seed), "--out", str(labels)]
        words += ["--labels", str(labels)]
    words += ["--teacher-boxes", str(Path(study.data.root, row.teacher_boxes))] if row.teacher_boxes else []
    words += ["--out", str(folder), "--val", str(place(study, "val"))]
    words += ["--config", config] if config else []
    words += [word for value in sets for word in ("--set", value)]
    told = {
        "kind": row.kind,
        "start": start.fingerprint if start is not None else "",
        "settings": read_toml(Path(config)) if config else {},
        "set": [value for value in sets if value.partition("=")[0].strip() not in NO_MATTER],
        **({"labels": row.labels} if row.labels else {}),
        **({"teacher_boxes": row.teacher_boxes} if row.teacher_boxes else {}),
    }
    if study.described:
        told["data"] = {one.part: dict(one.values) for one in study.described}
    fingerprint = hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()[:16]
    steps = settings_of(study, row).optim.steps
    return Job(row, seed, folder, start, tuple(words), steps, fingerprint, labels, tuple(draw))


def parts_of(rows: Sequence[Row]) -> dict[str, str]:
    """Parts of the data that rows need, each with the first row that does; ``source_val`` only where it is named."""
    needed = {"val": rows[0].name} if rows else {}
    for row in rows:
        for name in (*_PARTS[row.kind], *(["oracle"] if row.labels else [])):
            needed.setdefault(name, row.name)
    return needed


def _check_data(study: Study, rows: Sequence[Row]) -> None:
    needed = parts_of(rows)
    for row in rows:
        if row.teacher_boxes and not (boxes := Path(study.data.root, row.teacher_boxes)).exists():
            raise InputError(f"{boxes} does not exist (teacher_boxes of row {row.name!r}). Put it among the data")
    if study.data.source_val:
        needed.setdefault("source_val", rows[0].name)
    for name, row_name in needed.items():
        if not getattr(study.data, name):
            raise ConfigError(f"row {row_name!r} needs data.{name}. Name it in the study's [data]")
        if not place(study, name).exists():
            raise InputError(f"{place(study, name)} does not exist (data.{name}). Give the data's folder with --data")
