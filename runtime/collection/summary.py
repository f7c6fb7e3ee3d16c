"""What was collected, by strategy, by hour and by day, and what became of the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

from .choose import strategies
from .ledger import EARLIER, RANDOM, entries_of, stamp_of

# counters of what was passed over; the others say what was done
REFUSALS = ("too soon", "duplicate", "quota reached", "disk nearly full", "folder being read", "cannot be a JPEG")
_NEEDED = ("file", "bytes", "why", "informative", "triple", "place", "collected")
HOURS_SHOWN, DAYS_SHOWN = 12, 14


def collection_counts(about: Mapping[str, Any], records: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Counts for ``ptedge field summary``.

    Args:
        about: ``field.json``.
        records: lines of ``frames.jsonl``.

    Returns:
        ``strategies``: of each, ``picked``, ``kept`` and ``evicted`` over the folder's life, and the images ``held``
        for it now, neighbours included; ``hours`` and ``days``: images held, by when they were collected (UTC);
        ``evicted``, ``masked``; ``refused``: counts by why; ``triples``: held now.
    """
    rows = [{key: value for key, value in record.items() if key in _NEEDED} for record in records]
    entries = entries_of(rows)
    told: dict[str, Counter[str]] = {}
    for name, counts in about.get("strategies", {}).items():
        told.setdefault(EARLIER.get(name, name), Counter()).update(counts)
    for entry in entries:
        if entry.owner:
            told.setdefault(entry.owner, Counter())["held"] += len(entry.files)
    order = [RANDOM, *strategies(), *sorted(told)]
    times = [datetime.fromtimestamp(stamp, timezone.utc) for stamp in map(stamp_of, rows) if stamp]
    counters = about.get("counters", {})
    return {
        "strategies": {
            name: {what: told[name][what] for what in ("picked", "kept", "evicted", "held")}
            for name in dict.fromkeys(order)
            if name in told
        },
        "hours": dict(sorted(Counter(time.strftime("%Y-%m-%d %H:00") for time in times).items())),
        "days": dict(sorted(Counter(time.strftime("%Y-%m-%d") for time in times).items())),
        "evicted": counters.get("evicted", 0),
        "masked": counters.get("masked", 0),
        "refused": {why: counters[why] for why in REFUSALS if counters.get(why)},
        "triples": sum(1 for row in rows if row.get("triple") and row.get("place") == 0),
    }


def collection_lines(counts: Mapping[str, Any]) -> list[str]:
    """The same for a person; the last hours and days alone.

    Args:
        counts: of :func:`collection_counts`.
    """
    lines = []
    if counts["strategies"]:
        lines.append(f"{'strategy':<16}{'picked':>8}{'kept':>8}{'evicted':>9}{'held':>7}")
        for name, row in counts["strategies"].items():
            lines.append(f"{name:<16}{row['picked']:>8}{row['kept']:>8}{row['evicted']:>9}{row['held']:>7}")
    for name, most in (("days", DAYS_SHOWN), ("hours", HOURS_SHOWN)):
        rows = list(counts[name].items())
        if rows:
            before = f"({len(rows) - most} before) " if len(rows) > most else ""
            lines.append(f"{name:<11}{before}" + ", ".join(f"{when} {count}" for when, count in rows[-most:]))
    if counts["refused"]:
        lines.append("refused    " + ", ".join(f"{why} {count}" for why, count in counts["refused"].items()))
    rest = [f"{name} {counts[name]}" for name in ("evicted", "masked", "triples") if counts[name]]
    return [*lines, "and        " + ", ".join(rest)] if rest else lines
