"""Configuration: frozen dataclasses, read from TOML, changed by ``--set``, written back complete.

Every field carries its own check in ``__post_init__``; reading refuses unknown keys and names the nearest known one.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import sys
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ptedge.errors import ConfigError
from ptedge.files import read_bounded

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

T = TypeVar("T")
# keys of other tools -> ours
KEY_WORDS = {
    **dict.fromkeys(("epochs", "iterations", "max_iter", "max_steps"), "steps"),
    **dict.fromkeys(("imgsz", "img_size", "image_size", "resolution"), "input_size"),
    **dict.fromkeys(("batch_size", "bs", "ims_per_batch"), "batch"),
    **dict.fromkeys(("lr0", "learning_rate", "base_lr"), "lr"),
    **dict.fromkeys(("num_workers",), "workers"),
    **dict.fromkeys(("conf", "score_thresh"), "score_threshold"),
    **dict.fromkeys(("iou", "nms_thresh"), "nms"),
    **dict.fromkeys(("amp", "half", "fp16", "mixed_precision"), "precision"),
    **dict.fromkeys(("pretrained",), "weights"),
    **dict.fromkeys(("warmup_steps", "warmup_epochs"), "warmup"),
    **dict.fromkeys(("ema_decay", "ema_momentum"), "ema"),
}
MOST_SHOWN = 300  # characters of a wrong value


def load_config(
    cls: type[T],
    path: Path | None,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    defaults: Mapping[str, Any] | None = None,
) -> T:
    """Read a configuration.

    Args:
        cls: frozen dataclass, possibly holding other dataclasses (TOML tables).
        path: TOML file, or ``None`` for the defaults.
        overrides: ``"table.key=value"`` strings, the value TOML or taken as a bare string; or values by dotted key.
        defaults: values (tables nest) that stand in for the dataclass's own defaults.

    Returns:
        An instance of ``cls``.

    Raises:
        ConfigError: unreadable file, unknown key (with the nearest one), wrong type, value out of range.
    """
    values = settings_given(path, overrides, defaults)
    where = "--set" if path is None else f"{path} and --set" if overrides else str(path)
    return from_dict(cls, values, where)


def settings_given(
    path: Path | None,
    overrides: Sequence[str] | Mapping[str, Any] = (),
    defaults: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """What a file, overrides and stand-in defaults say, tables merged; see :func:`load_config`. Nothing is checked.

    Raises:
        ConfigError: unreadable file, or an override that is none.
    """
    values: dict[str, Any] = {}
    if path is not None:
        values = read_toml(path)
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            _set(values, key, value, f"{key}={value!r}")
    else:
        for override in overrides:
            _apply_override(values, override)
    return values if defaults is None else merged_tables(defaults, values)


def dotted_keys(values: Mapping[str, Any], table: str = "") -> frozenset[str]:
    """The keys of values, those of tables as ``table.key``."""
    found: set[str] = set()
    for key, value in values.items():
        name = f"{table}{key}"
        found |= dotted_keys(value, f"{name}.") if isinstance(value, Mapping) else {name}
    return frozenset(found)


def read_toml(path: Path, what: str = "configuration") -> dict[str, Any]:
    """The tables of a TOML file.

    Args:
        path: the file.
        what: it is, for messages.

    Raises:
        ConfigError: unreadable, no regular file, too large, not UTF-8, or not TOML.
    """
    try:
        values: dict[str, Any] = tomllib.loads(read_bounded(path).decode("utf-8").replace("\r\n", "\n"))
        return values
    except OSError as error:
        raise ConfigError(f"cannot read {what} {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from None
    except RecursionError:
        raise ConfigError(f"{path} is not valid TOML: nested too deep") from None


def from_dict(cls: type[T], values: Mapping[str, Any], where: str) -> T:
    """Build a dataclass from plain values, tables becoming nested dataclasses.

    Args:
        cls: frozen dataclass.
        values: as TOML or JSON gives them.
        where: file or option, for messages.

    Raises:
        ConfigError: unknown or missing key, wrong type or value out of range.
    """
    hints = typing.get_type_hints(cls)
    known = [f.name for f in dataclasses.fields(cls)]  # type: ignore[arg-type]
    arguments: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            near = _nearest_key(cls, key)
            hint = f"; did you mean {near!r}?" if near else f"; known keys: {', '.join(known)}"
            raise ConfigError(f"{where}: unknown key {key!r}{hint}")
        arguments[key] = _convert(hints[key], _completed(cls, key, value), f"{where}: {key}")
    missing = [f.name for f in dataclasses.fields(cls) if f.name not in arguments and not _has_default(f)]  # type: ignore[arg-type]
    if missing:
        raise ConfigError(f"{where}: missing {', '.join(missing)}")
    try:
        return cls(**arguments)
    except ValueError as error:
        raise ConfigError(f"{where}: {error}") from None


def to_dict(config: Any) -> dict[str, Any]:
    """A dataclass as plain values for TOML or JSON; fields that are ``None`` are left out."""
    plain: dict[str, Any] = {}
    for f in dataclasses.fields(config):
        value = getattr(config, f.name)
        if value is None:
            continue
        if dataclasses.is_dataclass(value):
            plain[f.name] = to_dict(value)
        elif isinstance(value, tuple):
            plain[f.name] = [list(v) if isinstance(v, tuple) else v for v in value]
        else:
            plain[f.name] = value
    return plain


def require(name: str, value: float, low: float, high: float = math.inf, *, open_low: bool = False) -> None:
    """Check a number's range, for use in ``__post_init__``.

    Raises:
        ValueError: with the name, the value got and what is allowed.
    """
    if not (low < value if open_low else low <= value) or not value <= high:
        allowed = f"{'above' if open_low else 'at least'} {low:g}"
        if high < math.inf:
            allowed += f" and at most {high:g}"
        raise ValueError(f"{name} is {value!r}; it must be {allowed}")


def require_one_of(name: str, value: str, allowed: Sequence[str]) -> None:
    """Check a choice, for use in ``__post_init__``.

    Raises:
        ValueError: with the name, the value got and what is allowed.
    """
    if value not in allowed:
        near = difflib.get_close_matches(value.lower(), allowed, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}{hint}")


def merged_tables(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Values of two, tables in tables too; those ``above`` win."""
    merged = dict(below)
    for key, value in above.items():
        inner = merged.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            merged[key] = merged_tables(inner, value)
        else:
            merged[key] = value
    return merged


