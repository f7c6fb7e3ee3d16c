"""Options that several commands of the runtime have, and a way to hand options to a command in groups."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from ptedge.backends.runner import BACKENDS
from ptedge.errors import InputError
from ptedge.files import open_regular

LONGEST_SECRET = 1 << 16  # bytes
SECONDS = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

BACKEND = click.option(
    "--backend",
    type=click.Choice(BACKENDS),
    default="auto",
    show_default=True,
    help="What runs the model; auto takes a GPU when one answers.",
)
THREADS = click.option("--threads", type=click.IntRange(1), help="CPU threads of the model.  [default: one a core]")
TRUST = click.option(
    "--trust",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="KEY",
    help="Public key that bundle and engines must be signed with; again for more.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")


def byte_size(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A callback of click that reads a number of bytes, as ``500MB`` or ``2GB``; at least 1."""
    if value is None:
        return None
    text = value.strip().upper().removesuffix("B")
    factor = {"K": 10**3, "M": 10**6, "G": 10**9}.get(text[-1:], 1)
    try:
        size = int(float(text[:-1] if factor > 1 else text) * factor)
    except (ValueError, OverflowError):
        size = 0
    if size < 1:
        raise click.BadParameter(f"{value!r}: write a number of bytes, as 500MB or 2GB")
    return size


def seconds_apart(ctx: click.Context, param: click.Parameter, value: str) -> float:
    """A callback of click that reads how often something may happen, as ``1 in 24 h``: the seconds between two."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:in|/)\s*(\d+(?:\.\d+)?)\s*(s|min|h|d)\s*", value)
    if found is None or not float(found[1]) or float(found[2]) * SECONDS[found[3]] < float(found[1]):
        raise click.BadParameter(f"{value!r}: write how many in which time, as '1 in 24 h' (s, min, h or d)")
    return float(found[2]) * SECONDS[found[3]] / float(found[1])


RATE = click.option("--rate", callback=byte_size, metavar="SIZE", help="Bytes a second of a bucket at most, as 500KB.")


def secret(ctx: click.Context, param: click.Parameter, value: Path | None) -> str | None:
    """A callback of click that reads a token from a file: its first line.

    Raises:
        InputError: it cannot be read, or is empty; nothing of its content is in the text.
    """
    if value is None:
        return None
    try:
        with open_regular(value) as file:
            line = file.readline(LONGEST_SECRET).decode("utf-8").strip()
    except OSError as error:
        raise InputError(f"token file {value} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"token file {value} holds no text") from None
    if not line:
        raise InputError(f"token file {value} has an empty first line; the token belongs there")
    return line


def grouped(group: str, make: Callable[..., Any], *options: Decorator) -> Decorator:
    """Options that a command gets as one value.

    Args:
        group: name under which the command gets it.
        make: makes the value; its parameters are called as the options' values, which it gets by name. A
            ``ValueError`` becomes a message about wrong usage.
        options: of click, in the order of ``--help``.
    """
    names = tuple(inspect.signature(make).parameters)

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(command)
        def gathered(**values: Any) -> Any:
            own = {name: values.pop(name) for name in names}
            try:
                values[group] = make(**own)
            except ValueError as error:
                raise click.UsageError(str(error)) from None
            return command(**values)

        grown: Callable[..., Any] = gathered
        for option in reversed(options):
            grown = option(grown)
        return grown

    return decorate
