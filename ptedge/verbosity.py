"""What is told where, the same for every command: ``-v``, ``-q`` and ``--json``; and silence for Python."""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib.metadata
import json
import logging
import os
import platform
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import click

from ptedge import __version__
from ptedge.errors import PtedgeError

VERBOSE, QUIET, JSON = (
    "ptedge.verbose",
    "ptedge.quiet",
    "ptedge.json",
)  # in a context's meta, which commands share with their groups
# what messages of errors are about most often; a missing one is left out
PACKAGES = ("numpy", "opencv-python-headless", "onnxruntime-gpu", "onnxruntime", "tensorrt", "torch", "click")


@contextlib.contextmanager
def quiet(silent: bool = True) -> Iterator[None]:
    """A block in which nothing is told on stderr, for the whole process; errors are raised as ever.

    Args:
        silent: otherwise nothing changes.
    """
    if not silent:
        yield
        return
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
        yield


@contextlib.contextmanager
def _verbose() -> Iterator[None]:
    """A block that tells versions, what Python's logging has to say, how long it took, and where an error came from."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(name)s: %(message)s"))
    logger, start = logging.getLogger("ptedge"), time.monotonic()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    click.echo(_versions(), err=True)
    try:
        yield
    except PtedgeError:
        click.echo(traceback.format_exc(), err=True, nl=False)
        raise
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)
        click.echo(f"took {time.monotonic() - start:.1f} s", err=True)


def _versions() -> str:
    found = [f"ptedge {__version__}", f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"]
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found.append(f"{name} {importlib.metadata.version(name)}")
    return ", ".join(found)


def with_common_options(command: click.Command) -> click.Command:
    """A copy of a command, or of a group with all its commands, that knows ``-v``, ``-q`` and ``--json``.

    Who prints its document by itself has ``--json`` already. Others return it, and get the option by that: with it
    nothing but the document goes to stdout.

    Args:
        command: as its module defines it; it stays as it is.
    """
    made = copy.copy(command)
    made.params = [*command.params, *options()]
    if isinstance(made, click.Group):
        made.commands = {name: with_common_options(inner) for name, inner in made.commands.items()}
    elif command.callback is not None:
        made.callback = _heeding(command.callback)
        if command.callback.__annotations__.get("return") not in (None, "None"):
            text = "Print one JSON document on stdout, and nothing else there."
            made.params.append(_flag(("--json",), text, JSON))
    return made


def options() -> list[click.Option]:
    """``-v`` and ``-q``; what they say stands in the context's meta."""
    told = (
        (VERBOSE, ("-v", "--verbose"), "Tell versions and times too; of an error, where it came from."),
        (QUIET, ("-q", "--quiet"), "Tell nothing but errors."),
    )
    return [_flag(names, text, key) for key, names, text in told]


def _flag(names: Sequence[str], text: str, key: str) -> click.Option:
    """An option that is noted in the context's meta."""
    return click.Option(names, is_flag=True, expose_value=False, help=text, callback=_note(key))


def _note(key: str) -> Callable[[click.Context, click.Parameter, bool], None]:
    def note(ctx: click.Context, param: click.Parameter, value: bool) -> None:
        if value:
            ctx.meta[key] = True
        if ctx.meta.get(VERBOSE) and ctx.meta.get(QUIET):
            raise click.UsageError("give -v or -q, not both", ctx)

    return note


def _heeding(callback: Callable[..., Any]) -> Callable[..., Any]:
    """A command's function that heeds what its context says."""

    @functools.wraps(callback)
    def heeding(*values: Any, **named: Any) -> Any:
        meta = click.get_current_context().meta
        with _verbose() if meta.get(VERBOSE) else quiet(bool(meta.get(QUIET))):
            if not meta.get(JSON):
                return callback(*values, **named)
            with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stdout(nowhere):
                document = callback(*values, **named)
            click.echo(json.dumps(document, indent=2, ensure_ascii=False))
            return document

    return heeding
