"""Rounds on disk: ``rounds/0001/`` with one record a step, written whole; what is there is never done again."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ptedge.errors import ArtifactError
from ptedge.files import cut_last_line, parse_json, read_bounded, write_error, write_json

SCHEMA = 1
STEPS = ("pull", "decide", "adapt", "watch", "estimate", "export", "verify", "canary", "soak", "all", "register")
# done and skipped: go on; waiting: look again at the next call; refused and given up: the round ends here
STATES = ("done", "skipped", "waiting", "refused", "given up")
GOES_ON, ENDS = ("done", "skipped"), ("refused", "given up")
_ROUNDS = "rounds"


@dataclass(frozen=True)
class Record:
    """What a step came to.

    Attributes:
        step: of :data:`STEPS`.
        state: of :data:`STATES`.
        why: in words.
        began: ISO 8601, UTC.
        ended: see ``began``.
        commands: that ran, each with its arguments.
        inputs: what it began with, name -> sha256 or version.
        settings: of SITE.toml that it heeded.
        result: what came of it.
        event: that others are told of; empty for none.
    """

    step: str
    state: str
    why: str
    began: str = ""
    ended: str = ""
    commands: tuple[tuple[str, ...], ...] = ()
    inputs: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    event: str = ""

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (parse_time(self.ended) - parse_time(self.began)).total_seconds() if self.ended else 0.0

    def to_json(self) -> dict[str, Any]:
        """Plain values, as in its file."""
        return {"schema": SCHEMA, **vars(self), "commands": [list(words) for words in self.commands]}


def now() -> str:
    """The time, as records have it."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def parse_time(text: str) -> datetime:
    """A time of a record or of a deployment's history.

    Raises:
        ArtifactError: it is none.
    """
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))  # Python 3.10 reads no Z
    except ValueError:
        raise ArtifactError(f"{text!r} is no time in ISO 8601") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)


@dataclass(frozen=True)
class Round:
    """One round.

    Attributes:
        folder: of it.
        number: from 1.
    """

    folder: Path
    number: int

    @property
    def frames(self) -> Path:
        """The field folder of the frames that are this round's alone."""
        return self.folder / "frames"

    @property
    def run(self) -> Path:
        """The RUN folder of its adaptation."""
        return self.folder / "adapt"

    @property
    def model(self) -> Path:
        """The checkpoint that came of it."""
        return self.run / "model.pt"

    @property
    def bundle(self) -> Path:
        """What was exported."""
        return self.folder / "bundle"

    def record(self, step: str) -> Record | None:
        """The record of a step, ``None`` before there is one.

        Raises:
            ArtifactError: it is broken.
        """
        path = self._path(step)
        try:
            values = parse_json(read_bounded(path))
            if values["schema"] > SCHEMA:
                raise ArtifactError(
                    f"{path} has schema {values['schema']}, this ptedge reads up to {SCHEMA}. Update it"
                )
            commands = tuple(tuple(map(str, words)) for words in values["commands"])
            rest = {key: value for key, value in values.items() if key != "schema"}
            return Record(**{**rest, "commands": commands})
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ArtifactError(f"{path} cannot be read: {error.strerror}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise ArtifactError(
                f"{path} is no record of a step ({error}). Restore it, or remove {path.parent}"
            ) from None

    def write(self, record: Record) -> None:
        """Keep a record: whole or not at all.

        Raises:
            OutputError: not writable.
        """
        write_json(self._path(record.step), record.to_json())

    def records(self) -> list[Record]:
        """Those that are there, in the order of the steps."""
        found = (self.record(step) for step in STEPS)
        return [record for record in found if record is not None]

    @property
    def ended(self) -> bool:
        """Whether nothing more will be done in it."""
        records = self.records()
        return any(record.state in ENDS for record in records) or (
            bool(records) and records[-1].step == STEPS[-1] and records[-1].state in GOES_ON
        )

    def note(self, name: str, values: Mapping[str, Any]) -> None:
        """Add a line to a file of lines: ``decisions.jsonl``, ``failures.jsonl``.

        Raises:
            OutputError: not writable.
        """
        path = self.folder / name
        try:
            if path.exists():
                cut_last_line(path)  # of a kill
            with open(path, "ab") as file:
                file.write(json.dumps({"time": now(), **values}, ensure_ascii=False).encode() + b"\n")
        except OSError as error:
            raise write_error(path, error) from None

    def _path(self, step: str) -> Path:
        return self.folder / f"{step}.json"


def rounds_of(folder: Path) -> list[Round]:
    """All rounds of a site, the first one first.

    Args:
        folder: of the site.
    """
    try:
        names = sorted(int(path.name) for path in (folder / _ROUNDS).iterdir() if path.name.isdecimal())
    except OSError:
        return []
    return [round_of(folder, number) for number in names]


def round_of(folder: Path, number: int) -> Round:
    """A round by its number, whether or not it is there."""
    return Round(folder / _ROUNDS / f"{number:04d}", number)


def current_round(folder: Path) -> Round:
    """The round that is at work, or the one that would begin now; nothing is made.

    Args:
        folder: of the site.
    """
    rounds = rounds_of(folder)
    if rounds and not rounds[-1].ended:
        return rounds[-1]
    return round_of(folder, rounds[-1].number + 1 if rounds else 1)
