"""What a study is: a table of variants, each trained with several seeds; reading its TOML and checking it."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptedge.config import from_dict, load_config, require_one_of
from ptedge.errors import ConfigError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from ..config import AdaptConfig, TrainConfig

KINDS = ("train", "oracle", "adapt", "source_free")
Paper = tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class StudyData:
    """Where the data is; paths are relative to ``root``.

    Attributes:
        root: relative to the study's file; ``--data`` replaces it.
        source: labelled DATA of the source.
        frames: unlabelled FRAMES of the target.
        val: labelled DATA of the target, for AP only.
        oracle: labelled DATA of the target, for rows of kind ``oracle`` only.
        source_val: labelled DATA of the source; rows of kind ``train`` are scored on it too.
    """

    root: str = "."
    source: str = ""
    frames: str = ""
    val: str = ""
    oracle: str = ""
    source_val: str = ""


@dataclass(frozen=True)
class KindSettings:
    """Settings file of every kind, relative to the study's file; a row's own ``config`` wins.

    Attributes:
        train, oracle, adapt, source_free: TOML; empty for the command's defaults.
    """

    train: str = ""
    oracle: str = ""
    adapt: str = ""
    source_free: str = ""


@dataclass(frozen=True)
class Row:
    """A variant.

    Attributes:
        name: unique.
        kind: ``train`` (on source), ``oracle`` (on target labels), ``adapt`` (with source) or ``source_free``.
        config: settings file, relative to the study's file.
        set: ``key=value`` on top of it.
        start: row whose ``model.pt`` of the same seed is adapted; empty for the study's ``start``.
        best: also score every kept checkpoint on ``val`` and report the best: a choice by target labels, for the table.
        paper: column -> the paper's number, per cent.
    """

    name: str
    kind: str
    config: str = ""
    set: tuple[str, ...] = ()
    start: str = ""
    best: bool = False
    paper: Paper = ()

    def __post_init__(self) -> None:
        require_one_of("kind", self.kind, KINDS)
        if not slug(self.name):
            raise ValueError(f"a row's name needs a letter or digit, got {self.name!r}")

    @property
    def adapts(self) -> bool:
        """It starts from another row's checkpoint."""
        return self.kind in ("adapt", "source_free")


@dataclass(frozen=True)
class Spread:
    """Rows that differ in one setting, whose medians are compared.

    Attributes:
        name: shown.
        rows: their names.
        paper: column -> the paper's number.
    """

    name: str
    rows: tuple[str, ...]
    paper: Paper = ()


@dataclass(frozen=True)
class Study:
    """A study as its TOML says.

    Attributes:
        title: heading of the table.
        seeds: each row runs with each.
        start: row that adaptations start from unless they say otherwise.
        baseline: row to which the others' differences are taken; empty for none.
        source: row that stands for no adaptation in the share of the gap; empty for none.
        oracle: row that stands for labels of the target.
        set: ``key=value`` for every run.
        data: where the data is.
        config: settings file of each kind.
        row: the variants.
        spread: groups of rows whose spread is reported.
        note: shown above the table.
    """

    title: str = "Study"
    seeds: tuple[int, ...] = (0,)
    start: str = ""
    baseline: str = ""
    source: str = ""
    oracle: str = ""
    set: tuple[str, ...] = ()
    data: StudyData = field(default_factory=StudyData)
    config: KindSettings = field(default_factory=KindSettings)
    row: tuple[Row, ...] = ()
    spread: tuple[Spread, ...] = ()
    note: str = ""


