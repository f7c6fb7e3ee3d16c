"""What a field folder holds against its quotas, and which frames go when one is reached.

What goes together is one entry: a kept frame, with its neighbours where it has some. The strategy that holds most
beyond its share gives up its least informative entry, so none crowds out the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from .policy import Quota

SLACK = 0.05  # of a limit that is freed at once: every time the whole list is written anew
HOUR, DAY = 3600.0, 86400.0
RANDOM = "random"  # the strategy that is chance alone
NEIGHBOUR = "neighbour"  # why of a frame that is there for another's sake
EARLIER = {"uncertain class": "entropy", "uncertain box": "sigma"}  # what older folders call them
KEEP_NAME = "keep.txt"  # of a field folder: names of images that are not for removal


@dataclass(eq=False)
class Entry:
    """Images that come and go together.

    Attributes:
        files: their ``file`` in ``frames.jsonl``.
        bytes: of all.
        owner: strategy that it was kept for.
        informative: by that strategy; only entries of one are compared.
        stamp: Unix seconds when it was collected; 0 where not known.
    """

    files: list[str] = field(default_factory=list)
    bytes: int = 0
    owner: str = NEIGHBOUR
    informative: float = 0.0
    stamp: float = 0.0


@dataclass(frozen=True)
class _Limit:
    """One limit, and the entries that count towards it."""

    most: float
    size: Callable[[Entry], int]
    since: float


class Ledger:
    """The entries of a folder."""

    def __init__(self, entries: Iterable[Entry], shares: Mapping[str, float]) -> None:
        """Take in what is there.

        Args:
            entries: see :func:`entries_of`.
            shares: of each strategy, see :class:`ptedge.runtime.collection.policy.Shares`.
        """
        self.entries = list(entries)
        total = sum(shares.values())
        self._shares = {name: share / total for name, share in shares.items()} if total else {}

    def make_room(
        self, quota: Quota, now: float, new: Entry | None = None, protected: AbstractSet[str] = frozenset()
    ) -> list[Entry] | None:
        """What has to go so that quotas hold; nothing is changed yet.

        Args:
            quota: the limits.
            now: Unix seconds.
            new: entry that is to come in; ``None`` for none.
            protected: names of images that stay.

        Returns:
            Entries; ``None`` where the new one would have to go itself, or nothing may.
        """
        gone: list[Entry] = []
        for limit in _limits(quota, now):
            entries = [*self.entries, *([new] if new is not None else [])]
            counted = [entry for entry in entries if entry.stamp >= limit.since and entry not in gone]
            used = sum(map(limit.size, counted))
            if used <= limit.most:
                continue
            for entry in self._least(counted, protected):
                if entry is new:
                    if used > limit.most:
                        return None
                    break
                gone.append(entry)
                used -= limit.size(entry)
                if used <= limit.most - int(SLACK * limit.most):
                    break
            if used > limit.most:
                return None
        return gone

    def least_until(self, most_bytes: int, most_images: int, protected: AbstractSet[str]) -> list[Entry]:
        """The entries to remove until so much is left, or nothing may go any more; nothing is changed yet.

        Args:
            most_bytes: of images that may stay.
            most_images: that may stay.
            protected: names of images that stay.
        """
        gone: list[Entry] = []
        size, images = sum(map(_bytes, self.entries)), sum(map(_images, self.entries))
        order = self._least(self.entries, protected)
        while size > most_bytes or images > most_images:
            entry = next(order, None)
            if entry is None:
                break
            gone.append(entry)
            size, images = size - _bytes(entry), images - _images(entry)
        return gone

    def remove(self, gone: Iterable[Entry]) -> None:
        """Forget entries."""
        left = {id(entry) for entry in gone}
        self.entries = [entry for entry in self.entries if id(entry) not in left]

    def _least(self, entries: Iterable[Entry], protected: AbstractSet[str]) -> Iterator[Entry]:
        """Entries in the order in which they go; of equal ones the oldest first."""
        held, left = Counter[str](), dict[str, list[Entry]]()
        for entry in entries:
            held[entry.owner] += 1
            if not any(Path(file).name in protected for file in entry.files):
                left.setdefault(entry.owner, []).append(entry)
        for rows in left.values():  # the next to go is the last
            rows.sort(key=lambda entry: entry.informative)
            rows.reverse()
        while left:
            total = held.total()
            owner = max(left, key=lambda name: held[name] / total - self._shares.get(name, 0.0))
            entry = left[owner].pop()
            held[owner] -= 1
            if not left[owner]:
                del left[owner]
            yield entry


def _limits(quota: Quota, now: float) -> Iterator[_Limit]:
    for name, since in (("", -1.0), ("_day", now - DAY), ("_hour", now - HOUR)):
        for what, size in (("images", _images), ("bytes", _bytes)):
            most = getattr(quota, what + name)
            if most is not None:
                yield _Limit(most, size, since)


def _images(entry: Entry) -> int:
    return len(entry.files)


def _bytes(entry: Entry) -> int:
    return entry.bytes


def entries_of(records: Iterable[Mapping[str, Any]]) -> list[Entry]:
    """The entries that lines of ``frames.jsonl`` make up."""
    found: dict[str, Entry] = {}
    for record in records:
        entry = found.setdefault(str(record.get("triple") or record["file"]), Entry())
        entry.files.append(str(record["file"]))
        entry.bytes += int(record.get("bytes", 0))
        entry.stamp = max(entry.stamp, stamp_of(record))
        if record.get("place", 0) == 0:
            why = [str(name) for name in record.get("why", ())]
            entry.owner = EARLIER.get(why[0], why[0]) if why else ""
            entry.informative = float(record.get("informative", 0))
    return list(found.values())


def stamp_of(record: Mapping[str, Any]) -> float:
    """When a frame was collected, Unix seconds; 0 where its line does not say."""
    try:
        return datetime.fromisoformat(str(record.get("collected"))).timestamp()
    except ValueError:
        return 0.0


def protected_images(folder: Path) -> frozenset[str]:
    """Names of images in the ``keep.txt`` of a field folder, one a line; none where there is no such file."""
    try:
        lines = (folder / KEEP_NAME).read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    return frozenset(Path(line.strip()).name for line in lines if line.strip())
