"""Reading a study's TOML, and checking all of it that can be checked without running it."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ptedge.config import from_dict, load_config, read_toml
from ptedge.errors import ConfigError

from ..recipes.presets import preset_sets
from .described import take_described
from .plan import Row, Study, Untrained, slug

if TYPE_CHECKING:
    from ptedge.detector.config import ModelConfig

    from ..config import AdaptConfig, TrainConfig


def load_study(path: Path, data: Path | None = None, overrides: Sequence[str] = (), preset: str | None = None) -> Study:
    """Read a study and check all that can be checked without running it.

    Args:
        path: TOML.
        data: replaces ``data.root``.
        overrides: ``key=value`` for every run, which win; ``model.*`` only for runs that make a model.
        preset: for a GPU's memory, of :data:`~ptedge.training.recipes.presets.PRESETS`: every row's step in parts that
            fit.

    Returns:
        The study with absolute paths.

    Raises:
        ConfigError: unreadable, unknown keys, rows that start from nothing or in a circle, settings that a run would
            refuse.
    """
    values = read_toml(path, "study")
    described = take_described(values, str(path))
    for key in ("described", "counted"):  # of Study, and made of other tables
        if key in values:
            raise ConfigError(f"{path}: unknown key {key!r}; data are described in [describe.source] and the like")
    _complete(values, path.resolve().parent, data)
    for part in _tables(values, "row"):
        from_dict(Row, part, f"{path}: row {part.get('name', '')!r}")  # so that what is wrong names its row
    study = replace(from_dict(Study, values, str(path)), described=described)
    _check_rows(study, path)
    _check_sweeps(study, path)
    _check_timing(study, path)
    if preset is not None:
        study = _with_sets(study, lambda row: preset_sets(preset, _settings(study, row, path).optim))
    # an adaptation has the model of the row it starts from
    study = _with_sets(study, lambda row: [v for v in overrides if not (row.adapts and v.startswith("model."))])
    for row in study.row:
        settings = _settings(study, row, path)
        if settings.convention != study.convention:
            raise ConfigError(
                f"{path}: row {row.name!r} has the setting convention={settings.convention}, the study "
                f"{study.convention}. Rows of one table share one: give it as the study's key convention alone"
            )
    return study


def _complete(values: dict[str, Any], here: Path, data: Path | None) -> None:
    """Bring a TOML's values into the form of :class:`Study`: absolute paths, lists for tables."""
    for part in (*_tables(values, "row"), *_tables(values, "spread")):
        if isinstance(part.get("paper"), dict):
            part["paper"] = list(part["paper"].items())
    if isinstance(values.get("config"), dict):
        values["config"] = {kind: _absolute(here, file) for kind, file in values["config"].items()}
    for part in _tables(values, "row"):
        if part.get("config"):
            part["config"] = _absolute(here, part["config"])
        if isinstance(part.get("sweep"), dict):  # one sweep needs no list around it
            part["sweep"] = [part["sweep"]]
    timing = values.get("timing", {})
    if isinstance(timing, dict):
        for key, file in (("untrained", "config"), ("graph", "file")):
            for part in _tables(timing, key):
                if part.get(file):
                    part[file] = _absolute(here, part[file])
    if "convention" in values and isinstance(values.get("set", []), list):
        values["set"] = [*values.get("set", []), f"convention={values['convention']}"]
    place = values.setdefault("data", {})
    if isinstance(place, dict):
        place["root"] = str(data.resolve()) if data is not None else _absolute(here, place.get("root", "."))


def _settings(study: Study, row: Row, path: Path) -> TrainConfig | AdaptConfig:
    try:
        return settings_of(study, row)
    except ConfigError as error:
        raise ConfigError(f"{path}: row {row.name!r}: {error}") from None


def _with_sets(study: Study, more: Callable[[Row], Sequence[str]]) -> Study:
    return replace(study, row=tuple(replace(row, set=(*row.set, *more(row))) for row in study.row))


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
    for name in study.beside:
        if name not in rows:
            raise ConfigError(f"{path}: beside {name!r}: {unknown_row(name, rows)}")
    for group in study.spread:
        for name in group.rows:
            if name not in rows:
                raise ConfigError(f"{path}: spread {group.name!r}: {unknown_row(name, rows)}")
    _check_starts(study, rows, path)


def _check_sweeps(study: Study, path: Path) -> None:
    """One row a point: two would be drawn as one variant with the seeds of both."""
    taken: dict[tuple[str, float, str], str] = {}
    for row in study.row:
        for sweep in row.sweep:
            other = taken.setdefault((sweep.axis, sweep.value, row.kind), row.name)
            if other != row.name:
                raise ConfigError(
                    f"{path}: rows {other!r} and {row.name!r}, both {row.kind}, have one point, {sweep.axis} = "
                    f"{sweep.value:g}. Give one of them another value or axis, or take its sweep away"
                )


def _check_timing(study: Study, path: Path) -> None:
    names = [row.name for row in study.row]
    for one in study.timing.untrained:
        if slug(one.name) in map(slug, names):
            raise ConfigError(f"{path}: timing.untrained {one.name!r} has the name of another. Rename one")
        names.append(one.name)
        try:
            settings_of_untrained(study, one)
        except ConfigError as error:
            raise ConfigError(f"{path}: timing.untrained {one.name!r}: {error}") from None


def settings_of_untrained(study: Study, one: Untrained) -> ModelConfig:
    """The model of an entry that is timed without training.

    Raises:
        ConfigError: as ``ptedge train`` would.
    """
    from ..config import TrainConfig

    file = one.config or study.config.train
    return load_config(TrainConfig, Path(file) if file else None, [*study.set, *one.set]).model


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
    from ..config import AdaptConfig, TrainConfig, check_mode

    file = row.config or getattr(study.config, row.kind)
    path, sets = Path(file) if file else None, [*study.set, *row.set]
    if not row.adapts:
        return load_config(TrainConfig, path, sets)
    source_free = row.kind == "source_free"
    config = load_config(AdaptConfig, path, sets)
    check_mode(config, source_free=source_free, labelled=row.labels > 0)
    return config


def _tables(values: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = values.get(key, [])
    return [part for part in found if isinstance(part, dict)] if isinstance(found, list) else []


def _absolute(here: Path, file: Any) -> Any:
    return str((here / file).resolve()) if isinstance(file, str) and file else file


def unknown_row(name: str, rows: Mapping[str, Row]) -> str:
    """What to say of a name that no row has."""
    near = difflib.get_close_matches(name, rows, n=1)
    return f"no such row; did you mean {near[0]!r}?" if near else f"no such row; there are {', '.join(rows)}"