def _apply_override(values: dict[str, Any], override: str) -> None:
    key, equals, text = override.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"--set {override!r}: write it as key=value, for example --set optim.steps=600")
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        value = text
    _set(values, key.strip(), value, override)


def _set(values: dict[str, Any], key: str, value: Any, override: str) -> None:
    """Put a value at a dotted key."""
    *tables, last = key.split(".")
    for table in tables:
        values = values.setdefault(table, {})
        if not isinstance(values, dict):
            raise ConfigError(f"--set {override!r}: {table} is a value, not a table")
    values[last] = value


def _nearest_key(cls: type, key: str) -> str | None:
    """The key that was probably meant, of this table or, dotted, of one below it."""
    key = KEY_WORDS.get(key.lower(), key)
    keys = list(_dotted_keys(cls))
    by_name = {dotted.rpartition(".")[2]: dotted for dotted in reversed(keys)}  # of equal names the outermost
    near = difflib.get_close_matches(key, [dotted for dotted in keys if "." not in dotted], n=1)
    if key in by_name or not near:
        last = difflib.get_close_matches(key, by_name, n=1)
        near = [by_name[name] for name in last]
    return near[0] if near else None


def _dotted_keys(cls: type) -> Iterator[str]:
    """All keys of a dataclass, those of its tables as ``table.key``."""
    hints = typing.get_type_hints(cls)
    for field in dataclasses.fields(cls):
        yield field.name
        if dataclasses.is_dataclass(hints[field.name]):
            yield from (f"{field.name}.{key}" for key in _dotted_keys(typing.cast(type, hints[field.name])))


def _completed(cls: type, key: str, value: Any) -> Any:
    """A table with what the field's own default has where the table says nothing; any other value as it is."""
    field = next(f for f in dataclasses.fields(cls) if f.name == key)
    if not isinstance(value, Mapping) or field.default_factory is dataclasses.MISSING:
        return value
    default = field.default_factory()
    return merged_tables(to_dict(default), value) if dataclasses.is_dataclass(default) else value


def _has_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING


def _shown(value: Any) -> str:
    """A value for a message: a file may hold megabytes where a number should be."""
    text = repr(value)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return _convert_union(typing.get_args(hint), value, where)
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} is a table, got {_shown(value)}")
        return from_dict(typing.cast(type, hint), value, where)
    if origin in (tuple, dict):
        return (_convert_list if origin is tuple else _convert_table)(typing.get_args(hint), value, where)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            raise ConfigError(f"{where} is too large for a number with a fraction, got {_shown(value)}") from None
    if isinstance(value, bool) != (hint is bool) or not isinstance(value, hint):
        raise ConfigError(f"{where} must be of type {hint.__name__}, got {_shown(value)}")
    return value


def _convert_list(hints: Sequence[Any], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, (list, tuple)):
        raise ConfigError(f"{where} is a list, got {_shown(value)}")
    if len(hints) == 2 and hints[1] is Ellipsis:
        return tuple(_convert(hints[0], v, f"{where}[{i}]") for i, v in enumerate(value))
    if len(value) != len(hints):
        raise ConfigError(f"{where} has {len(hints)} values, got {_shown(value)}")
    return tuple(_convert(h, v, where) for h, v in zip(hints, value, strict=True))


def _convert_table(hints: Sequence[Any], value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where} is a table, got {_shown(value)}")
    return {str(key): _convert(hints[1], v, f"{where}.{key}") for key, v in value.items()}


def _convert_union(hints: Sequence[Any], value: Any, where: str) -> Any:
    """The value as one of several types; ``None`` (JSON's null) where that is one of them."""
    if value is None and type(None) in hints:
        return None
    choices = [hint for hint in hints if hint is not type(None)]
    if len(choices) == 1:
        return _convert(choices[0], value, where)
    if type(value) not in choices:
        names = " or ".join(hint.__name__ for hint in choices)
        raise ConfigError(f"{where} must be of type {names}, got {_shown(value)}")
    return value