def load_study(path: Path, data: Path | None = None, overrides: Sequence[str] = ()) -> Study:
    """Read a study and check all that can be checked without running it.

    Args:
        path: TOML.
        data: replaces ``data.root``.
        overrides: ``key=value`` for every run, which win.

    Returns:
        The study with absolute paths.

    Raises:
        ConfigError: unreadable, unknown keys, rows that start from nothing or in a circle, settings that a run would
            refuse.
    """
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read study {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    for part in (*_tables(values, "row"), *_tables(values, "spread")):
        if isinstance(part.get("paper"), dict):
            part["paper"] = list(part["paper"].items())
    here = path.resolve().parent
    if isinstance(values.get("config"), dict):
        values["config"] = {kind: _beside(here, file) for kind, file in values["config"].items()}
    for part in _tables(values, "row"):
        if part.get("config"):
            part["config"] = _beside(here, part["config"])
        if overrides and isinstance(part.get("set", []), list):
            part["set"] = [*part.get("set", []), *overrides]
    place = values.setdefault("data", {})
    if isinstance(place, dict):
        place["root"] = str(data.resolve()) if data is not None else _beside(here, place.get("root", "."))
    study = from_dict(Study, values, str(path))
    _check_rows(study, path)
    for row in study.row:
        try:
            settings_of(study, row)
        except ConfigError as error:
            raise ConfigError(f"{path}: row {row.name!r}: {error}") from None
    return study


def _check_rows(study: Study, path: Path) -> None:
    if not study.row or not study.seeds:
        raise ConfigError(f"{path} needs at least one [[row]] and one seed")
    rows = {row.name: row for row in study.row}
    slugs: dict[str, str] = {}
    for row in study.row:
        if slugs.setdefault(slug(row.name), row.name) != row.name or [r.name for r in study.row].count(row.name) > 1:
            raise ConfigError(f"{path}: two rows are called {row.name!r} (punctuation does not count). Rename one")
    for key in ("start", "baseline", "source", "oracle"):
        name = getattr(study, key)
        if name and name not in rows:
            raise ConfigError(f"{path}: {key} = {name!r}: {unknown_row(name, rows)}")
    for group in study.spread:
        for name in group.rows:
            if name not in rows:
                raise ConfigError(f"{path}: spread {group.name!r}: {unknown_row(name, rows)}")
    _check_starts(study, rows, path)


def _check_starts(study: Study, rows: Mapping[str, Row], path: Path) -> None:
    for row in study.row:
        if row.start and not row.adapts:
            raise ConfigError(f"{path}: row {row.name!r} trains from the beginning and has no start. Remove it")
        seen, here = [row.name], row
        while here.adapts:
            name = here.start or study.start
            if not name:
                raise ConfigError(f"{path}: row {here.name!r} adapts a checkpoint: name the row it starts from, start")
            if name not in rows:
                raise ConfigError(f"{path}: row {here.name!r}: start = {name!r}: {unknown_row(name, rows)}")
            if name in seen:
                raise ConfigError(f"{path}: rows start from each other in a circle: {' <- '.join([*seen, name])}")
            seen.append(name)
            here = rows[name]


def settings_of(study: Study, row: Row) -> TrainConfig | AdaptConfig:
    """The settings a row runs with.

    Raises:
        ConfigError: as its command would.
    """
    from ..config import SOURCE_FREE_DEFAULTS, AdaptConfig, TrainConfig, check_mode

    file = row.config or getattr(study.config, row.kind)
    path, sets = Path(file) if file else None, [*study.set, *row.set]
    if not row.adapts:
        return load_config(TrainConfig, path, sets)
    source_free = row.kind == "source_free"
    config = load_config(AdaptConfig, path, sets, SOURCE_FREE_DEFAULTS if source_free else None)
    check_mode(config, source_free=source_free)
    return config


def _tables(values: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = values.get(key, [])
    return [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []


def _beside(here: Path, file: Any) -> Any:
    return str((here / file).resolve()) if isinstance(file, str) and file else file


def slug(name: str) -> str:
    """A row's name as a folder's name."""
    return re.sub(r"[^a-z0-9.]+", "_", name.lower()).strip("_.")


def unknown_row(name: str, rows: Mapping[str, Row]) -> str:
    """What to say of a name that no row has."""
    near = difflib.get_close_matches(name, rows, n=1)
    return f"no such row; did you mean {near[0]!r}?" if near else f"no such row; there are {', '.join(rows)}"
