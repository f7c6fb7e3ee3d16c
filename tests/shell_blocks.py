"""The blocks of shell commands in the documents, as a reader would type them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click

from ptedge.cli import cli

BLOCK = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"sh", "python", "toml", "text", "console", "ini", "json", "yaml"}
LOOP = re.compile(r"^(for .*; do|done.*)$")  # of the shell; what stands inside is checked


@dataclass(frozen=True)
class Line:
    """One command.

    Attributes:
        place: page and line, for messages.
        words: as the shell splits them.
    """

    place: str
    words: tuple[str, ...]

    @property
    def program(self) -> str:
        """What is called."""
        return self.words[0]


def languages(page: Path) -> list[tuple[str, str]]:
    """(page and line, language) of each block."""
    text = page.read_text("utf-8")
    return [(f"{page.name}:{_number(text, block.start())}", block[1]) for block in BLOCK.finditer(text)]


def blocks(page: Path) -> list[list[Line]]:
    """The commands of each ``sh`` block of a page, in order; continued lines are one."""
    text = page.read_text("utf-8")
    found = []
    for block in BLOCK.finditer(text):
        if block[1] == "sh":
            first = _number(text, block.start()) + 1
            found.append(list(_lines(block[2], page.name, first)))
    return found


def _lines(body: str, page: str, first: int) -> Iterator[Line]:
    number, begun = first, ""
    for line in body.splitlines():
        begun = f"{begun} {line}".strip()
        if begun.endswith("\\"):
            begun = begun[:-1]
        else:
            words = shlex.split(begun, comments=True)
            if words and not LOOP.match(begun):
                yield Line(f"{page}:{number}", tuple(words))
            begun = ""
        number += 1


def _number(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def parsed(words: tuple[str, ...]) -> tuple[str, click.Context]:
    """A ``ptedge`` line read by the command itself, which is not run.

    Returns:
        The command's name, with that of its group; and what was read.

    Raises:
        click.ClickException: no such command or option, a value that it refuses, or one that is missing.
    """
    command: click.Command = cli
    rest, names = list(words[1:]), []
    context = click.Context(cli, info_name="ptedge")
    while isinstance(command, click.Group):
        names.append(rest.pop(0))
        found = command.get_command(context, names[-1])
        if found is None:
            raise click.UsageError(f"no such command {names[-1]!r}")
        command = found
    return " ".join(names), command.make_context(names[-1], rest)
