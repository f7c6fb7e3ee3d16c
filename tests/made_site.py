"""A site for tests of ``ptedge loop``: frames in a store, deployments of tiny bundles, and a workshop of stand-ins."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import stand_in
from click.testing import CliRunner
from made_field import collect

from ptedge.cli import cli
from ptedge.loop.settings import Place, read_site
from ptedge.processes import run_command
from ptedge.runtime.transfer.push import push
from ptedge.stores.opening import open_store

LAUNCHER = str(Path(stand_in.__file__))
WORKSHOP = ("drift", "adapt", "estimate", "export", "verify")
SITE = """\
checkpoint = "source.pt"
frames = ["store"]

[deploy]
canary = "canary"
all = ["north", "south"]

[decide]
min_frames = 4
enough_frames = 4
drift = false

[soak]
hours = 0
kept = false

[gate]
options = ["--backend", "cpu", "--threads", "1"]
"""


def made_site(folder: Path, text: str = SITE) -> Place:
    """A site with a first model and no frames."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "source.pt").write_bytes(b"the first model")
    (folder / "gate.toml").write_text(text)
    return read_site(folder / "gate.toml")


def send_frames(folder: Path, first: int, count: int, store: str = "store") -> None:
    """Have a device collect frames and push them."""
    collect(folder / f"field{first}", count=count, first=first)
    push(folder / f"field{first}", open_store(folder / store), str(folder / store))


def in_process(
    command: Sequence[str], stderr: IO[Any], *, folder: Path | None = None, keep: Sequence[int] = ()
) -> tuple[int, str]:
    """In place of :func:`ptedge.processes.run_command`: commands of the workshop as stand-ins, others by themselves."""
    if command[0] != sys.executable or command[1] != "-m":
        return run_command(command, stderr, folder=folder, keep=keep)
    words = list(command[3:])
    if words[0] in WORKSHOP:
        return _stood_in(words)
    done = CliRunner().invoke(cli, words)
    said = done.stderr if done.exception is None or isinstance(done.exception, SystemExit) else f"{done.exception}\n"
    stderr.write(said.encode())
    return done.exit_code, done.stdout


def _stood_in(words: list[str]) -> tuple[int, str]:
    document = stand_in.answer(words)
    return (1 if document.get("passed") is False else 0), json.dumps(document)
