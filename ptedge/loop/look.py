"""What the next call would do, and why; nothing is written and no frame is fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ptedge.errors import InputError
from ptedge.shards.index import indexed_shards, is_site
from ptedge.stores.opening import open_store

from .decide import Facts, decide
from .gather import days_since_adaptation, frame_records, is_empty
from .rounds import current_round, rounds_of
from .run import describe, next_step
from .settings import Place

SHORT = 12  # digits of a frame's hash in its name in a field folder


def look(place: Place) -> dict[str, Any]:
    """Tell what would be done.

    Args:
        place: of the site.

    Returns:
        As :func:`ptedge.loop.run.describe`, with ``next``, the step that would come, and ``would``, in words.

    Raises:
        PtedgeError: a source of frames cannot be read.
    """
    one = current_round(place.folder)
    document = describe(place, one, [])
    step = next_step(one)
    if step not in ("pull", "decide"):
        return document | {"next": step, "would": f"go on with {step}" if step else "nothing"}
    known = known_frames(place)
    fresh = {source: count_fresh(place.located(source), known) for source in place.site.frames}
    here = len(frame_records(one.frames))
    facts = Facts(here + sum(fresh.values()), days_since_adaptation(place.folder), None, "known after fetching")
    decision = decide(place.site.decide, facts)
    fetch = ", ".join(f"{count} of {source}" for source, count in fresh.items())
    then = "adapt" if decision.adapt else "then wait, unless there is drift" if place.site.decide.drift else "then wait"
    return document | {"next": step, "would": f"fetch {fetch} new frames; {then}: {decision.why}"}


def known_frames(place: Place) -> set[str]:
    """The first digits of the hash of each frame that a round has."""
    return {str(r.get("sha256", ""))[:SHORT] for one in rounds_of(place.folder) for r in frame_records(one.frames)}


def count_fresh(address: str, known: set[str]) -> int:
    """How many frames of a source no round has.

    Args:
        address: of a store, or a field folder.
        known: of :func:`known_frames`.
    """
    if is_empty(address):
        return 0
    if not is_site(address):
        if not (Path(address) / "field.json").is_file():
            raise InputError(f"{address} is neither a store of frames nor a field folder")
        names = (Path(str(record.get("file", ""))).stem for record in frame_records(Path(address)))
        return len({name.rpartition("_")[2] for name in names} - known)
    return len({entry.key[:SHORT] for shard in indexed_shards(open_store(address)) for entry in shard.entries} - known)
