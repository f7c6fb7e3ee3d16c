"""The history of a deployment, which is its pointer as well: numbered entries, the last of which says what runs.

An entry is put once and never changed. Two who write at the same time want the same number; the second sees that it is
taken, looks again, and takes the next one if what it wants still makes sense.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any

from ptedge import __version__
from ptedge.config import from_dict, require, require_one_of, to_dict
from ptedge.errors import ArtifactError, ConfigError, OutputError
from ptedge.files import MOST_JSON_BYTES, parse_json
from ptedge.stores.store import Store, read_whole

from .check import GateCheck

SCHEMA = 1
FOLDER = "history/"
ACTIONS = ("promote", "rollback", "keep")
SETTLE = 1.0  # seconds after which no other writer replaces an entry, in a bucket that replaces
TRIES = 20  # of a number that others take at the same time


@dataclass(frozen=True)
class Entry:
    """What was done.

    Attributes:
        number: from 1, without a gap.
        action: ``promote``: a version runs from here on; ``rollback``: an earlier one runs again; ``keep``: the running
            one has passed its probation.
        version: that runs from here on.
        before: that ran until here, empty for none.
        time: ISO 8601, UTC, by the clock of who wrote it.
        why: in words.
        automatic: a run did it, no person.
        files: of ``version``, name -> sha256; with ``promote``.
        model: facts about it; with ``promote``.
        checks: of the gate; with ``promote``. Of a version that came from another deployment, those it passed there.
        figures: numbers of a probation, with ``keep``: ``seconds``, ``frames`` that the version answered, and groups
            ``compared``.
        origin: the deployment that a version came from, and the number of the entry there; empty for a bundle.
        ptedge: version that wrote it.
        schema: version of this description.
    """

    number: int
    action: str
    version: str
    before: str = ""
    time: str = ""
    why: str = ""
    automatic: bool = False
    files: dict[str, str] = field(default_factory=dict)
    model: dict[str, str] = field(default_factory=dict)
    checks: tuple[GateCheck, ...] = ()
    figures: dict[str, float] = field(default_factory=dict)
    origin: str = ""
    ptedge: str = __version__
    schema: int = SCHEMA

    def __post_init__(self) -> None:
        require_one_of("action", self.action, ACTIONS)
        require("number", self.number, 1)


@dataclass(frozen=True)
class State:
    """What a history comes to.

    Attributes:
        number: of the last entry; 0 without any.
        running: versions to go back to, the oldest first; the last one runs.
        files: of each version, name -> sha256.
        withdrawn: version -> why it was rolled back, until it is promoted again.
        kept: versions that have passed their probation since they were promoted.
        promoted: version -> number of the entry that promoted it last.
    """

    number: int = 0
    running: tuple[str, ...] = ()
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    withdrawn: dict[str, str] = field(default_factory=dict)
    kept: frozenset[str] = frozenset()
    promoted: dict[str, int] = field(default_factory=dict)

    @property
    def version(self) -> str | None:
        """That runs; ``None`` before the first promotion."""
        return self.running[-1] if self.running else None

    @property
    def earlier(self) -> str | None:
        """That a rollback goes to; ``None`` where there is none."""
        return self.running[-2] if len(self.running) > 1 else None

    @property
    def unproven(self) -> bool:
        """Whether the version that runs has to pass a probation: there is one to go back to, and no run kept it."""
        return self.earlier is not None and self.version not in self.kept

    def after(self, entry: Entry) -> State:
        """The state that an entry leads to."""
        running, withdrawn, kept, promoted = self.running, dict(self.withdrawn), self.kept, self.promoted
        if entry.action == "promote":
            promoted = promoted | {entry.version: entry.number}
            withdrawn.pop(entry.version, None)
            kept -= {entry.version}
            running = (*(v for v in running if v != entry.version), entry.version)
        elif entry.action == "rollback":
            withdrawn[entry.before] = entry.why
            place = running.index(entry.version) if entry.version in running else len(running) - 1
            running = (*running[:place], entry.version)
        else:
            kept |= {entry.version}
        files = self.files | ({entry.version: entry.files} if entry.files else {})
        return State(entry.number, running, files, withdrawn, kept, promoted)


def state_of(entries: Sequence[Entry]) -> State:
    """What all entries together come to.

    Args:
        entries: from the first, in order.
    """
    state = State()
    for entry in entries:
        state = state.after(entry)
    return state


def read_history(store: Store) -> list[Entry]:
    """All entries, the first one first.

    Raises:
        ArtifactError: one is damaged, or missing between others.
    """
    entries: list[Entry] = []
    for key in (item.key for item in store.list(FOLDER) if item.key.endswith(".json")):
        if key != key_of(len(entries) + 1):
            raise ArtifactError(f"the history has {key}, but no {key_of(len(entries) + 1)} before it")
        entries.append(_read_entry(store, key))
    return entries


def key_of(number: int) -> str:
    """Where an entry is kept."""
    return f"{FOLDER}{number:08d}.json"


def append(store: Store, make: Callable[[State], Entry]) -> tuple[Entry, State]:
    """Add an entry.

    Args:
        store: of the deployment.
        make: the entry for a state; called again with the state that another writer made meanwhile. It raises what
            forbids the entry then.

    Returns:
        The entry, and the state it leads to.

    Raises:
        StoreError: not writable.
        OutputError: others take every number.
    """
    for _ in range(TRIES):
        state = state_of(read_history(store))
        entry = make(state)
        key, content = key_of(entry.number), _to_bytes(entry)
        if not store.put(key, content):
            continue
        if not store.exclusive():  # both writers are told that theirs is new; the content tells who was last
            time.sleep(SETTLE)
        if read_whole(store, key, MOST_JSON_BYTES) == content:
            return entry, state.after(entry)
    raise OutputError("others write to this deployment without a pause. Try again later")


def now() -> str:
    """The time, as entries have it."""
    return datetime.now(timezone.utc).isoformat(timespec="milliseconds")


def entry_to_json(entry: Entry) -> dict[str, Any]:
    """Plain values, as in its file."""
    return to_dict(entry) | {"checks": [to_dict(check) for check in entry.checks]}


def _to_bytes(entry: Entry) -> bytes:
    return (json.dumps(entry_to_json(entry), indent=2, ensure_ascii=False) + "\n").encode()


def _read_entry(store: Store, key: str) -> Entry:
    try:
        values = parse_json(read_whole(store, key, MOST_JSON_BYTES))
        if not isinstance(values, dict) or not isinstance(schema := values.get("schema"), int):
            raise ValueError("it is no table with a schema")
        if schema > SCHEMA:
            raise ArtifactError(f"{key} has schema {schema}, but ptedge {__version__} reads up to {SCHEMA}. Update it")
        return from_dict(Entry, values, key)
    except (ValueError, ConfigError) as error:
        raise ArtifactError(f"{key} is no entry of a history ({error}). Restore it from a copy") from None
